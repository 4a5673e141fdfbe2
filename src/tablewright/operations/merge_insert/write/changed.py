"""Rows of which several clauses make something else: each clause's rows apart, then put together in their order.

Expressions see the old values of a row. Columns that a clause does not change keep theirs.

Tests: ``tests/unit/api/test_merge_clauses.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tablewright.data.read import no_columns
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.row_set import Offsets
from tablewright.operations.merge_insert.changes import Changes, Inserts
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.condition import chosen_clauses, some_rows
from tablewright.operations.merge_insert.match.pairs import ClauseNumbers
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.rewrite.column_values import concatenated
from tablewright.reading.projection import Path, extend_selection, select_columns

__all__ = ["ChangedColumns", "ChangedRows", "ClauseValues", "inserted_rows"]


class ClauseValues:
    """New values of rows: ``positions`` of their source rows and ``numbers`` of their clauses, one for each."""

    def __init__(
        self, fitted: FittedSchema, changes: Changes, source: KeptSource, positions: Positions, numbers: ClauseNumbers
    ) -> None:
        self.fitted, self.changes, self.source = fitted, changes, source
        self._positions, self._numbers = positions, numbers
        self.present: tuple[int, ...] = tuple(np.unique(numbers).tolist())
        self.kept = changes.kept_of(fitted, self.present)
        self.target_paths = changes.target_paths_of(self.present)
        self.rows_at_a_time = source.rows_per_batch_of(changes.source_columns_of(self.present))

    def columns(self, rows: Offsets, columns: Sequence[str], old: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """Some columns of rows, given by their numbers, in the table's types."""
        numbers, positions = self._numbers[rows], self._positions[rows]
        present = np.unique(numbers).tolist()
        if len(present) == 1:
            return self._values(present[0], positions, columns, old)
        parts = [np.flatnonzero(numbers == number) for number in present]
        made = [
            self._values(number, positions[part], columns, some_rows(old, part))
            for number, part in zip(present, parts, strict=True)
        ]
        return _together(columns, made, parts)

    def _values(
        self, number: int, positions: Positions, columns: Sequence[str], old: pa.RecordBatch
    ) -> Mapping[str, pa.Array]:
        change = self.changes.rows[number]
        assert change is not None, "rows that are deleted get no values"
        read = change.source_columns
        source = self.source.take(positions, read) if read else no_columns(len(positions))
        new = change.values(self.fitted, source, old)
        return {name: new[name] if name in new else old.column(name) for name in columns}


def _together(
    columns: Sequence[str], made: Sequence[Mapping[str, pa.Array]], parts: Sequence[Offsets]
) -> dict[str, pa.Array]:
    """Values of several parts in the order of their rows."""
    order = pa.array(np.argsort(np.concatenate(parts), kind="stable"))
    together = {}
    for name in columns:
        batches = [pa.RecordBatch.from_arrays([values[name]], names=[name]) for values in made]
        together[name] = concatenated(batches).column(0).take(order)
    return together


class ChangedRows:
    """Rows that move. Columns that every clause gives anew are not read."""

    def __init__(self, values: ClauseValues) -> None:
        self._values, table = values, values.fitted.rows
        changed = frozenset(values.changes.columns_of(table, values.present)).difference(values.kept)
        used = dict.fromkeys(path[0] for path in values.target_paths)
        names = [name for name in table.names if name not in changed or name in used]
        known = frozenset(table.names)
        system = {name: (name,) for name in used if name not in known and name in SYSTEM_COLUMNS}
        self.selection = None
        if names or system:
            self.selection = extend_selection(select_columns(table, names), table, system)
        self.rows_at_a_time = values.rows_at_a_time

    def batch(self, numbers: Offsets, old: pa.RecordBatch | None) -> pa.RecordBatch:
        """All columns of the table."""
        names = self._values.fitted.table.names
        new = self._values.columns(numbers, names, no_columns(len(numbers)) if old is None else old)
        return pa.RecordBatch.from_arrays([new[name] for name in names], names=list(names))


class ChangedColumns:
    """Columns in place."""

    def __init__(self, values: ClauseValues, columns: tuple[str, ...]) -> None:
        self._values, self.columns = values, columns
        used = dict.fromkeys(path[0] for path in values.target_paths)
        self.inputs = tuple(dict.fromkeys([*values.kept, *used]))
        self.rows_at_a_time = values.rows_at_a_time

    def paths(self, *, every_row: bool) -> Sequence[Path]:
        """Old values of rows that stay, or keep something; and what the expressions look at."""
        kept = self._values.kept if every_row else self.columns
        return [*((name,) for name in kept), *self._values.target_paths]

    def values(self, begin: int, end: int, old: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """The columns in the table's types."""
        return self._values.columns(np.arange(begin, end), self.columns, old)


def inserted_rows(inserts: Inserts, fitted: FittedSchema, source: pa.RecordBatch) -> pa.RecordBatch:
    """New rows of source rows, in their order: of those that a clause takes."""
    chosen = chosen_clauses(inserts.conditions, source)
    present = [number for number in np.unique(chosen).tolist() if number >= 0]
    parts = [np.flatnonzero(chosen == number) for number in present]
    made = [
        inserts.values(number, fitted, some_rows(source, part)) for number, part in zip(present, parts, strict=True)
    ]
    if not made:
        return inserts.values(0, fitted, source.slice(0, 0))
    if len(made) == 1:
        return made[0]
    order = pa.array(np.argsort(np.concatenate(parts), kind="stable"))
    return concatenated(made).take(order)
