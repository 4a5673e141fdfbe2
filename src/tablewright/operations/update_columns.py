"""An update in place: the columns that change, written anew for all physical rows of one fragment.

Pieces of the fragment are read, changed and written one after the other: the columns that change and those that the
expressions look at, deleted rows included. Expressions see the matching rows of a piece only; their values are put
among the others, which stay what they are, also those of deleted rows. Where every physical row matches, old values are
not even read.

Format: ``docs/format/transactions.md#columns-in-place``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.data.conform import solid
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.data.write import write_data_file
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.column_values import filled, placed
from tablewright.operations.update_values import Assignments
from tablewright.reading.context import TaskContext
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.match import live_rows
from tablewright.reading.projection import RowLayout, Selection
from tablewright.reading.run import fragment_scans
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["ColumnsResult", "ColumnsTask", "run_columns_task"]

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsTask:
    """One fragment whose columns change, as a letter. ``offsets`` ``None`` stands for all live rows."""

    location: Location
    base_paths: tuple[BasePath, ...]
    table: Schema
    assignments: Assignments
    file_version: str
    fragment: Fragment
    first_row: int
    offsets: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsResult:
    """The column file that was written, and the rows (a serialised bitmap) whose values changed."""

    fragment_id: int
    file: DataFile
    offsets: bytes
    rows_read: int
    bytes_read: int
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The file that was written, and the objects beside it."""
        return (data_path(self.file.path), *self.sidecars)

    @property
    def bytes_written(self) -> int:
        """Its size."""
        return self.file.file_size_bytes


def run_columns_task(task: ColumnsTask, world: World) -> ColumnsResult:
    """Write the columns that change. If it fails, nothing stays behind."""
    context = TaskContext(world, task.base_paths)
    fragment, table = task.fragment, task.table
    if task.offsets is None:
        offsets = live_rows(context, [fragment]).get(fragment.id, FrozenBitMap())
    else:
        offsets = FrozenBitMap.deserialize(task.offsets)
    writer = _Writer(task, DeletionVector(offsets).to_numpy().astype(np.int64))
    (scan,) = fragment_scans(context, writer.reads, [fragment], [task.first_row])
    changed = frozenset(task.assignments.columns)
    written = table.project_ids(
        id for field in table.top_level if field.name in changed for id in table.descendants(field.id)
    )
    sidecars: list[str] = []
    file, _ = write_data_file(world, written, writer.batches(scan), task.file_version, sidecars=sidecars)
    return ColumnsResult(
        fragment_id=fragment.id,
        file=file,
        offsets=encode_bitmap(offsets),
        rows_read=writer.rows_read,
        bytes_read=writer.bytes_read,
        sidecars=tuple(sidecars),
    )


class _Writer:
    """The batches of a new column file."""

    def __init__(self, task: ColumnsTask, offsets: Offsets) -> None:
        self._assignments, self._offsets = task.assignments, offsets
        everything = len(offsets) == task.fragment.physical_rows
        kept = task.assignments.kept_in_part if everything else task.assignments.columns
        paths = [*((name,) for name in kept), *task.assignments.paths]
        self.reads = ReadPlan(
            table=task.table,
            selection=Selection.nothing(),
            predicate=None,
            first=RowLayout.of(task.table, paths),
            rest=RowLayout.of(task.table, ()),
            include_deleted=True,
        )
        self.rows_read = self.bytes_read = 0

    def batches(self, scan: FragmentScan) -> Iterator[pa.RecordBatch]:
        """All physical rows of the fragment, changed, in order."""
        for part in prefetch(lambda piece: self._changed(scan, piece[1], piece[2]), scan.pieces()):
            for rows, batch in part:
                self.rows_read += len(rows)
                self.bytes_read += rows.batch.nbytes
                yield batch

    def _changed(self, scan: FragmentScan, start: int, stop: int) -> list[tuple[Rows, pa.RecordBatch]]:
        return [(rows, self._batch(rows)) for rows in scan.read(start, stop)]

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        begin, end = np.searchsorted(self._offsets, [rows.start, rows.start + len(rows)])
        matching = self._offsets[begin:end] - rows.start
        old = rows.batch
        schema = self._assignments.schema
        if len(matching) == len(rows):
            new = self._assignments.changed(old)
        elif len(matching):
            names = list(self._assignments.inputs)
            inputs = old.select(names).take(pa.array(matching)) if names else no_columns(len(matching))
            found = self._assignments.changed(inputs)
            new = {name: placed(old.column(name), matching, values) for name, values in found.items()}
        else:
            new = {name: old.column(name) for name in self._assignments.columns}
        arrays = [filled(new[name], schema.field(name)) for name in self._assignments.columns]
        return solid(pa.RecordBatch.from_arrays(arrays, names=list(self._assignments.columns)))
