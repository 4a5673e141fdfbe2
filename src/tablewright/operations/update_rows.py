"""An update that moves rows: those that match are written anew, with all their columns, to new fragments.

A task takes several fragments, so that a small update makes one new file and not one per fragment. It reads the rows,
evaluates the expressions on them, and moves them (:mod:`.rewrite.move`).

Format: ``docs/format/transactions.md#rows-that-move``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.move import Moved, Origin, as_offsets, move_rows
from tablewright.operations.rewrite.row_order import RowOrder, Window, windows
from tablewright.operations.update_values import Assignments
from tablewright.reading.context import TaskContext
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.match import live_rows
from tablewright.reading.projection import extend_selection, select_columns
from tablewright.reading.run import fragment_scans
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["RowsPart", "RowsTask", "run_rows_task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPart:
    """Rows of one fragment. ``offsets`` ``None`` stands for all live rows."""

    fragment: Fragment
    first_row: int
    offsets: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTask:
    """Rows that move, as a letter: parts in the order of their fragments' ids."""

    location: Location
    version: int
    base_paths: tuple[BasePath, ...]
    table: Schema
    assignments: Assignments
    file_version: str
    parts: tuple[RowsPart, ...]


def run_rows_task(task: RowsTask, world: World) -> Moved:
    """Write the changed rows, and hide the old ones. If it fails, nothing stays behind."""
    context = TaskContext(world, task.base_paths)
    mover = _Mover(task, context)
    origins = [Origin(part.fragment, offsets, FrozenBitMap()) for part, offsets in mover.places]
    return move_rows(context, world, task.table, mover, origins, version=task.version, file_version=task.file_version)


def _offsets(context: TaskContext, part: RowsPart) -> FrozenBitMap:
    if part.offsets is not None:
        return FrozenBitMap.deserialize(part.offsets)
    return live_rows(context, [part.fragment]).get(part.fragment.id, FrozenBitMap())


class _Mover:
    """The rows of a task with their new values, as a stream that is read ahead."""

    are_read = True

    def __init__(self, task: RowsTask, context: TaskContext) -> None:
        self._task, self._context = task, context
        self.places = [(part, _offsets(context, part)) for part in task.parts]
        used = dict.fromkeys(path[0] for path in task.assignments.paths)
        known = frozenset(task.table.names)
        system = {name: (name,) for name in used if name not in known and name in SYSTEM_COLUMNS}
        selection = extend_selection(select_columns(task.table, None), task.table, system)
        self._reads = ReadPlan.of_known_rows(task.table, selection)
        self.rows_read = self.bytes_read = 0

    def batches(self, order: RowOrder) -> Iterator[pa.RecordBatch]:
        if order.places is None:
            changed = prefetch(self._changed, self._runs())
        else:
            offsets = [as_offsets(bitmap) for _, bitmap in self.places]
            changed = prefetch(self._changed_window, windows(list(self._scans()), offsets, order.places))
        for part in changed:
            for size, batch in part:
                self.rows_read += batch.num_rows
                self.bytes_read += size
                yield batch

    def _scans(self) -> Iterator[FragmentScan]:
        fragments = [part.fragment for part, _ in self.places]
        return fragment_scans(self._context, self._reads, fragments, [part.first_row for part, _ in self.places])

    def _runs(self) -> Iterator[tuple[FragmentScan, Rows]]:
        for scan, (_, bitmap) in zip(self._scans(), self.places, strict=True):
            offsets = as_offsets(bitmap)
            for rows in scan.windows(Rows(no_columns(len(offsets)), chosen=offsets)):
                yield scan, rows

    def _changed(self, run: tuple[FragmentScan, Rows]) -> list[tuple[int, pa.RecordBatch]]:
        scan, rows = run
        return [(batch.nbytes, self._with_new_values(batch)) for batch in scan.complete(rows)]

    def _changed_window(self, window: Window) -> list[tuple[int, pa.RecordBatch]]:
        batch = window.read()
        return [(batch.nbytes, self._with_new_values(batch))]

    def _with_new_values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        new = self._task.assignments.changed(batch)
        names = self._task.assignments.schema.names
        return pa.RecordBatch.from_arrays([new[name] if name in new else batch.column(name) for name in names], names)
