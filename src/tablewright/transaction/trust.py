"""Whether rows are the same on both sides of a rewrite. Counts can't tell: a writer may have reordered rows.

On tables with stable row ids the ids at the old and at the new address are compared, for every row asked about. On
other tables values are compared: those of the narrow columns, or of one wide column where there are only such. All rows
are read if they are few. Of many, a sample is: the first and the last one of each fragment, those at the borders of the
new fragments, where a shift by one row would show, and rows at equal distances in between.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.data.prefetch import spread
from tablewright.data.read import FragmentReader
from tablewright.data.shape import ReadShape
from tablewright.data.sizes import fixed_width
from tablewright.format.address_map import AddressMap
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["compared_columns", "difference", "sample"]

ROWS_MAX = 4096
"""So many rows of a group are compared at most, beside those at borders."""

_PER_FRAGMENT_MIN = 16
_NARROW_BYTES = 16
_COLUMNS_MAX = 16


def difference(before: Snapshot, after: Snapshot, map: AddressMap, rows: Mapping[int, RowSet]) -> str | None:
    """Why rows of a group's old fragments, by id, are not the rows at their new places; ``None`` if they are."""
    ids = [each.id for each in map.old if each.id in rows]
    if before.manifest.stable_row_ids and after.manifest.stable_row_ids:
        return _other_ids(before, after, map, {id: rows[id] for id in ids})
    columns = compared_columns(before.schema)
    if not columns.fields:
        return "the table has no column by which rows can be compared"
    share = max(_PER_FRAGMENT_MIN, ROWS_MAX // max(1, len(ids)))
    return _other_values(before, after, map, columns, {id: sample(map, id, rows[id], share) for id in ids})


def sample(map: AddressMap, old_id: int, rows: RowSet, count: int) -> RowSet:
    """About ``count`` of the rows, spread evenly, with the first, the last, and those beside each border."""
    if len(rows) <= count:
        return rows
    offsets = rows.to_numpy()
    spread_evenly = np.linspace(0, len(offsets) - 1, count).astype(np.int64)
    ends = np.cumsum([len(part) for part in map.forward(old_id, rows).values()])[:-1]
    return RowSet.of(offsets[np.unique(np.concatenate([spread_evenly, ends - 1, ends]))])


def compared_columns(schema: Schema) -> Schema:
    """Top-level columns that are cheap to read and likely to differ from row to row."""
    kinds = {column.id: field.type for column, field in zip(schema.top_level, schema.to_arrow(), strict=True)}
    plain = [id for id in kinds if schema.blob_ids.isdisjoint(schema.descendants(id))]
    narrow = [id for id in plain if _is_narrow(kinds[id])]
    return schema.project_ids(narrow[:_COLUMNS_MAX] or plain[:1])


def _is_narrow(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType) or at.is_nested(kind):
        return False
    width = fixed_width(kind)
    return at.is_string(kind) or at.is_large_string(kind) or (width is not None and width <= _NARROW_BYTES)


def _places(map: AddressMap, rows: Mapping[int, RowSet]) -> dict[int, Offsets]:
    """The new offsets by new fragment, in the order of the old rows."""
    found: dict[int, list[Offsets]] = {}
    for id, some in rows.items():
        for place, offsets in map.forward(id, some).items():
            found.setdefault(place, []).append(offsets.to_numpy())
    return {place: np.concatenate(parts) for place, parts in found.items()}


def _other_ids(before: Snapshot, after: Snapshot, map: AddressMap, rows: Mapping[int, RowSet]) -> str | None:
    old = [_ids(before, id, some.to_numpy()) for id, some in rows.items()]
    new = [_ids(after, id, offsets) for id, offsets in _places(map, rows).items()]
    differ = np.flatnonzero(np.concatenate(old) != np.concatenate(new)) if old else np.zeros(0)
    return f"{len(differ)} rows have other row ids after the rewrite" if len(differ) else None


def _ids(snapshot: Snapshot, fragment_id: int, offsets: Offsets) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    sequence = snapshot.row_ids(snapshot.fragments.by_id(fragment_id))
    return np.zeros(len(offsets), np.uint64) if sequence is None else sequence.to_numpy()[offsets]


def _other_values(
    before: Snapshot, after: Snapshot, map: AddressMap, columns: Schema, rows: Mapping[int, RowSet]
) -> str | None:
    asked = [(before, id, some.to_numpy()) for id, some in rows.items()]
    asked += [(after, id, offsets) for id, offsets in _places(map, rows).items()]
    shape = ReadShape(before.schema, columns)  # a rewrite does not change the schema
    tables = spread(lambda each: _values(*each, shape), asked)
    old, new = pa.concat_tables(tables[: len(rows)]), pa.concat_tables(tables[len(rows) :])
    for name in columns.names:
        if not _same(old[name], new[name]):
            return f"rows have other values in column {name!r} after the rewrite: their order was changed"
    return None


def _values(snapshot: Snapshot, fragment_id: int, offsets: Offsets, shape: ReadShape) -> pa.Table:
    reader = FragmentReader(snapshot, snapshot.fragments.by_id(fragment_id), shape)
    found = reader.take(offsets, max(1, len(offsets)))
    return pa.Table.from_batches([rows.batch for rows in found], schema=shape.schema)


def _same(old: pa.ChunkedArray, new: pa.ChunkedArray) -> bool:
    """Equal, where a value that is not a number equals itself."""
    return bool(old.equals(new)) or repr(old.to_pylist()) == repr(new.to_pylist())
