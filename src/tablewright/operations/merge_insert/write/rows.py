"""Rows that move: those that match are written anew to new fragments, and hidden where they were.

A task takes several fragments, so that a small merge makes one new file and not one per fragment. A source with
all columns is written as it is; for a partial one the other columns of these rows, and of no others, are read. Rows
come in the order of their row ids where these are stable (:mod:`tablewright.operations.rewrite.row_order`), else in
that of their addresses.

Format: ``docs/format/transactions.md#rows-that-move``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairs import Offsets, Pairs
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedSource, opened
from tablewright.operations.merge_insert.write.values import merged_rows
from tablewright.operations.rewrite.move import Moved, Origin, move_rows
from tablewright.operations.rewrite.row_order import RowOrder, Window, windows
from tablewright.reading.context import TaskContext
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import select_columns
from tablewright.reading.run import fragment_scans
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["MovedPart", "MovedTask", "bitmap_of", "run_moved_task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPart:
    """Rows of one fragment that get the values of source rows; ``deleted`` ones go without."""

    fragment: Fragment
    first_row: int
    pairs: Pairs
    deleted: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedTask:
    """Rows that move, as a letter: parts in the order of their fragments' ids."""

    location: Location
    version: int
    base_paths: tuple[BasePath, ...]
    fitted: FittedSchema
    source: KeptSource | SharedSource
    file_version: str
    parts: tuple[MovedPart, ...]


def bitmap_of(*offsets: Offsets) -> FrozenBitMap:
    """The set of some offsets."""
    return DeletionVector.of(np.concatenate(offsets)).bitmap


def run_moved_task(task: MovedTask, world: World) -> Moved:
    """Write the rows, and hide the old ones. If it fails, nothing stays behind."""
    context = TaskContext(world, task.base_paths)
    mover = _Mover(task, context, opened(task.source, world))
    origins = [Origin(part.fragment, bitmap_of(part.pairs.offsets), bitmap_of(part.deleted)) for part in task.parts]
    table, version = task.fitted.rows, task.version
    return move_rows(context, world, table, mover, origins, version=version, file_version=task.file_version)


class _Mover:
    """The new rows of a task, as a stream that is made ahead."""

    def __init__(self, task: MovedTask, context: TaskContext, source: KeptSource) -> None:
        self._task, self._context, self._source = task, context, source
        self.rows_read = self.bytes_read = 0

    @property
    def are_read(self) -> bool:
        """Whether something of each row is read from where it was."""
        return not self._task.fitted.is_full

    def batches(self, order: RowOrder) -> Iterator[pa.RecordBatch]:
        positions = np.concatenate([part.pairs.positions for part in self._task.parts])
        if order.places is not None:
            positions = positions[order.places]
        if self._task.fitted.is_full:
            step = self._source.rows_per_batch
            cuts = (positions[begin : begin + step] for begin in range(0, len(positions), step))
            yield from prefetch(self._taken, cuts)
            return
        if order.places is None:
            merged = prefetch(self._merged, self._windows())
        else:
            merged = prefetch(self._merged_window, self._windows_by_id(order.places, positions))
        for size, batch in merged:
            self.rows_read += batch.num_rows
            self.bytes_read += size
            yield batch

    def _taken(self, positions: Positions) -> pa.RecordBatch:
        return merged_rows(self._task.fitted, self._source.take(positions), None)

    def _scans(self) -> Iterator[FragmentScan]:
        task = self._task
        reads = ReadPlan.of_known_rows(task.fitted.rows, select_columns(task.fitted.rows, list(task.fitted.kept)))
        fragments, first_rows = [part.fragment for part in task.parts], [part.first_row for part in task.parts]
        return fragment_scans(self._context, reads, fragments, first_rows)

    def _windows(self) -> Iterator[tuple[FragmentScan, Rows, Positions]]:
        """Runs of matched rows, each small enough on either side."""
        step = self._source.rows_per_batch
        for scan, part in zip(self._scans(), self._task.parts, strict=True):
            offsets, done = part.pairs.offsets.astype(np.int64), 0
            for rows in scan.windows(Rows(no_columns(len(offsets)), chosen=offsets)):
                for begin in range(0, len(rows), step):
                    cut = rows.slice(begin, min(len(rows), begin + step))
                    yield scan, cut, part.pairs.positions[done : done + len(cut)]
                    done += len(cut)

    def _windows_by_id(self, places: Positions, positions: Positions) -> Iterator[tuple[Window, Positions]]:
        offsets, done = [part.pairs.offsets.astype(np.int64) for part in self._task.parts], 0
        for window in windows(list(self._scans()), offsets, places, self._source.rows_per_batch):
            yield window, positions[done : done + len(window.places)]
            done += len(window.places)

    def _merged_window(self, found: tuple[Window, Positions]) -> tuple[int, pa.RecordBatch]:
        window, positions = found
        target = window.read()
        return target.nbytes, merged_rows(self._task.fitted, self._source.take(positions), target)

    def _merged(self, window: tuple[FragmentScan, Rows, Positions]) -> tuple[int, pa.RecordBatch]:
        scan, rows, positions = window
        (target,) = scan.complete(rows)
        return target.nbytes, merged_rows(self._task.fitted, self._source.take(positions), target)
