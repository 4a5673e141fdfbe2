"""Columns in place: those that change are written again for all physical rows of one fragment.

Pieces of the fragment are read, changed and written one after the other, deleted rows included. New values are made
for the rows of a piece that match, and put among the others, which keep theirs, also those of deleted rows. Where every
physical row matches, old values are not even read.

Format: ``docs/format/transactions.md#columns-in-place``.

Tests: ``tests/unit/operations/test_update.py``, ``tests/differential/operations/test_update.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablewright.data.conform import solid
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.data.task_context import TaskContext
from tablewright.data.write import write_data_file
from tablewright.format.fragment import DataFile
from tablewright.format.naming import data_path
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.column_values import filled, placed
from tablewright.operations.rewrite.fragment_change import FragmentChange
from tablewright.operations.rewrite.hide import Hidden, hide_rows
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import Path, RowLayout, Selection
from tablewright.reading.run import fragment_scans
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = ["NewColumns", "PatchedColumns", "patch_columns"]


class NewColumns(Protocol):
    """What columns become where rows match. Threads ask for several pieces at a time."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that change, in the order in which they are written."""

    @property
    def inputs(self) -> Sequence[str]:
        """The columns, system columns included, that :meth:`values` has to see of the rows that match."""

    @property
    def rows_at_a_time(self) -> int | None:
        """How many rows a piece has at most; ``None``: as many as are read at a time."""

    def paths(self, *, every_row: bool) -> Sequence[Path]:
        """What has to be read of all rows; ``every_row`` says that all of them match."""

    def values(self, begin: int, end: int, old: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """The columns in the table's types, for the matching rows number ``begin`` up to ``end`` of the fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedColumns:
    """The column file that was written, the rows whose values changed, and those that went.

    ``updated`` are the rows that take the new version: those whose values changed, and deleted rows beside them, whose
    version no reader sees. Scattered deletes would cut the runs of versions otherwise.
    """

    fragment_id: int
    file: DataFile
    rows: RowSet
    updated: RowSet
    rows_read: int
    bytes_read: int
    hidden: Hidden | None = None
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        return (data_path(self.file.path), *self.sidecars, *(() if self.hidden is None else self.hidden.paths))

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return self.file.file_size_bytes + (0 if self.hidden is None else self.hidden.bytes_written)


def patch_columns(
    context: TaskContext,
    world: World,
    table: Schema,
    new: NewColumns,
    change: FragmentChange,
    *,
    version: int,
    file_version: str,
) -> PatchedColumns:
    """Write the columns that change, and hide the rows that go. If it fails, no file stays."""
    patch = _Patch(table, new, change)
    (scan,) = fragment_scans(context, patch.reads, [change.fragment], [change.first_row])
    written = table.project_ids(table.node_ids(new.columns))
    with removed_on_failure(world.store) as files:
        sidecars: list[str] = []
        file, rows = write_data_file(world, written, patch.batches(scan), file_version, sidecars=sidecars)
        files.add([data_path(file.path), *sidecars])
        assert rows == change.fragment.physical_rows, f"{rows} values were written: a column has one per physical row"
        hidden = None
        if change.deleted:
            hidden = hide_rows(context, world, version, change.fragment, change.deleted)
    return PatchedColumns(
        fragment_id=change.fragment.id,
        file=file,
        rows=change.changed,
        updated=_updated(context, change),
        hidden=hidden,
        rows_read=patch.rows_read,
        bytes_read=patch.bytes_read,
        sidecars=tuple(sidecars),
    )


def _updated(context: TaskContext, change: FragmentChange) -> RowSet:
    if change.fragment.row_ids is None:
        return change.changed
    deleted = context.deletion_vector(change.fragment) or RowSet()
    return change.changed.spread_over(deleted | change.deleted)


class _Patch:
    """The batches of a new column file, made ahead of the writer; and how much was read for them."""

    def __init__(self, table: Schema, new: NewColumns, change: FragmentChange) -> None:
        self._new, self._offsets = new, change.offsets
        known = table.to_arrow()
        self._fields = [known.field(name) for name in new.columns]
        every_row = len(self._offsets) == change.fragment.physical_rows
        self.reads = ReadPlan(
            table=table,
            selection=Selection.nothing(),
            predicate=None,
            first=RowLayout.of(table, new.paths(every_row=every_row)),
            rest=RowLayout.of(table, ()),
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
        for _, start, stop in scan.pieces():
            step = self._new.rows_at_a_time or stop - start
            for begin in range(start, stop, step):
                yield begin, min(stop, begin + step)

    def _changed(self, scan: FragmentScan, start: int, stop: int) -> list[tuple[Rows, pa.RecordBatch]]:
        return [(rows, self._batch(rows)) for rows in scan.read(start, stop)]

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        begin, end = np.searchsorted(self._offsets, [rows.start, rows.start + len(rows)]).tolist()
        arrays = self._columns(rows.batch, begin, end, self._offsets[begin:end] - rows.start)
        complete = [filled(array, field) for array, field in zip(arrays, self._fields, strict=True)]
        return solid(pa.RecordBatch.from_arrays(complete, names=list(self._new.columns)))

    def _columns(self, old: pa.RecordBatch, begin: int, end: int, matching: Offsets) -> list[pa.Array]:
        """The columns of a batch with new values at the rows ``matching``, which are number ``begin`` up to ``end``."""
        columns, names = self._new.columns, list(self._new.inputs)
        if not len(matching):
            return [old.column(name) for name in columns]
        inputs = old.select(names) if names else no_columns(len(matching))
        if len(matching) == old.num_rows:
            values = self._new.values(begin, end, inputs)
            return [values[name] for name in columns]
        values = self._new.values(begin, end, inputs.take(pa.array(matching)) if names else inputs)
        return [placed(old.column(name), matching, values[name]) for name in columns]
