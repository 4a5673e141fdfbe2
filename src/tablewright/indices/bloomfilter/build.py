"""Building Bloom filters of zones, and writing them again after a rewrite of fragments.

``number_of_items`` is the size of a zone and the number of values that a filter is made for.

Tests: ``tests/unit/indices/bloomfilter/test_bloomfilter.py``, ``tests/differential/indices/test_zones.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.address_map import AddressMap
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BLOOMFILTER
from tablewright.indices.bloomfilter.blocks import BLOCK_BYTES, bytes_needed, filters_of, widened
from tablewright.indices.bloomfilter.hashes import hashes_of
from tablewright.indices.building import BuildPlan, Stage, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.zones import ZoneReader, build_zones, remap_zone_index
from tablewright.indices.zones.summary import PLACE_FIELDS, Bounds
from tablewright.world import World

__all__ = ["BloomSummary", "build", "filter_bytes", "open_filters", "remap_zones"]

_ITEMS, _PROBABILITY = 8192, 0.00057
_ITEMS_KEY, _PROBABILITY_KEY = "bloomfilter_item", "bloomfilter_probability"
_DIGITS_MAX = 18
_DATA = "bloom_filter_data"


@dataclass(frozen=True, slots=True)
class BloomSummary:
    """Filters of this many bytes."""

    filter_size: int

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``bloomfilter.lance``."""
        own = (pa.field("has_null", pa.bool_(), nullable=False), pa.field(_DATA, pa.binary(), nullable=False))
        return pa.schema([*PLACE_FIELDS, *own])

    def summarise(self, values: pa.Array, bounds: Bounds) -> Mapping[str, pa.Array]:
        """A filter for each group of values."""
        missing = values.is_null().to_numpy(zero_copy_only=False)
        groups = np.searchsorted(bounds, np.flatnonzero(~missing), side="right") - 1
        filters = filters_of(hashes_of(values.drop_null()), groups, len(bounds), self.filter_size)
        return {"has_null": pa.array(np.logical_or.reduceat(missing, bounds)), _DATA: _binary(list(filters))}

    def unite(self, zones: pa.RecordBatch, bounds: Bounds) -> Mapping[str, pa.Array]:
        """All bits of the filters of each group."""
        data, starts, sizes = filter_bytes(zones)
        filters = [data[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
        ends = [*bounds[1:].tolist(), len(zones)]
        joined = [_joined(filters[first:last]) for first, last in zip(bounds.tolist(), ends, strict=True)]
        has_null = np.logical_or.reduceat(zones["has_null"].to_numpy(zero_copy_only=False), bounds)
        return {"has_null": pa.array(has_null), _DATA: _binary(joined)}

    def moved(self, zones: pa.RecordBatch, nulls: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
        """Zones that say whether they have nulls, counted again."""
        has_null = zones["has_null"] if nulls is None else pa.array(nulls > 0)
        arrays = [has_null if field.name == "has_null" else zones[field.name] for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def filter_bytes(
    zones: pa.RecordBatch,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bytes of all filters, where each begins, and its size."""
    filters = zones[_DATA]
    _, ends, data = filters.buffers()
    assert ends is not None, "binary values have a buffer of their offsets"
    places = np.frombuffer(memoryview(ends), np.int32)[filters.offset : filters.offset + len(filters) + 1]
    return (
        np.frombuffer(memoryview(data or b""), np.uint8),
        places[:-1].astype(np.int64),
        np.diff(places).astype(np.int64),
    )


def _joined(filters: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    size = max(len(each) for each in filters)
    joined: npt.NDArray[np.uint8] = np.bitwise_or.reduce(
        [each if len(each) == size else widened(each, size) for each in filters]
    )
    return joined


def _binary(filters: Sequence[npt.NDArray[np.uint8]]) -> pa.Array:
    ends = np.cumsum([0, *(len(each) for each in filters)], dtype=np.int32)
    data = np.concatenate(filters) if filters else np.zeros(0, np.uint8)
    return pa.Array.from_buffers(pa.binary(), len(filters), [None, pa.py_buffer(ends), pa.py_buffer(data)])


# ------------------------------------------------------------------------------------------------------------- effects
def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Write Bloom filters. ``settings``: ``number_of_items``, ``probability``; else those of the first old segment."""
    items, probability = _settings(plan, world)
    summary = BloomSummary(bytes_needed(items, probability))
    file, _ = build_zones(plan, world, stage, summary, items, _metadata(items, probability))
    return WrittenIndex(files=(file,), details_type_url=BLOOMFILTER.type_url)


def remap_zones(
    context: IndexPlaces, index: IndexMetadata, groups: Sequence[AddressMap], world: World, directory: str
) -> WrittenIndex:
    """Write the same filters as they are after a rewrite of fragments."""
    reader = open_filters(context, index)
    items, probability = _stored(reader)
    summary = BloomSummary(bytes_needed(items, probability))
    file = remap_zone_index(reader, summary, groups, items, (world.store, directory))
    return WrittenIndex(files=(file,), details_type_url=BLOOMFILTER.type_url)


def open_filters(context: IndexPlaces, index: IndexMetadata) -> ZoneReader:
    """A reader of the file; :class:`CorruptTable` if it holds no filters."""
    reader = ZoneReader(context, index, BLOOMFILTER.files[0])
    for field in BloomSummary(BLOCK_BYTES).schema:
        if field.name not in reader.schema.names or reader.schema.field(field.name).type != field.type:
            raise CorruptTable(reader.where, (f"Bloom filters need a column {field.name} of type {field.type}",))
    return reader


def _metadata(items: int, probability: float) -> dict[str, str]:
    return {_ITEMS_KEY: str(items), _PROBABILITY_KEY: np.format_float_positional(probability, trim="-")}


def _settings(plan: BuildPlan, world: World) -> tuple[int, float]:
    items, probability = _ITEMS, _PROBABILITY
    if plan.old:
        items, probability = _stored(open_filters(TaskContext(world, plan.base_paths), plan.old[0].index))
    given, rate = plan.settings.get("number_of_items", items), plan.settings.get("probability", probability)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 10**_DIGITS_MAX:
        raise InvalidRequest(f"number_of_items must be a positive whole number, not {given!r}.")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
        raise InvalidRequest(f"probability must be a number between 0 and 1, both excluded, not {rate!r}.")
    return given, float(rate)


def _stored(reader: ZoneReader) -> tuple[int, float]:
    """The settings that a file was built with."""
    items, probability = (reader.metadata.get(key) for key in (_ITEMS_KEY, _PROBABILITY_KEY))
    try:
        found = int(items or _ITEMS), float(probability or _PROBABILITY)
    except ValueError:
        found = (0, 0.0)
    if not 0 < found[0] < 10**_DIGITS_MAX or not 0 <= found[1] < 1:
        raise CorruptTable(reader.where, (f"it was built for {items!r} values at a rate of {probability!r}",))
    return found
