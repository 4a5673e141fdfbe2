"""The file of a zone index: its zones in batches, its settings, and its null rows.

Everything is checked on the way in: the columns are there, are of the right types and hold no null, zones are not
empty, and the null rows decode. What is wrong is a :class:`~tablewright.errors.CorruptTable`.

Tests: ``tests/unit/indices/zones/test_zones.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablewright.errors import CorruptTable
from tablewright.format.fragment_rows import FragmentRows, decode_fragment_rows, encode_fragment_rows
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.indices.files import IndexPlaces, open_index_file, write_index_file
from tablewright.indices.query import RowRanges
from tablewright.indices.zones.summary import PLACE_FIELDS, ZoneSummary
from tablewright.lazy import cached_property
from tablewright.storage.base import Store

__all__ = ["NULL_KEY", "ZoneReader", "in_schema", "ranges_of", "united_ranges", "write_zones"]

NULL_KEY = "null_bitmap"
_OFFSET_LIMIT = 1 << 32
_DIGITS_MAX = 9
_BATCH_BYTES = 16 << 20


class ZoneReader:
    """An open zone index, whose file has this name."""

    def __init__(self, context: IndexPlaces, index: IndexMetadata, name: str) -> None:
        store, directory = context.index_place(index)
        self._reader = open_index_file(store, directory, name)
        self.where = self._reader.where
        self.schema = self._reader.schema
        for field in PLACE_FIELDS:
            if field.name not in self.schema.names or self.schema.field(field.name).type != field.type:
                raise CorruptTable(self.where, (f"a zone index needs a column {field.name} of type {field.type}",))
        self.metadata = {key.decode(): value.decode() for key, value in (self.schema.metadata or {}).items()}

    @property
    def num_zones(self) -> int:
        """How many zones there are."""
        return self._reader.num_rows

    @cached_property
    def nulls(self) -> FragmentRows | None:
        """The null rows; ``None`` if the file does not say, or does not say it for certain.

        pylance 14.0.2 optimises an index on a column that was changed in place by adding zones of now to those from
        before. Then rows count as null that have a value now.
        """
        number = self.metadata.get(NULL_KEY)
        if number is None or self._has_zones_twice:
            return None
        if not number.isdecimal() or len(number) > _DIGITS_MAX:
            raise CorruptTable(self.where, (f"its null rows are in buffer {number!r}, which is no number",))
        try:
            found = decode_fragment_rows(self._reader.buffer(int(number)))
        except ValueError as error:
            raise CorruptTable(self.where, (str(error),)) from None
        known = {id: offsets for id, offsets in found.items() if offsets is not None}
        return known | self._every_row([id for id, offsets in found.items() if offsets is None])

    @cached_property
    def _has_zones_twice(self) -> bool:
        """Whether a row is in two zones."""
        parts, rows = [], 0
        for batch in self.batches():
            parts.append(ranges_of(batch, np.ones(len(batch), np.bool_)))
            rows += int(batch["zone_length"].to_numpy().sum())
        return rows > united_ranges(parts).rows

    def _every_row(self, fragment_ids: Sequence[int]) -> FragmentRows:
        """All rows of the zones of some fragments."""
        rows: FragmentRows = {id: BitMap() for id in fragment_ids}
        for batch in self.batches() if rows else ():
            chosen = np.isin(batch["fragment_id"].to_numpy(), fragment_ids)
            for fragment_id, start, stop in zip(*(part.tolist() for part in ranges_of(batch, chosen)), strict=True):
                rows[fragment_id].add_range(start, stop)
        return rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All zones, some megabytes at a time."""
        rows = self.num_zones
        if not rows:
            return
        bytes_per_zone = max(1, sum(self._reader.column_bytes) // rows)
        for batch in self._reader.read(0, rows, max(1, min(rows, _BATCH_BYTES // bytes_per_zone))):
            self._check(batch)
            yield batch

    def _check(self, batch: pa.RecordBatch) -> None:
        if any(batch[field.name].null_count for field in PLACE_FIELDS):
            raise CorruptTable(self.where, ("the place of a zone is null",))
        fragments, starts, lengths = (batch[field.name].to_numpy() for field in PLACE_FIELDS)
        beyond = np.any(fragments >= _OFFSET_LIMIT) or np.any(starts >= _OFFSET_LIMIT)
        if beyond or np.any(lengths > _OFFSET_LIMIT) or np.any(lengths == 0):
            raise CorruptTable(self.where, ("a zone is empty, or lies beyond the addresses of rows",))


def ranges_of(zones: pa.RecordBatch, chosen: npt.NDArray[np.bool_]) -> RowRanges:
    """The rows of the chosen zones."""
    fragments, starts, lengths = (zones[field.name].to_numpy().astype(np.int64)[chosen] for field in PLACE_FIELDS)
    return RowRanges.of(fragments, starts, starts + lengths)


def united_ranges(parts: Iterable[RowRanges]) -> RowRanges:
    """The rows of several answers."""
    found = list(parts)
    nothing = np.zeros(0, np.int64)
    return RowRanges.of(*(np.concatenate([nothing, *(each[part] for each in found)]) for part in range(3)))


def in_schema(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """The same rows with the columns, order and nullability of a schema."""
    arrays = [batch[field.name] for field in schema]
    for array, field in zip(arrays, schema, strict=True):
        if array.type != field.type or (array.null_count and not field.nullable):
            raise CorruptTable(where, (f"its column {field.name} is {array.type} with {array.null_count} nulls",))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_zones(
    store: Store,
    directory: str,
    name: str,
    summary: ZoneSummary,
    zones: Iterable[pa.RecordBatch],
    nulls: FragmentRows | None,
    metadata: Mapping[str, str],
) -> IndexFile:
    """Write zones and null rows as the file of an index."""
    buffers = {} if nulls is None else {NULL_KEY: encode_fragment_rows(nulls)}
    return write_index_file(store, directory, name, summary.schema, zones, metadata=metadata, buffers=buffers)
