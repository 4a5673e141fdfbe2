"""The tasks that write: rows that move, columns in place, new rows, deletion files. One stage runs them all.

Tests: ``tests/unit/operations/merge_insert/test_reuse.py``, ``tests/unit/api/test_merge_insert.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tablewright.data.prefetch import prefetch
from tablewright.data.task_context import TaskContext
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.changes import Changes, Inserts
from tablewright.operations.merge_insert.decide import Actions, changed_in
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairs import Pairs
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedSource, opened
from tablewright.operations.merge_insert.write.changed import ChangedColumns, ChangedRows, ClauseValues, inserted_rows
from tablewright.operations.merge_insert.write.values import SourceColumns, SourceRows
from tablewright.operations.rewrite.costs import REWRITE_COLUMNS, REWRITE_ROWS, FragmentChoice
from tablewright.operations.rewrite.finish import InsertedRows, Rewritten
from tablewright.operations.rewrite.fragment_change import FragmentChange
from tablewright.operations.rewrite.groups import row_groups
from tablewright.operations.rewrite.hide import HiddenRows, hide_each
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.operations.rewrite.move import MovedRows, NewRows, move_rows
from tablewright.operations.rewrite.patch import NewColumns, PatchedColumns, patch_columns
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = [
    "HideTask",
    "InsertTask",
    "MergeColumnsTask",
    "MergePart",
    "MergeRowsTask",
    "MergeWriteTask",
    "merge_write_tasks",
    "run_merge_write",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePart:
    """Rows of one fragment that get the values of source rows; ``deleted`` ones go without."""

    fragment: Fragment
    first_row: int
    pairs: Pairs
    deleted: RowSet

    @property
    def change(self) -> FragmentChange:
        """The same as sets of rows."""
        changed = RowSet.of(self.pairs.offsets)
        return FragmentChange(fragment=self.fragment, first_row=self.first_row, changed=changed, deleted=self.deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRowsTask:
    """Rows that move, as a message: parts in the order of their fragments' ids."""

    version: int
    base_paths: tuple[BasePath, ...]
    fitted: FittedSchema
    source: KeptSource | SharedSource
    file_version: str
    limits: RewriteLimits
    parts: tuple[MergePart, ...]
    changes: Changes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeColumnsTask:
    """One fragment whose columns change, as a message."""

    version: int
    base_paths: tuple[BasePath, ...]
    fitted: FittedSchema
    columns: tuple[str, ...]
    source: KeptSource | SharedSource
    file_version: str
    part: MergePart
    changes: Changes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTask:
    """Source rows that become new rows, as a message."""

    fitted: FittedSchema
    source: KeptSource | SharedSource
    positions: Positions
    file_version: str
    limits: RewriteLimits
    inserts: Inserts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HideTask:
    """Rows that go, of fragments in which nothing else changes, as a message."""

    version: int
    base_paths: tuple[BasePath, ...]
    parts: tuple[tuple[Fragment, RowSet], ...]


MergeWriteTask: TypeAlias = MergeRowsTask | MergeColumnsTask | InsertTask | HideTask


def run_merge_write(task: MergeWriteTask, world: World) -> Rewritten:
    """Write what a task is about. If it fails, no file stays."""
    match task:
        case MergeRowsTask():
            return _run_rows(task, world)
        case MergeColumnsTask():
            return _run_columns(task, world)
        case InsertTask():
            return _run_insert(task, world)
        case HideTask():
            return _run_hide(task, world)


def _run_rows(task: MergeRowsTask, world: World) -> MovedRows:
    context = TaskContext(world, task.base_paths)
    source = opened(task.source, world)
    positions = np.concatenate([part.pairs.positions for part in task.parts])
    rows: NewRows
    if task.changes is None:
        rows = SourceRows(task.fitted, source, positions)
    else:
        numbers = np.concatenate([part.pairs.numbers for part in task.parts])
        rows = ChangedRows(ClauseValues(task.fitted, task.changes, source, positions, numbers))
    return move_rows(
        context,
        world,
        task.fitted.rows,
        rows,
        [part.change for part in task.parts],
        version=task.version,
        file_version=task.file_version,
        limits=task.limits,
    )


def _run_columns(task: MergeColumnsTask, world: World) -> PatchedColumns:
    context, pairs = TaskContext(world, task.base_paths), task.part.pairs
    source, columns = opened(task.source, world), task.columns
    new: NewColumns
    if task.changes is None:
        new = SourceColumns(task.fitted, columns, source, pairs.positions)
    else:
        new = ChangedColumns(ClauseValues(task.fitted, task.changes, source, pairs.positions, pairs.numbers), columns)
    return patch_columns(
        context,
        world,
        task.fitted.rows,
        new,
        task.part.change,
        version=task.version,
        file_version=task.file_version,
    )


def _run_insert(task: InsertTask, world: World) -> InsertedRows:
    source, positions = opened(task.source, world), task.positions
    step = source.rows_per_batch

    def cuts() -> Iterator[Positions]:
        return (positions[begin : begin + step] for begin in range(0, len(positions), step))

    def rows(cut: Positions) -> pa.RecordBatch:
        if task.inserts is None:
            return source.take(cut)
        return inserted_rows(task.inserts, task.fitted, source.take(cut, task.inserts.source_columns))

    table = task.fitted.rows
    written = task.fitted.written()
    if task.inserts is not None:
        written = table.project_ids(table.node_ids(task.inserts.columns))
    options = WriteOptions(
        max_rows_per_file=task.limits.rows_per_file,
        data_storage_version=task.file_version,
        in_memory=len(positions) <= step,
    )
    return InsertedRows(fragments=write_fragments(world, written, prefetch(rows, cuts()), options))


def _run_hide(task: HideTask, world: World) -> HiddenRows:
    context = TaskContext(world, task.base_paths)
    with removed_on_failure(world.store) as files:
        return HiddenRows(hidden=hide_each(context, world, task.version, task.parts, files))


# ------------------------------------------------------------------------------------------------------ making tasks
def merge_write_tasks(
    plan: MergePlan, actions: Actions, source: KeptSource | SharedSource, edges: Sequence[int] = ()
) -> tuple[MergeWriteTask, ...]:
    """All that has to be written, the largest parts first. ``edges`` is where parts of inserted rows began before."""
    return (
        *_columns_tasks(plan, actions, source),
        *_rows_tasks(plan, actions, source),
        *_insert_tasks(plan, actions, source, edges),
        *_hide_tasks(plan, actions),
    )


def _parts(plan: MergePlan, actions: Actions, choices: Sequence[FragmentChoice]) -> tuple[MergePart, ...]:
    ids = [choice.fragment_id for choice in choices]
    return tuple(
        MergePart(
            fragment=plan.fragments[position],
            first_row=plan.scan.first_rows[position],
            pairs=actions.updated[id],
            deleted=actions.deleted.get(id, RowSet()),
        )
        for id, position in zip(ids, map(plan.fragments.position, ids), strict=True)
    )


def _columns_tasks(plan: MergePlan, actions: Actions, source: KeptSource | SharedSource) -> Iterator[MergeColumnsTask]:
    for part in _parts(plan, actions, actions.decision.of_mode(REWRITE_COLUMNS)):
        yield MergeColumnsTask(
            version=plan.scan.version,
            base_paths=plan.scan.base_paths,
            fitted=plan.fitted,
            columns=changed_in(plan, part.pairs),
            source=source,
            file_version=plan.file_version,
            part=part,
            changes=plan.changes,
        )


def _rows_tasks(plan: MergePlan, actions: Actions, source: KeptSource | SharedSource) -> Iterator[MergeRowsTask]:
    for group in row_groups(actions.decision.of_mode(REWRITE_ROWS), plan.limits.rewrite):
        yield MergeRowsTask(
            version=plan.scan.version,
            base_paths=plan.scan.base_paths,
            fitted=plan.fitted,
            source=source,
            file_version=plan.file_version,
            limits=plan.limits.rewrite,
            parts=_parts(plan, actions, group),
            changes=plan.changes,
        )


def _insert_tasks(
    plan: MergePlan, actions: Actions, source: KeptSource | SharedSource, edges: Sequence[int]
) -> Iterator[InsertTask]:
    rows = len(actions.inserted)
    total = source.nbytes * rows // max(1, source.num_rows)
    rows_per_file = plan.limits.rewrite.rows_per_file
    parts = max(1, -(-rows // rows_per_file), -(-total // plan.limits.insert_bytes))
    if edges:
        split = np.split(actions.inserted, np.searchsorted(actions.inserted, edges[1:]))
    else:
        split = np.array_split(actions.inserted, parts)
    for positions in split:
        if len(positions):
            yield InsertTask(
                fitted=plan.fitted,
                source=source,
                positions=positions,
                file_version=plan.file_version,
                limits=plan.limits.rewrite,
                inserts=None if plan.changes is None else plan.changes.inserts,
            )


def _hide_tasks(plan: MergePlan, actions: Actions) -> Iterator[HideTask]:
    alone = [id for id in actions.deleted if id not in actions.updated]
    step = plan.limits.hidden_per_task
    for begin in range(0, len(alone), step):
        ids = alone[begin : begin + step]
        yield HideTask(
            version=plan.scan.version,
            base_paths=plan.scan.base_paths,
            parts=tuple((plan.fragments.by_id(id), actions.deleted[id]) for id in ids),
        )
