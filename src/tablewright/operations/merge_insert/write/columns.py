"""Columns in place: those that the source gives are written anew for all physical rows of a fragment.

Pieces of the fragment are read, changed and written one after the other, deleted rows included. Rows that match get
the source's values, the others keep theirs. Where every physical row matches, old values are not even read.

Format: ``docs/format/transactions.md#columns-in-place``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.conform import conform, solid
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows
from tablewright.data.write import write_data_file
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.operations.merge_insert.match.pairs import Offsets, Pairs
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedSource, opened
from tablewright.operations.merge_insert.write.rows import bitmap_of
from tablewright.operations.merge_insert.write.values import merged_values
from tablewright.operations.rewrite.column_values import filled, placed
from tablewright.operations.rewrite.hide import Hidden, hide_rows
from tablewright.reading.context import TaskContext
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import RowLayout, Selection
from tablewright.reading.run import fragment_scans
from tablewright.storage.base import Location
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = ["PatchResult", "PatchTask", "run_patch_task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchTask:
    """One fragment whose columns change, as a letter; ``deleted`` rows go."""

    location: Location
    version: int
    base_paths: tuple[BasePath, ...]
    fitted: FittedSchema
    columns: tuple[str, ...]
    source: KeptSource | SharedSource
    file_version: str
    fragment: Fragment
    first_row: int
    pairs: Pairs
    deleted: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchResult:
    """The column file that was written, the rows (a serialised bitmap) whose values changed, and those that went."""

    fragment_id: int
    file: DataFile
    offsets: bytes
    hidden: Hidden | None
    rows_read: int
    bytes_read: int
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        return (data_path(self.file.path), *self.sidecars, *(() if self.hidden is None else self.hidden.paths))

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return self.file.file_size_bytes + (0 if self.hidden is None else self.hidden.bytes_written)


def run_patch_task(task: PatchTask, world: World) -> PatchResult:
    """Write the columns that change. If it fails, nothing stays behind."""
    context = TaskContext(world, task.base_paths)
    table, fragment = task.fitted.rows, task.fragment
    patcher = _Patcher(task, opened(task.source, world))
    (scan,) = fragment_scans(context, patcher.reads, [fragment], [task.first_row])
    written = table.project_ids(
        id for field in table.top_level if field.name in task.columns for id in table.descendants(field.id)
    )
    with removed_on_failure(world.store) as leftovers:
        sidecars: list[str] = []
        file, _ = write_data_file(world, written, patcher.batches(scan), task.file_version, sidecars=sidecars)
        leftovers.add([data_path(file.path), *sidecars])
        hidden = None
        if len(task.deleted):
            gone = encode_bitmap(bitmap_of(task.deleted))
            hidden = hide_rows(context, world, task.version, fragment, gone)
    return PatchResult(
        fragment_id=fragment.id,
        file=file,
        offsets=encode_bitmap(bitmap_of(task.pairs.offsets)),
        hidden=hidden,
        rows_read=patcher.rows_read,
        bytes_read=patcher.bytes_read,
        sidecars=tuple(sidecars),
    )


class _Patcher:
    """The batches of a new column file."""

    def __init__(self, task: PatchTask, source: KeptSource) -> None:
        self._task, self._source = task, source
        self._offsets = task.pairs.offsets.astype(np.int64)
        self._schema = task.fitted.rows.to_arrow()
        everything = len(self._offsets) == task.fragment.physical_rows
        kept = [name for name in task.columns if not everything or name in task.fitted.in_part]
        self.reads = ReadPlan(
            table=task.fitted.rows,
            selection=Selection.nothing(),
            predicate=None,
            first=RowLayout.of(task.fitted.rows, [(name,) for name in kept]),
            rest=RowLayout.of(task.fitted.rows, ()),
            include_deleted=True,
        )
        self.rows_read = self.bytes_read = 0

    def batches(self, scan: FragmentScan) -> Iterator[pa.RecordBatch]:
        """All physical rows of the fragment, changed, in order."""
        for part in prefetch(lambda piece: self._changed(scan, *piece), self._pieces(scan)):
            for rows, batch in part:
                self.rows_read += len(rows) if rows.batch.num_columns else 0
                self.bytes_read += rows.batch.nbytes
                yield batch

    def _pieces(self, scan: FragmentScan) -> Iterator[tuple[int, int]]:
        step = self._source.rows_per_batch_of(self._task.columns)
        for _, start, stop in scan.pieces():
            for begin in range(start, stop, step):
                yield begin, min(stop, begin + step)

    def _changed(self, scan: FragmentScan, start: int, stop: int) -> list[tuple[Rows, pa.RecordBatch]]:
        return [(rows, self._batch(rows)) for rows in scan.read(start, stop)]

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        begin, end = np.searchsorted(self._offsets, [rows.start, rows.start + len(rows)])
        matching, old, columns = self._offsets[begin:end] - rows.start, rows.batch, self._task.columns
        if not len(matching):
            arrays = [old.column(name) for name in columns]
        else:
            source = self._source.take(self._task.pairs.positions[begin:end], columns)
            arrays = [self._column(name, source, old, matching) for name in columns]
        fields = [self._schema.field(name) for name in columns]
        complete = [filled(array, field) for array, field in zip(arrays, fields, strict=True)]
        return solid(pa.RecordBatch.from_arrays(complete, names=list(columns)))

    def _column(self, name: str, source: pa.RecordBatch, old: pa.RecordBatch, matching: np.ndarray) -> pa.Array:
        fitted, field = self._task.fitted, self._schema.field(name)
        all_match = len(matching) == old.num_rows
        own = None
        if name in fitted.in_part:
            own = old.select([name]) if all_match else old.select([name]).take(pa.array(matching))
        new = merged_values(fitted, name, source, own)
        fitting = conform(pa.RecordBatch.from_arrays([new], names=[name]), pa.schema([field])).column(0)
        return fitting if all_match else placed(old.column(name), matching, fitting)
