"""The tasks that write: rows that move, columns in place, new rows, deletion files. One stage runs them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tablewright.data.prefetch import prefetch, spread
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.operations.merge_insert.decide import Actions
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairs import Offsets, no_offsets
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedSource, opened
from tablewright.operations.merge_insert.write.columns import PatchResult, PatchTask, run_patch_task
from tablewright.operations.merge_insert.write.rows import (
    MovedPart,
    MovedTask,
    bitmap_of,
    run_moved_task,
)
from tablewright.operations.rewrite.costs import REWRITE_COLUMNS, REWRITE_ROWS
from tablewright.operations.rewrite.groups import row_groups
from tablewright.operations.rewrite.hide import Hidden, hide_rows
from tablewright.operations.rewrite.move import ROWS_PER_FILE_MAX, Moved
from tablewright.reading.context import TaskContext
from tablewright.storage.base import Location
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = [
    "HiddenResult",
    "HideTask",
    "InsertResult",
    "InsertTask",
    "WriteResult",
    "WriteTask",
    "run_write_task",
    "write_tasks",
]

_INSERT_BYTES = 256 * 1024 * 1024
_HIDDEN_PER_TASK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertTask:
    """Source rows that become new rows, as a letter."""

    location: Location
    fitted: FittedSchema
    source: KeptSource | SharedSource
    positions: Positions
    file_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertResult:
    """The fragments of new rows."""

    fragments: tuple[Fragment, ...]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        return tuple(data_path(file.path) for fragment in self.fragments for file in fragment.files)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return sum(file.file_size_bytes for fragment in self.fragments for file in fragment.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class HideTask:
    """Rows that go, of fragments in which nothing else changes, as a letter."""

    location: Location
    version: int
    base_paths: tuple[BasePath, ...]
    parts: tuple[tuple[Fragment, Offsets], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenResult:
    """The rows that went."""

    hidden: tuple[Hidden, ...]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The deletion files."""
        return tuple(path for each in self.hidden for path in each.paths)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return sum(each.bytes_written for each in self.hidden)


WriteTask: TypeAlias = MovedTask | PatchTask | InsertTask | HideTask
WriteResult: TypeAlias = Moved | PatchResult | InsertResult | HiddenResult


def run_write_task(task: WriteTask, world: World) -> WriteResult:
    """Write what a task is about. If it fails, nothing stays behind."""
    match task:
        case MovedTask():
            return run_moved_task(task, world)
        case PatchTask():
            return run_patch_task(task, world)
        case InsertTask():
            return _run_insert_task(task, world)
        case HideTask():
            return _run_hide_task(task, world)


def _run_insert_task(task: InsertTask, world: World) -> InsertResult:
    source, positions = opened(task.source, world), task.positions
    step = source.rows_per_batch

    def cuts() -> Iterator[Positions]:
        return (positions[begin : begin + step] for begin in range(0, len(positions), step))

    def rows(cut: Positions) -> pa.RecordBatch:
        return source.take(cut)

    options = WriteOptions(max_rows_per_file=ROWS_PER_FILE_MAX, data_storage_version=task.file_version)
    return InsertResult(fragments=write_fragments(world, task.fitted.written(), prefetch(rows, cuts()), options))


def _run_hide_task(task: HideTask, world: World) -> HiddenResult:
    context = TaskContext(world, task.base_paths)
    with removed_on_failure(world.store) as leftovers:

        def hide(part: tuple[Fragment, Offsets]) -> Hidden:
            fragment, offsets = part
            hidden = hide_rows(context, world, task.version, fragment, encode_bitmap(bitmap_of(offsets)))
            leftovers.add(hidden.paths)
            return hidden

        return HiddenResult(hidden=tuple(spread(hide, task.parts)))


# -------------------------------------------------------------------------------------------------------------- letters
def write_tasks(
    plan: MergePlan, actions: Actions, source: KeptSource | SharedSource, edges: Sequence[int] = ()
) -> tuple[WriteTask, ...]:
    """All that has to be written, the largest parts first. ``edges`` is where parts of inserted rows began before."""
    return (
        *_patch_tasks(plan, actions, source),
        *_moved_tasks(plan, actions, source),
        *_insert_tasks(plan, actions, source, edges),
        *_hide_tasks(plan, actions),
    )


def _first_rows(plan: MergePlan, ids: Sequence[int]) -> dict[int, int]:
    places = np.flatnonzero(np.isin(plan.fragments.ids.astype(np.int64), np.array(list(ids), np.int64)))
    return {int(plan.fragments.ids[place]): plan.scan.first_rows[place] for place in places.tolist()}


def _patch_tasks(plan: MergePlan, actions: Actions, source: KeptSource | SharedSource) -> Iterator[PatchTask]:
    whole = plan.scan
    chosen = [choice.fragment_id for choice in actions.decision.of_mode(REWRITE_COLUMNS)]
    first_rows = _first_rows(plan, chosen)
    for id in chosen:
        yield PatchTask(
            location=whole.location,
            version=whole.version,
            base_paths=whole.base_paths,
            fitted=plan.fitted,
            columns=plan.changed_columns,
            source=source,
            file_version=plan.file_version,
            fragment=plan.fragments.by_id(id),
            first_row=first_rows[id],
            pairs=actions.updated[id],
            deleted=actions.deleted.get(id, no_offsets()),
        )


def _moved_tasks(plan: MergePlan, actions: Actions, source: KeptSource | SharedSource) -> Iterator[MovedTask]:
    whole = plan.scan
    choices = actions.decision.of_mode(REWRITE_ROWS)
    first_rows = _first_rows(plan, [choice.fragment_id for choice in choices])
    for group in row_groups(choices):
        parts = tuple(
            MovedPart(
                fragment=plan.fragments.by_id(choice.fragment_id),
                first_row=first_rows[choice.fragment_id],
                pairs=actions.updated[choice.fragment_id],
                deleted=actions.deleted.get(choice.fragment_id, no_offsets()),
            )
            for choice in group
        )
        yield MovedTask(
            location=whole.location,
            version=whole.version,
            base_paths=whole.base_paths,
            fitted=plan.fitted,
            source=source,
            file_version=plan.file_version,
            parts=parts,
        )


def _insert_tasks(
    plan: MergePlan, actions: Actions, source: KeptSource | SharedSource, edges: Sequence[int]
) -> Iterator[InsertTask]:
    rows = len(actions.inserted)
    total = source.nbytes * rows // max(1, source.num_rows)
    parts = max(1, -(-rows // ROWS_PER_FILE_MAX), -(-total // _INSERT_BYTES))
    if edges:
        split = np.split(actions.inserted, np.searchsorted(actions.inserted, edges[1:]))
    else:
        split = np.array_split(actions.inserted, parts)
    for positions in split:
        if len(positions):
            yield InsertTask(
                location=plan.scan.location,
                fitted=plan.fitted,
                source=source,
                positions=positions,
                file_version=plan.file_version,
            )


def _hide_tasks(plan: MergePlan, actions: Actions) -> Iterator[HideTask]:
    whole = plan.scan
    alone = [id for id in actions.deleted if id not in actions.updated]
    for begin in range(0, len(alone), _HIDDEN_PER_TASK):
        ids = alone[begin : begin + _HIDDEN_PER_TASK]
        yield HideTask(
            location=whole.location,
            version=whole.version,
            base_paths=whole.base_paths,
            parts=tuple((plan.fragments.by_id(id), actions.deleted[id]) for id in ids),
        )
