"""Column files carried past a rewrite: values that were computed for old fragments, written for the new ones.

A column file has a value for every physical row of its fragment. A new fragment is made of live rows of old ones, so
its column file is made of theirs:

1. The old fragments are read in the order of the group, without the rows that were deleted when the rewrite read them,
   and cut at the borders of the new fragments (:meth:`~tablewright.format.address_map.AddressMap.pieces`).
2. For old fragments without a column file of ours, the values are those that the new fragment has; a column without a
   data file there is null.
3. Rows of an old fragment that is gone are hidden in the new one. Their values do not matter, and are those of any row
   of ours: null may not be allowed.

Nothing is computed again: no expression and no function runs. Pieces are read ahead of the writer, so memory is
bounded by the threads that read, whatever the size of a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.conform import solid
from tablewright.data.prefetch import prefetch, spread
from tablewright.data.read import FragmentReader
from tablewright.data.shape import ReadShape
from tablewright.data.write import write_data_file
from tablewright.errors import InternalError
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.crossing import Crossing, Group, NotFollowed, missing_files_end_it
from tablewright.world import World

__all__ = ["ColumnFiles", "carry_columns", "check_columns"]


@dataclass(frozen=True, slots=True)
class ColumnFiles:
    """Column files by the id of their fragment, with the table's schema that has their fields."""

    files: Mapping[int, tuple[DataFile, ...]]
    schema: Schema

    def of(self, group: Group) -> dict[int, tuple[DataFile, ...]]:
        """Those of the group's old fragments."""
        return {each.id: self.files[each.id] for each in group.map.old if self.files.get(each.id)}


def check_columns(crossing: Crossing, columns: ColumnFiles) -> None:
    """Compare the rows that have values in the column files: :class:`NotFollowed` if they are others afterwards."""
    rows: dict[int, RowSet] = {}
    for id in crossing.rewritten(columns.files):
        fragment = crossing.before.fragments.by_id(id)
        gone = crossing.before.deletion_vector(fragment) or RowSet()
        rows[id] = gone.complement(fragment.physical_rows)
    crossing.check(rows)


def carry_columns(world: World, crossing: Crossing, columns: ColumnFiles) -> dict[int, DataFile]:
    """Write a column file for each new fragment that has rows of a fragment with one. If it fails, no file stays.

    Precondition: the rows were compared (:func:`check_columns`).
    """
    held = {id for files in columns.files.values() for file in files for id in file.live_fields}
    if not columns.schema.blob_ids.isdisjoint(columns.schema.project_ids(held).ids):
        raise NotFollowed("columns of blobs are not carried past a rewrite")
    tasks = [task for group in crossing.groups_of(columns.files) for task in _tasks(crossing, group, columns)]
    with missing_files_end_it(), removed_on_failure(world.store) as written:
        return dict(spread(lambda task: task.run(world, written), tasks))


def _tasks(crossing: Crossing, group: Group, columns: ColumnFiles) -> Iterator[_Carry]:
    ours = columns.of(group)
    wanted = columns.schema.project_ids({id for files in ours.values() for file in files for id in file.live_fields})
    version = next((file.version for files in ours.values() for file in files), "")
    patched = {id: _with_columns(crossing, group, id, files) for id, files in ours.items()}
    for new in group.map.new:
        if not crossing.after.fragments.has(new.id):
            continue
        if any(piece.old_id in patched for piece in group.map.pieces(new.id)):
            fragment = crossing.after.fragments.by_id(new.id)
            yield _Carry(crossing, group, fragment, patched, columns.schema, wanted, version)


def _with_columns(crossing: Crossing, group: Group, id: int, files: Sequence[DataFile]) -> Fragment:
    """An old fragment with our columns, whose deleted rows are those that the rewrite left out."""
    was = crossing.before.fragments
    fragment = was.by_id(id) if was.has(id) else group.listed[id]
    for file in files:
        fragment = fragment.with_column_file(file)
    return fragment.with_deletion(group.listed[id].deletion)


@dataclass(frozen=True, slots=True)
class _Window:
    """Physical rows of a fragment, from ``start`` up to ``stop``; ``copies`` of the first one, if that is not 0."""

    fragment: Fragment
    start: int
    stop: int
    include_deleted: bool
    copies: int = 0


@dataclass(frozen=True, slots=True)
class _Carry:
    """The column file of one new fragment."""

    crossing: Crossing
    group: Group
    new: Fragment
    patched: Mapping[int, Fragment]
    table: Schema
    wanted: Schema
    version: str

    def run(self, world: World, written: UncommittedFiles) -> tuple[int, DataFile]:
        file, rows = write_data_file(world, self.wanted, self._batches(), self.version)
        written.add([data_path(file.path)])
        if rows != self.new.physical_rows:
            raise InternalError(f"Fragment {self.new.id} has {self.new.physical_rows} rows, {rows} were carried.")
        return self.new.id, file

    def _batches(self) -> Iterator[pa.RecordBatch]:
        shape = ReadShape(self.table, self.wanted)
        for batches in prefetch(lambda window: self._read(shape, window), self._windows(shape)):
            yield from batches

    def _windows(self, shape: ReadShape) -> Iterator[_Window]:
        """What is read at a time, in order: of our column files, or of the new fragment where we have none."""
        for piece in self.group.map.pieces(self.new.id):
            ours = self.patched.get(piece.old_id)
            if ours is None and not self.crossing.before.fragments.has(piece.old_id):
                yield from self._any(shape, piece.rows)
                continue
            fragment, start, stop = self.new, piece.new_offset, piece.new_offset + piece.rows
            if ours is not None:
                fragment, start, stop = ours, piece.start, piece.stop
            step = shape.sizes.rows_per_piece(fragment)
            for begin in range(start, stop, step):
                yield _Window(fragment, begin, min(stop, begin + step), include_deleted=ours is None)

    def _any(self, shape: ReadShape, rows: int) -> Iterator[_Window]:
        """So many rows whose values do not matter."""
        fragment = next(iter(self.patched.values()))
        step = shape.sizes.rows_per_piece(fragment)
        for begin in range(0, rows, step):
            yield _Window(fragment, 0, 1, include_deleted=True, copies=min(step, rows - begin))

    def _read(self, shape: ReadShape, window: _Window) -> list[pa.RecordBatch]:
        reader = FragmentReader(self.crossing.after, window.fragment, shape)
        size = shape.sizes.rows_per_batch(window.fragment)
        found = reader.read(window.start, window.stop, size, include_deleted=window.include_deleted)
        batches = [rows.batch for rows in found]
        if window.copies:
            batches = [batch.take(pa.array(np.zeros(window.copies, np.int64))) for batch in batches]
        return [solid(batch) for batch in batches]
