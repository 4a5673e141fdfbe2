"""An update in place: the columns that change, written anew for all physical rows of one fragment (fact sheet §7.2).

Pieces of the fragment are read, changed and written one after the other: the columns that change and those that the
expressions look at, deleted rows included. Expressions see the matching rows of a piece only; their values are put
among the others, which stay what they are, also those of deleted rows. Where every physical row matches, old values are
not even read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from pyroaring import FrozenBitMap

from tablewright.data.conform import solid
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.data.write import write_data_file
from tablewright.errors import InvalidRequest
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.format.schema import Schema
from tablewright.operations.match import live_rows
from tablewright.operations.scan_columns import RowLayout, Selection
from tablewright.operations.scan_context import TaskContext
from tablewright.operations.scan_fragment import FragmentScan, ReadPlan
from tablewright.operations.scan_run import fragment_scans
from tablewright.operations.update_values import Assignments
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

    @property
    def paths(self) -> tuple[str, ...]:
        """The file that was written."""
        return (data_path(self.file.path),)

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
    written = table.project_ids(
        id for field in table.top_level if field.name in task.assignments.columns for id in table.descendants(field.id)
    )
    file, _ = write_data_file(world, written, writer.batches(scan), task.file_version)
    return ColumnsResult(
        fragment_id=fragment.id,
        file=file,
        offsets=encode_bitmap(offsets),
        rows_read=writer.rows_read,
        bytes_read=writer.bytes_read,
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
            selection=Selection(outputs=(), schema=pa.schema([]), paths=()),
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
            new = {name: _placed(old.column(name), matching, values) for name, values in found.items()}
        else:
            new = {name: old.column(name) for name in self._assignments.columns}
        arrays = [_filled(new[name], schema.field(name)) for name in self._assignments.columns]
        return solid(pa.RecordBatch.from_arrays(arrays, names=list(self._assignments.columns)))


def _placed(old: pa.Array, at_rows: Offsets, values: pa.Array) -> pa.Array:
    """The old values, with others at some rows."""
    kind = old.type
    try:
        if at.is_dictionary(kind):
            return _encoded(_placed(old.dictionary_decode(), at_rows, values.dictionary_decode()), kind)
        plain = _plain(kind)
        if plain != kind:  # Arrow can't unite dictionaries that hold nulls
            return _placed(old.cast(plain), at_rows, values.cast(plain)).cast(kind)
    except pa.ArrowException as error:
        raise InvalidRequest(f"The new values don't fit a column of type {kind}: {error}") from error
    if at.is_primitive(kind) and not at.is_duration(kind):
        mask = np.zeros(len(old), np.bool_)
        mask[at_rows] = True
        return pc.replace_with_mask(old, pa.array(mask), values)
    indices = np.arange(len(old))
    indices[at_rows] = np.arange(len(old), len(old) + len(values))
    return pa.concat_arrays([old, values]).take(pa.array(indices))


def _encoded(array: pa.Array, kind: pa.DataType) -> pa.Array:
    found = array.dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices.cast(kind.index_type), found.dictionary, ordered=kind.ordered)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with dictionaries inside of it taken apart."""
    if at.is_dictionary(kind):
        return kind.value_type
    if at.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if at.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _filled(array: pa.Array, field: pa.Field) -> pa.Array:
    """A column that may hold no null, without those that deleted rows have left in it from other times."""
    if field.nullable or not array.null_count or array.null_count == len(array):
        return array
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    indices = np.where(valid, np.arange(len(array)), np.argmax(valid))
    return array.take(pa.array(indices))
