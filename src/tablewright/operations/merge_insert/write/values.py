"""What new rows are made of: the columns that the source gives, and the table's own where it gives none.

Of a struct that is given in part, the members that are given are put into the row's own struct, as Lance does it: a
struct that is null on both sides stays null, and otherwise it has the members of both.

Tests: ``tests/unit/api/test_merge_insert.py``, ``tests/differential/test_merge_types.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.conform import conform
from tablewright.format.row_set import Offsets
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.reading.projection import Path, select_columns

__all__ = ["SourceColumns", "SourceRows", "merged_values"]


class SourceRows:
    """Rows that move, with the source's values: those at ``positions``, one for each, in the order of addresses.

    A source with all columns is written as it is; for a partial one the other columns are read.
    """

    def __init__(self, fitted: FittedSchema, source: KeptSource, positions: Positions) -> None:
        self._fitted, self._source, self._positions = fitted, source, positions
        self.selection = None if fitted.is_full else select_columns(fitted.rows, list(fitted.kept))
        self.rows_at_a_time = source.rows_per_batch

    def batch(self, numbers: Offsets, old: pa.RecordBatch | None) -> pa.RecordBatch:
        """All columns of the table."""
        return _merged_rows(self._fitted, self._source.take(self._positions[numbers]), old)


class SourceColumns:
    """Columns in place, with the source's values: those at ``positions``, one for each row that matches."""

    def __init__(
        self, fitted: FittedSchema, columns: tuple[str, ...], source: KeptSource, positions: Positions
    ) -> None:
        self._fitted, self._source, self._positions = fitted, source, positions
        self._schema = fitted.rows.to_arrow()
        self.columns = columns
        self.inputs = tuple(name for name in columns if name in fitted.in_part)
        self.rows_at_a_time = source.rows_per_batch_of(columns)

    def paths(self, *, every_row: bool) -> list[Path]:
        """Old values of rows that do not match, or that keep some members."""
        return [(name,) for name in (self.inputs if every_row else self.columns)]

    def values(self, begin: int, end: int, old: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns in the table's types; a null where none may be is refused."""
        given = self._source.take(self._positions[begin:end], self.columns)
        merged = {name: merged_values(self._fitted, name, given, old) for name in self.columns}
        return {name: _fitting(array, self._schema.field(name)) for name, array in merged.items()}


def _fitting(array: pa.Array, field: pa.Field) -> pa.Array:
    return conform(pa.RecordBatch.from_arrays([array], names=[field.name]), pa.schema([field])).column(0)


def _merged_rows(fitted: FittedSchema, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.RecordBatch:
    """All columns of the table for rows that match; ``target`` has those of which something is kept."""
    names, given, in_part = fitted.table.names, frozenset(fitted.columns), frozenset(fitted.in_part)
    arrays = [
        source.column(name) if name in given and name not in in_part else merged_values(fitted, name, source, target)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def merged_values(fitted: FittedSchema, name: str, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.Array:
    """One column of rows that match."""
    if name in fitted.in_part:
        assert target is not None
        return _members_of_both(target.column(name), source.column(name))
    if name in fitted.columns:
        return source.column(name)
    assert target is not None
    return target.column(name)


def _members_of_both(own: pa.Array, given: pa.Array) -> pa.Array:
    """A struct with some of its members exchanged."""
    if not (isinstance(own, pa.StructArray) and isinstance(given, pa.StructArray)):
        return given
    kept, new = own.flatten(), dict(zip(_names(given.type), given.flatten(), strict=True))
    members = [
        _members_of_both(member, new[name]) if name in new else member
        for name, member in zip(_names(own.type), kept, strict=True)
    ]
    absent = pc.and_(own.is_null(), given.is_null())
    fields = [field.with_nullable(True) for field in own.type]
    return pa.StructArray.from_arrays(members, fields=fields, mask=absent)


def _names(kind: pa.StructType) -> Sequence[str]:
    return [field.name for field in kind]
