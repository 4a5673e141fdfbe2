"""Fragments become rows: the wanted columns of all its files, side by side, by range or by offsets.

1. *Open* each file that holds a wanted leaf, with just those columns. The first guess is that the file's names are the
   table's; the file's own schema, which opening it returns, shows whether that was right (:mod:`.layout`). A struct
   none of whose wanted members is in any file reads one other member, which shows where the struct is null.
2. *Read* the same rows from each; batches of all files have the same sizes, so they are zipped.
3. *Assemble* the table's columns from them (:mod:`.assemble`).
4. Drop deleted rows (:mod:`.rows`): without deletions nothing is done, deletions at an edge are a slice, other rows
   are copied without the deleted ones, which takes half the time of asking the codec for the live offsets. Deleted
   rows of 32 KiB and more, such as blobs, are not read.

A :class:`FragmentReader` serves one thread at a time. It keeps its files open: reuse it to read a fragment in
pieces, and release it (:mod:`.idle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tablewright.data.assemble import FieldValues, assemble
from tablewright.data.blob_values import BlobValues
from tablewright.data.context import ReadContext
from tablewright.data.encoder import ClosedFile, DataFileReader
from tablewright.data.foreign import check_size
from tablewright.data.idle import Idle, for_one_read, process_readers
from tablewright.data.layout import FileMap
from tablewright.data.rows import Rows, no_columns
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.arrow_bits import Bools
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.storage.base import Store

__all__ = ["FragmentReader", "Rows", "ToOpen", "beside", "files_to_open", "no_columns", "read_fragment"]

_WIDE_ROW_BYTES = 32 * 1024
_NONE = np.zeros(0, np.int64)
_OLDEST_VERSION = (0, 3)  # the first name of 2.0


@dataclass(frozen=True, slots=True)
class _OpenFile:
    idle: Idle
    map: FileMap
    blobs: BlobValues | None = None

    @property
    def reader(self) -> DataFileReader:
        return self.idle.reader


@dataclass(frozen=True, slots=True)
class ToOpen:
    """A file that is going to be opened for some fields of its fragment."""

    context: ReadContext
    fragment: Fragment
    file: DataFile
    shape: ReadShape
    leaves: frozenset[int]
    store: Store
    path: str
    looked_at: ClosedFile | None = None

    def opened(self, columns: Sequence[str] | None) -> Idle:
        """Open the file for some columns. One that was looked at is opened for one read."""
        describe = self.shape.describes
        if self.looked_at is None:
            return process_readers.open(self.store, self.path, columns, describe=describe)
        return for_one_read(self.looked_at.open(columns, describe=describe), self.path)


class FragmentReader:
    """Reads the wanted columns of one fragment."""

    def __init__(
        self, context: ReadContext, fragment: Fragment, shape: ReadShape, files: Sequence[ToOpen] | None = None
    ) -> None:
        """``files`` are those to open, if they were looked at before: see :meth:`of_each`."""
        self.fragment, self._shape = fragment, shape
        self._vector = context.deletion_vector(fragment)
        self._deleted: Offsets | None = None
        self._live: Bools | None = None
        self._files = [_open(file) for file in (files_to_open(context, fragment, shape) if files is None else files)]
        if shape.required:
            _check_held(fragment, shape, self._files)
        self._is_wide = shape.sizes.bytes_per_row(fragment) >= _WIDE_ROW_BYTES

    def release(self) -> None:
        """No more reads: its files stay open for the next reader of the same columns."""
        for file in self._files:
            process_readers.keep(file.idle)
        self._files = []

    @classmethod
    def of_each(cls, context: ReadContext, fragments: Sequence[Fragment], shape: ReadShape) -> list[FragmentReader]:
        """Readers of several fragments, each for one read: first all files are looked at, then all are opened.

        The codec works on a thread of its own, which falls asleep whenever it waits for us: waking it for each file
        takes as long as opening one.
        """
        looked_at = [[_look_at(file) for file in files_to_open(context, fragment, shape)] for fragment in fragments]
        return [cls(context, fragment, shape, files) for fragment, files in zip(fragments, looked_at, strict=True)]

    @property
    def live(self) -> Bools | None:
        """One bool per physical row: whether it is live; ``None`` if all are."""
        if self._live is None and self._vector is not None:
            self._live = self._vector.absent_mask(self.fragment.physical_rows)
        return self._live

    @property
    def deleted(self) -> Offsets | None:
        """The offsets of all deleted rows, ascending; ``None`` if the fragment has no deletion file."""
        return None if self._vector is None else self._deleted_in(0, self.fragment.physical_rows)

    def read(self, start: int, stop: int, rows_per_batch: int, *, include_deleted: bool = False) -> Iterator[Rows]:
        """The live rows at the physical offsets from ``start`` up to ``stop``, by one request to the codec.

        Batches come from about ``rows_per_batch`` rows each.
        """
        if start >= stop:
            return
        gone = _NONE if include_deleted else self._deleted_in(start, stop)
        if not len(gone):
            yield from self._range(start, stop, rows_per_batch)
        elif self._is_wide and len(gone) < stop - start:
            yield from self.take(np.delete(np.arange(start, stop), gone - start), rows_per_batch)
        else:
            for rows in self._range(start, stop, rows_per_batch):
                yield rows.without(_within(gone, rows.start, rows.start + len(rows)))

    def _deleted_in(self, start: int, stop: int) -> Offsets:
        """The offsets of the deleted rows of a range, ascending."""
        if self._deleted is None:
            self._deleted = _NONE if self._vector is None else self._vector.to_numpy()
        return _within(self._deleted, start, stop)

    def take(self, offsets: Offsets, rows_per_batch: int) -> Iterator[Rows]:
        """The rows at ``offsets`` (ascending, each once), deleted or not."""
        if not self._files:
            yield Rows(self._batch([], len(offsets)), chosen=offsets)
            return
        yield from self._taken([file.reader.take(offsets, rows_per_batch) for file in self._files], offsets)

    def _taken(self, streams: Sequence[Iterator[pa.RecordBatch]], offsets: Offsets) -> Iterator[Rows]:
        at_row = 0
        for batches in zip(*streams, strict=True):
            rows = batches[0].num_rows
            yield Rows(self._batch(batches, rows), chosen=offsets[at_row : at_row + rows])
            at_row += rows

    def start(self) -> Iterator[Rows]:
        """Ask for all physical rows, as one batch if the codec can; it begins at once, before the result is used."""
        return self._range(0, self.fragment.physical_rows, self.fragment.physical_rows)

    def start_at(self, offsets: Offsets, rows_per_batch: int | None = None) -> Iterator[Rows]:
        """Ask for the rows at ``offsets`` (ascending, each once), deleted or not; it begins as :meth:`start` does."""
        first, count = int(offsets[0]), len(offsets)
        step = count if rows_per_batch is None else min(count, rows_per_batch)
        if int(offsets[-1]) - first + 1 == count:
            return self._range(first, first + count, step)
        if not self._files:
            return self.take(offsets, step)
        return self._taken([file.reader.take(offsets, step) for file in self._files], offsets)

    def _range(self, start: int, stop: int, rows_per_batch: int) -> Iterator[Rows]:
        if not self._files:
            return iter((Rows(self._batch([], stop - start), start),))
        streams = [file.reader.read(start, stop - start, rows_per_batch) for file in self._files]
        return self._zipped(streams, start)

    def _zipped(self, streams: Sequence[Iterator[pa.RecordBatch]], start: int) -> Iterator[Rows]:
        as_wanted: bool | None = None
        for batches in zip(*streams, strict=True):
            if as_wanted is None:
                as_wanted = self._is_as_wanted(batches[0].schema)
            rows = batches[0].num_rows
            yield Rows(batches[0] if as_wanted else self._batch(batches, rows), start)
            start += rows

    def _is_as_wanted(self, schema: pa.Schema) -> bool:
        """Whether batches of this schema, which all of a stream have, are the wanted columns without any change."""
        first, wanted = self._files[0], self._shape
        if len(self._files) > 1 or first.blobs is not None or not schema.equals(wanted.schema, check_metadata=True):
            return False
        return all(
            column in first.map.nodes and first.map.name_of(column) == name
            for (column, _), name in zip(wanted.columns, schema.names, strict=True)
        )

    def _batch(self, batches: Sequence[pa.RecordBatch], rows: int) -> pa.RecordBatch:
        """The wanted columns out of one batch per open file."""
        wanted, read = self._shape.wanted, [(batch, batch.schema) for batch in batches]
        arrays = [
            assemble(wanted, column_id, kind, self._sources(column_id, read), rows)
            for column_id, kind in self._shape.columns
        ]
        if not arrays:
            return no_columns(rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self._shape.schema)

    def _sources(self, column_id: int, read: Sequence[tuple[pa.RecordBatch, pa.Schema]]) -> list[FieldValues]:
        found = []
        for file, (batch, schema) in zip(self._files, read, strict=False):
            if column_id in file.map.nodes:
                index = schema.get_field_index(file.map.name_of(column_id))
                if index >= 0:
                    found.append(FieldValues(batch.column(index), file.map, file.reader.where, file.blobs))
        return found


def _within(ascending: Offsets, start: int, stop: int) -> Offsets:
    low, high = np.searchsorted(ascending, [start, stop]).tolist()
    return ascending[low:high]


def read_fragment(
    context: ReadContext,
    fragment: Fragment,
    table: Schema,
    wanted: Schema,
    *,
    system: Sequence[str] = (),
    start: int = 0,
    stop: int | None = None,
    offsets: Offsets | None = None,
    rows_per_batch: int | None = None,
    include_deleted: bool = False,
    first_row: int = 0,
) -> Iterator[pa.RecordBatch]:
    """The wanted columns of a fragment, then the ``system`` columns, for a range or for ascending ``offsets``.

    ``first_row`` is the position of the fragment's first live row in the table, for ``_rowoffset``.
    """
    shape = ReadShape(table, wanted)
    sizes = shape.sizes
    reader = FragmentReader(context, fragment, shape)
    columns = SystemColumns(context, fragment, first_row)
    end = fragment.physical_rows if stop is None else stop
    batch_rows = rows_per_batch or sizes.rows_per_batch(fragment)
    pieces: Iterator[Rows]
    if offsets is None:
        piece = sizes.rows_per_piece(fragment)
        pieces = (
            rows
            for begin in range(start, end, piece)
            for rows in reader.read(begin, min(end, begin + piece), batch_rows, include_deleted=include_deleted)
        )
    else:
        pieces = reader.take(offsets, batch_rows)
    for rows in pieces:
        if not system:
            yield rows.batch
            continue
        live = reader.live[rows.offsets] if include_deleted and reader.live is not None else None
        yield beside(rows.batch, columns.batch(system, rows.offsets, live))


def beside(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of two batches with the same rows."""
    if not right.num_columns:
        return left
    if not left.num_columns:
        return right
    schema = pa.schema([*left.schema, *right.schema])
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=schema)


def files_to_open(context: ReadContext, fragment: Fragment, shape: ReadShape) -> list[ToOpen]:
    """The files of a fragment that hold a wanted column."""
    leaves = shape.leaves(fragment)
    found = []
    for file in fragment.files:
        if shape.holds(file, leaves):
            store, path = context.data_place(file)
            if (file.file_major_version, file.file_minor_version) < _OLDEST_VERSION:
                raise UnsupportedFeature(
                    f"The data file {path} is of the legacy version {file.version}, which this release can't read: let "
                    "pylance write the table again with data_storage_version='stable'."
                )
            found.append(ToOpen(context, fragment, file, shape, leaves, store, path))
    return found


def _look_at(file: ToOpen) -> ToOpen:
    check_size(file.store, file.path, file.file.file_size_bytes)
    return replace(file, looked_at=ClosedFile.look_at(file.store, file.path))


def _open(asked: ToOpen) -> _OpenFile:
    shape, file = asked.shape, asked.file
    if asked.looked_at is None:
        check_size(asked.store, asked.path, file.file_size_bytes)
    guess = shape.guess(file, asked.leaves)
    try:
        opened = asked.opened(guess)
    except KeyError:
        guess = []
        opened = asked.opened(None)
    mapped, paths = shape.mapped(file, opened.reader, asked.leaves)
    if paths != guess:
        opened = asked.opened(paths)
    reader = opened.reader
    if reader.num_rows != asked.fragment.physical_rows:
        problem = f"it has {reader.num_rows} rows, the manifest says {asked.fragment.physical_rows}"
        raise CorruptTable(reader.where, (problem,))
    blobs = BlobValues(asked.context, asked.store, asked.path, reader.where) if mapped.layout.has_blobs else None
    return _OpenFile(opened, mapped, blobs)


def _check_held(fragment: Fragment, shape: ReadShape, files: Sequence[_OpenFile]) -> None:
    """A column that no file holds is null, so one that may not be null has lost its file."""
    lost = shape.required.difference(*(file.map.nodes for file in files))
    if lost and fragment.physical_rows:
        names = ", ".join(f"`{shape.table.by_id(column).name}`" for column in sorted(lost))
        problem = f"no data file of it holds the column {names}, which may not be null"
        raise CorruptTable(f"fragment {fragment.id}", (problem,))
