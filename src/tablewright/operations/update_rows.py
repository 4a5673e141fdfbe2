"""An update that moves rows: those that match are written anew, with all their columns, to new fragments (§7.1).

A task takes several fragments, so that a small update makes one new file and not one per fragment. It reads the rows in
the order of their addresses, evaluates the expressions on them, and writes; then the old ones are hidden behind
deletion files. On tables with stable row ids the new fragments bring the ids of their rows, in the order written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.data.prefetch import prefetch, spread
from tablewright.data.read import Rows, no_columns
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.schema import Schema
from tablewright.operations.delete import Hidden, hide_rows
from tablewright.operations.leftovers import removed_on_failure
from tablewright.operations.match import live_rows
from tablewright.operations.scan_columns import extend_selection, select_columns
from tablewright.operations.scan_context import TaskContext
from tablewright.operations.scan_fragment import FragmentScan, ReadPlan
from tablewright.operations.scan_run import fragment_scans
from tablewright.operations.update_values import Assignments
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["ROWS_PER_FILE_MAX", "RowsPart", "RowsResult", "RowsTask", "moved_ids", "run_rows_task", "with_row_ids"]

ROWS_PER_FILE_MAX = 1024 * 1024
_SEQUENCES_JOINED_MAX = 16


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsResult:
    """The rows that are hidden where they were, and the new fragments (without ids yet) that hold them now."""

    hidden: tuple[Hidden, ...]
    fragments: tuple[Fragment, ...]
    rows_read: int
    bytes_read: int

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written."""
        return (*_data_paths(self.fragments), *(path for each in self.hidden for path in each.paths))

    @property
    def bytes_written(self) -> int:
        """The size of the new data files."""
        return sum(file.file_size_bytes for fragment in self.fragments for file in fragment.files)


def run_rows_task(task: RowsTask, world: World) -> RowsResult:
    """Write the changed rows, and hide the old ones. If it fails, nothing stays behind."""
    context = TaskContext(world, task.base_paths)
    places = [(part, _offsets(context, part)) for part in task.parts]
    options = WriteOptions(max_rows_per_file=ROWS_PER_FILE_MAX, data_storage_version=task.file_version)
    mover = _Mover(task, context)
    with removed_on_failure(world) as leftovers:
        fragments = write_fragments(world, task.table, mover.batches(places), options)
        leftovers.add(_data_paths(fragments))

        def hide(place: tuple[RowsPart, FrozenBitMap]) -> Hidden:
            part, offsets = place
            hidden = hide_rows(context, world, task.version, part.fragment, encode_bitmap(offsets))
            leftovers.add(hidden.paths)
            return hidden

        return RowsResult(
            hidden=tuple(spread(hide, places)),
            fragments=with_row_ids(
                fragments, moved_ids(context, [(part.fragment, offsets) for part, offsets in places])
            ),
            rows_read=mover.rows_read,
            bytes_read=mover.bytes_read,
        )


def _data_paths(fragments: Sequence[Fragment]) -> list[str]:
    return [data_path(file.path) for fragment in fragments for file in fragment.files]


def _offsets(context: TaskContext, part: RowsPart) -> FrozenBitMap:
    if part.offsets is not None:
        return FrozenBitMap.deserialize(part.offsets)
    return live_rows(context, [part.fragment]).get(part.fragment.id, FrozenBitMap())


class _Mover:
    """The rows of a task with their new values, as a stream that is read ahead."""

    def __init__(self, task: RowsTask, context: TaskContext) -> None:
        self._task, self._context = task, context
        used = dict.fromkeys(path[0] for path in task.assignments.paths)
        system = {name: (name,) for name in used if name not in task.table.names and name in SYSTEM_COLUMNS}
        selection = extend_selection(select_columns(task.table, None), task.table, system)
        self._reads = ReadPlan.of_known_rows(task.table, selection)
        self.rows_read = self.bytes_read = 0

    def batches(self, places: Sequence[tuple[RowsPart, FrozenBitMap]]) -> Iterator[pa.RecordBatch]:
        for part in prefetch(self._changed, self._runs(places)):
            for size, batch in part:
                self.rows_read += batch.num_rows
                self.bytes_read += size
                yield batch

    def _runs(self, places: Sequence[tuple[RowsPart, FrozenBitMap]]) -> Iterator[tuple[FragmentScan, Rows]]:
        fragments = [part.fragment for part, _ in places]
        scans = fragment_scans(self._context, self._reads, fragments, [part.first_row for part, _ in places])
        for scan, (_, bitmap) in zip(scans, places, strict=True):
            offsets = _as_array(bitmap)
            for rows in scan.windows(Rows(no_columns(len(offsets)), chosen=offsets)):
                yield scan, rows

    def _changed(self, run: tuple[FragmentScan, Rows]) -> list[tuple[int, pa.RecordBatch]]:
        scan, rows = run
        return [(batch.nbytes, self._with_new_values(batch)) for batch in scan.complete(rows)]

    def _with_new_values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        new = self._task.assignments.changed(batch)
        names = self._task.assignments.schema.names
        return pa.RecordBatch.from_arrays([new[name] if name in new else batch.column(name) for name in names], names)


def moved_ids(context: TaskContext, places: Sequence[tuple[Fragment, FrozenBitMap]]) -> RowIdSequence | None:
    """The stable row ids of the rows in the order in which they were written; ``None`` if the table has none."""
    known = [
        ids.select(_as_array(offsets)) for fragment, offsets in places if (ids := context.row_ids(fragment)) is not None
    ]
    if not known:
        return None
    if len(known) == 1:
        return known[0]
    together = RowIdSequence.from_values(np.concatenate([ids.to_numpy() for ids in known]))
    if len(known) > _SEQUENCES_JOINED_MAX:  # so many segments are never shorter than one of them all
        return together
    return min(together, reduce(RowIdSequence.concat, known), key=lambda ids: len(encode_row_ids(ids)))


def _as_array(offsets: FrozenBitMap) -> npt.NDArray[np.int64]:
    return DeletionVector(offsets).to_numpy().astype(np.int64)


def with_row_ids(fragments: Sequence[Fragment], ids: RowIdSequence | None) -> tuple[Fragment, ...]:
    """Each new fragment with the ids of its own rows."""
    if ids is None:
        return tuple(fragments)
    carrying, begin = [], 0
    for fragment in fragments:
        end = begin + fragment.physical_rows
        carrying.append(replace(fragment, row_ids=encode_row_ids(ids.slice(begin, end))))
        begin = end
    return tuple(carrying)
