"""The tasks of an update: rows of several fragments that move, or columns of one fragment that change in place.

Both evaluate the expressions on the rows that match and no others; how rows move and columns are written is
:mod:`.rewrite.move` and :mod:`.rewrite.patch`.

Tests: ``tests/unit/operations/test_update.py``, ``tests/differential/operations/test_update.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablewright.data.task_context import TaskContext
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.fragment_change import FragmentChange
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.operations.rewrite.move import MovedRows, move_rows
from tablewright.operations.rewrite.patch import PatchedColumns, patch_columns
from tablewright.operations.update_values import Assignments
from tablewright.reading.match import live_rows
from tablewright.reading.projection import Path, extend_selection, select_whole
from tablewright.world import World

__all__ = ["UpdateColumnsTask", "UpdatePart", "UpdateRowsTask", "run_update_columns", "run_update_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePart:
    """Rows of one fragment. ``rows`` ``None`` stands for all live rows."""

    fragment: Fragment
    first_row: int
    rows: RowSet | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRowsTask:
    """Rows that move, as a message: parts in the order of their fragments' ids."""

    version: int
    base_paths: tuple[BasePath, ...]
    table: Schema
    assignments: Assignments
    file_version: str
    limits: RewriteLimits
    parts: tuple[UpdatePart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnsTask:
    """One fragment whose columns change, as a message."""

    version: int
    base_paths: tuple[BasePath, ...]
    table: Schema
    assignments: Assignments
    file_version: str
    part: UpdatePart


def run_update_rows(task: UpdateRowsTask, world: World) -> MovedRows:
    """Write the changed rows, and hide the old ones. If it fails, no file stays."""
    context = TaskContext(world, task.base_paths)
    rows = _AssignedRows(task.table, task.assignments)
    changes = [_change(context, part) for part in task.parts]
    return move_rows(
        context,
        world,
        task.table,
        rows,
        changes,
        version=task.version,
        file_version=task.file_version,
        limits=task.limits,
    )


def run_update_columns(task: UpdateColumnsTask, world: World) -> PatchedColumns:
    """Write the columns that change. If it fails, no file stays."""
    context = TaskContext(world, task.base_paths)
    new, change = _AssignedColumns(task.assignments), _change(context, task.part)
    return patch_columns(context, world, task.table, new, change, version=task.version, file_version=task.file_version)


def _change(context: TaskContext, part: UpdatePart) -> FragmentChange:
    rows = part.rows
    if rows is None:
        rows = live_rows(context, [part.fragment]).get(part.fragment.id, RowSet())
    return FragmentChange(fragment=part.fragment, first_row=part.first_row, changed=rows)


class _AssignedRows:
    """Rows with assigned values: columns that stay, or that expressions use, are read, and system columns they use.

    If none is, all are: a batch has to say how many rows there are.
    """

    rows_at_a_time = None

    def __init__(self, table: Schema, assignments: Assignments) -> None:
        self._assignments = assignments
        used = dict.fromkeys(path[0] for path in assignments.paths)
        known = frozenset(table.names)
        system = {name: (name,) for name in used if name not in known and name in SYSTEM_COLUMNS}
        replaced = {item.path[0] for item in assignments.items if len(item.path) == 1}.difference(used)
        read = [name for name in table.names if name not in replaced] or table.names
        self.selection = extend_selection(select_whole(table, read), table, system)

    def batch(self, numbers: Offsets, old: pa.RecordBatch | None) -> pa.RecordBatch:
        """All columns of the table."""
        assert old is not None, "the rows are read: there is a selection"
        new = self._assignments.changed(old)
        names = self._assignments.schema.names
        return pa.RecordBatch.from_arrays([new[name] if name in new else old.column(name) for name in names], names)


class _AssignedColumns:
    """Columns with assigned values."""

    rows_at_a_time = None

    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments
        self.columns, self.inputs = assignments.columns, assignments.inputs

    def paths(self, *, every_row: bool) -> Sequence[Path]:
        """Old values of rows that do not match, or that keep some members; and what the expressions look at."""
        kept = self._assignments.kept_in_part if every_row else self.columns
        return [*((name,) for name in kept), *self._assignments.paths]

    def values(self, begin: int, end: int, old: pa.RecordBatch) -> dict[str, pa.Array]:
        """The values of the expressions."""
        return self._assignments.changed(old)
