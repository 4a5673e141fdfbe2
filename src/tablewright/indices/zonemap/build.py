"""Building a zone map, and writing it again after a rewrite of fragments.

A zone's ``max`` is NaN if it has one, as readers expect. Its ``min`` is the least value in the total order: a negative
NaN if there is one, NaN if there is nothing else. pylance 14.0.2 leaves both out, and then finds no row for ``x > 0``
in a zone of NaN alone, or for ``x < 0`` in one with a negative NaN; with our files it does.

Tests: ``tests/unit/indices/zonemap/test_zonemap.py``, ``tests/differential/indices/test_zones.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.address_map import AddressMap
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import ZONEMAP
from tablewright.format.wire import encode_varint
from tablewright.indices.building import BuildPlan, Stage, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.zonemap.order import lowest_and_highest
from tablewright.indices.zones import ZoneReader, build_zones, remap_zone_index
from tablewright.indices.zones.summary import PLACE_FIELDS, Bounds
from tablewright.world import World

__all__ = ["ROWS_PER_ZONE", "ZoneMapSummary", "build", "remap_zones", "supported"]

ROWS_PER_ZONE = 8192
_ROWS_KEY = "rows_per_zone"


@dataclass(frozen=True, slots=True)
class ZoneMapSummary:
    """The bounds of zones of a column of this type."""

    type: pa.DataType

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``zonemap.lance``."""
        counts = (pa.field(name, pa.uint32(), nullable=False) for name in ("null_count", "nan_count"))
        return pa.schema([pa.field("min", self.type), pa.field("max", self.type), *counts, *PLACE_FIELDS])

    def summarise(self, values: pa.Array, bounds: Bounds) -> Mapping[str, pa.Array]:
        """Bounds and counts of each group of values."""
        missing = values.is_null().to_numpy(zero_copy_only=False)
        is_nan = np.zeros(len(values), np.bool_)
        if pa.types.is_floating(values.type):
            is_nan = np.isnan(values.to_numpy(zero_copy_only=False).astype(np.float64)) & ~missing
        low, high = lowest_and_highest(values, bounds)
        nans = np.add.reduceat(is_nan, bounds, dtype=np.int64)
        return self._columns(low, high, np.add.reduceat(missing, bounds, dtype=np.int64), nans)

    def unite(self, zones: pa.RecordBatch, bounds: Bounds) -> Mapping[str, pa.Array]:
        """Bounds and counts of each group of zones. One zone of values without bounds leaves its group without."""
        low, _ = lowest_and_highest(_values(zones["min"]), bounds)
        _, high = lowest_and_highest(_values(zones["max"]), bounds)
        nulls, nans = (np.add.reduceat(zones[name].to_numpy().astype(np.int64), bounds) for name in _COUNTS)
        unknown = unbounded(zones)
        return self._columns(_without(low, unknown, bounds), _without(high, unknown, bounds), nulls, nans)

    def moved(self, zones: pa.RecordBatch, nulls: npt.NDArray[np.int64] | None) -> pa.RecordBatch:
        """Zones with counts that fit their new lengths."""
        lengths = zones["zone_length"].to_numpy().astype(np.int64)
        counts = [np.minimum(zones[name].to_numpy().astype(np.int64), lengths) for name in _COUNTS]
        counts[0] = counts[0] if nulls is None else nulls
        changed = {name: pa.array(each, pa.uint32()) for name, each in zip(_COUNTS, counts, strict=True)}
        arrays = [changed.get(field.name, zones[field.name]) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _columns(
        self, low: pa.Array, high: pa.Array, nulls: npt.NDArray[np.int64], nans: npt.NDArray[np.int64]
    ) -> Mapping[str, pa.Array]:
        if pa.types.is_floating(low.type):
            high = pc.if_else(pa.array(nans > 0), pa.scalar(np.nan).cast(low.type), high)
        counts = {name: pa.array(each, pa.uint32()) for name, each in zip(_COUNTS, (nulls, nans), strict=True)}
        return {"min": self._stored(low), "max": self._stored(high), **counts}

    def _stored(self, values: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(self.type):
            return values.dictionary_encode().cast(self.type)
        return values


def unbounded(zones: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Zones that have values, as far as they tell, but no bounds: those of types without order, and some of pylance's.

    A zone of NaN alone may lack ``min``; its ``max`` is NaN.
    """
    lacking = zones["max"].is_null().to_numpy(zero_copy_only=False)
    return np.asarray(lacking & (zones["null_count"].to_numpy() < zones["zone_length"].to_numpy()))


def _without(edge: pa.Array, unknown: npt.NDArray[np.bool_], bounds: Bounds) -> pa.Array:
    return pc.if_else(pa.array(~np.logical_or.reduceat(unknown, bounds)), edge, pa.scalar(None, edge.type))


def _values(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


_COUNTS = ("null_count", "nan_count")


# -------------------------------------------------------------------------------------------------------------- effects
def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Write a zone map. ``settings``: ``rows_per_zone``, else that of the first old segment, else 8192."""
    rows = _rows_per_zone(plan, world)
    summary = ZoneMapSummary(_stored_type(plan))
    file, knows_nulls = build_zones(plan, world, stage, summary, rows, {_ROWS_KEY: str(rows)})
    return WrittenIndex(files=(file,), details_type_url=ZONEMAP.type_url, details_value=_details(rows, knows_nulls))


def _stored_type(plan: BuildPlan) -> pa.DataType:
    """The type of the bounds: the column's own. Pylance, which asks for a value of it, finds nothing in bounds of the
    plain type of a dictionary.
    """
    own = plan.schema.arrow_field(plan.field_id).type
    return own if isinstance(own, pa.DictionaryType) else plan.type


def remap_zones(
    context: IndexPlaces, index: IndexMetadata, groups: Sequence[AddressMap], world: World, directory: str
) -> WrittenIndex:
    """Write the same zone map as it is after a rewrite of fragments."""
    reader = ZoneReader(context, index, ZONEMAP.files[0])
    rows = stored_rows(reader)
    summary = ZoneMapSummary(value_type(reader))
    file = remap_zone_index(reader, summary, groups, rows, (world.store, directory))
    details = _details(rows, reader.nulls is not None)
    return WrittenIndex(files=(file,), details_type_url=ZONEMAP.type_url, details_value=details)


def supported(kind: pa.DataType) -> bool:
    """Whether a column of a type can have a zone map: all but null. Of types without order it knows the nulls alone.

    >>> supported(pa.float16()), supported(pa.list_(pa.int8())), supported(pa.null())
    (True, True, False)
    """
    return not pa.types.is_null(kind)


def value_type(reader: ZoneReader) -> pa.DataType:
    """The type of the bounds; :class:`CorruptTable` if the file is no zone map."""
    names = ("min", "max", *_COUNTS)
    if any(name not in reader.schema.names for name in names):
        raise CorruptTable(reader.where, (f"a zone map needs the columns {names}",))
    low, high = (reader.schema.field(name).type for name in ("min", "max"))
    if low != high or any(reader.schema.field(name).type != pa.uint32() for name in _COUNTS):
        raise CorruptTable(reader.where, ("the columns of the zone map have wrong types",))
    return low


def stored_rows(reader: ZoneReader) -> int:
    """The size of zones that a file was built with."""
    text = reader.metadata.get(_ROWS_KEY, str(ROWS_PER_ZONE))
    if not text.isdecimal() or len(text) > _DIGITS_MAX or not int(text):
        raise CorruptTable(reader.where, (f"its {_ROWS_KEY} is {text!r}",))
    return int(text)


_DIGITS_MAX = 18


def _rows_per_zone(plan: BuildPlan, world: World) -> int:
    given = plan.settings.get(_ROWS_KEY)
    if given is None and plan.old:
        return stored_rows(ZoneReader(TaskContext(world, plan.base_paths), plan.old[0].index, ZONEMAP.files[0]))
    rows = ROWS_PER_ZONE if given is None else given
    if isinstance(rows, bool) or not isinstance(rows, int) or not 0 < rows < 10**_DIGITS_MAX:
        raise InvalidRequest(f"{_ROWS_KEY} must be a positive whole number, not {rows!r}.")
    return rows


def _details(rows_per_zone: int, knows_nulls: bool) -> bytes:
    """Rows per zone, no seeds in data files, and whether null rows are known; all three explicit."""
    return b"\x08" + encode_varint(rows_per_zone) + b"\x10\x00\x18" + bytes([knows_nulls])
