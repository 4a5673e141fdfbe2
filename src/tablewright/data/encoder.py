"""The data-file codec: the only module that imports ``lance.file``.

A data file appears under its name only when it is complete (the codec writes a temporary name first). Stores that the
codec can't open (memory, test stores) go through a temporary file and ``put`` or ``get``.

A reader serves one thread at a time. Its columns are chosen when it is opened, by the names *inside* the file, which
may be older than the table's: :mod:`.layout` finds them by position. Reading a range in pieces whose bytes fit the
processor's caches is twice as fast as reading a file at once; the caller chooses the pieces.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.codec_errors import reading, uncommitted, writing
from tablewright.data.copied import NUMBER_ROWS_MIN, ROWS_MIN, CopiedColumns, open_copied
from tablewright.data.footer import read_descriptor
from tablewright.data.forks import hold_back_false_warnings
from tablewright.data.layout import FileLayout
from tablewright.data.one_row import one_row_file
from tablewright.data.spool import Spool, fetch, present
from tablewright.data.view import View, view_of
from tablewright.errors import CorruptTable, InternalError, StorageError
from tablewright.format.file_descriptor import repaired
from tablewright.lazy import cached_property
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, Store
from tablewright.storage.identity import is_local, trust_written
from tablewright.storage.libraries import Library, check_usable
from tablewright.storage.requests import count_request
from tablewright.storage.subtree import prepare_file, sync_file

__all__ = ["ClosedFile", "DataFileReader", "DataFileWriter", "load_codec"]

_BATCHES_AHEAD = 4
_BATCHES_PER_REQUEST = 8
_HELD_BYTES_MAX = 1 << 16
_MEMORY, _MEMORY_NAME = "memory:///", "file.lance"
_CODEC: Library = "the data-file codec"
_FIXED_SIZE = b"fixed_size_"  # in the logical type of columns that may be wide

Item = TypeVar("Item")

# Rows at indices are otherwise decoded on the thread that asks, inside Arrow's C stream, where a panic of the codec
# ends the process. On a thread of the codec it is an error. The codec reads this variable at every call.
os.environ.setdefault("LANCE_STRUCTURAL_BATCH_DECODE_SPAWN_MODE", "always")


class DataFileWriter:
    """Batches into one new data file. Call :meth:`close` or :meth:`abort`, else nothing is certain.

    The codec collects some megabytes of a column. It copies them, unless batches stay ``in_memory``, as they are, until
    the file is closed.

    A small file of such batches is made in memory when it is closed, and then written at once, unless the store is a
    remote one. On a local disk the codec would hand each system call to a thread of its own, which takes longer than to
    encode a few rows: 0.8 ms instead of 0.5.
    """

    def __init__(self, store: Store, path: str, schema: pa.Schema, version: str, *, in_memory: bool = False) -> None:
        self._store, self._path, self._schema = store, path, schema
        self._where = join_uri(store.location.uri, path)
        self._options: dict[str, Any] = {"version": version, "keep_original_array": in_memory}
        self._location = store.codec_location(path)
        self._held: list[pa.RecordBatch] | None = []  # as long as the file may be a small one
        self._held_bytes = 0
        self._writer: Any = None
        self._spool: Spool | None = None
        with uncommitted:
            check_usable(_CODEC)
        if not in_memory or (self._location is not None and not is_local(self._location)):
            self._open()

    def _open(self) -> Any:
        """The codec's writer of the file, or of a temporary one where the codec can't write into the store."""
        if self._held is None:
            return self._writer
        location = self._location
        with uncommitted:
            if location is None:
                self._spool = Spool()
                location = Location(self._spool.path)
            else:
                prepare_file(self._store, self._path)
        with writing(self._where):
            if self._spool is not None:
                self._writer = load_codec().writer(location.uri, self._schema, **self._options)
            else:
                base, _, name = location.uri.rpartition("/")
                session = _session(base, tuple(sorted(location.storage_options.items())), os.getpid())
                self._writer = session.open_writer(name, schema=self._schema, **self._options)
            for batch in self._held:
                self._writer.write_batch(batch)
        self._held = None
        return self._writer

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch, whose schema is the file's."""
        if self._held is not None:
            self._held.append(batch)
            self._held_bytes += batch.nbytes
            if self._held_bytes > _HELD_BYTES_MAX:
                self._open()
            return
        if self._writer is None:
            raise InternalError(f"write to {self._where} after it was closed")
        with writing(self._where):
            self._writer.write_batch(batch)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a pair into the metadata of the file's schema."""
        writer = self._open()
        with writing(self._where):
            writer.add_schema_metadata(key, value)

    def add_buffer(self, data: bytes) -> int:
        """Put bytes beside the columns: their number, from 1 on, under which :meth:`DataFileReader.buffer` has them."""
        writer = self._open()
        with writing(self._where):
            return int(writer.add_global_buffer(data))

    def close(self) -> tuple[int, int]:
        """Finish the file: its number of rows and its size in bytes."""
        if self._held is not None:
            return self._close_small(self._held)
        with writing(self._where):
            rows = int(self._writer.close())
            size = int(self._writer.size_bytes)
        self._writer = None
        with uncommitted:
            if self._spool is None:
                sync_file(self._store, self._path, size)
            else:
                self._put(self._spool.read(), size)
                self._spool.remove()
        return rows, size

    def _close_small(self, held: Sequence[pa.RecordBatch]) -> tuple[int, int]:
        """Make the file in memory, and put it in the store."""
        rows = sum([batch.num_rows for batch in held])
        with writing(self._where):
            if rows == len(held) == 1:
                data = one_row_file(held[0], self._schema, self._options["version"], lambda row: self._encoded([row]))
            else:
                data = self._encoded(held)
        self._held = None
        with uncommitted:
            self._put(data, len(data))
        trust_written(self._location)
        return rows, len(data)

    def _encoded(self, batches: Sequence[pa.RecordBatch]) -> bytes:
        """The bytes of a small file."""
        session = _memory_session(os.getpid(), threading.get_ident())
        writer = session.open_writer(_MEMORY_NAME, schema=self._schema, **self._options)
        for batch in batches:
            writer.write_batch(batch)
        rows, size = int(writer.close()), int(writer.size_bytes)
        data = bytes(session.read_range(_MEMORY_NAME, 0, size))
        if rows != sum([batch.num_rows for batch in batches]) or len(data) != size:
            raise StorageError(
                f"Could not write {self._where}: the codec left {len(data)} of {size} bytes, {rows} rows."
            )
        return data

    def _put(self, data: bytes, size: int) -> None:
        if len(data) != size:
            raise StorageError(f"Could not write {self._where}: the codec left {len(data)} of {size} bytes.")
        self._store.put(self._path, data)

    def abort(self) -> None:
        """Abort: no file is left."""
        if self._writer is not None:
            vars(self._writer).clear()  # a traceback may keep the writer alive, and with it the temporary file
        self._writer = self._held = None
        if self._spool is not None:
            self._spool.remove()
        self._store.delete(self._path)


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A data file before the codec opens it; ``descriptor`` is its own schema, if it was read along with its footer."""

    store: Store
    path: str
    descriptor: bytes | None = None

    @classmethod
    def look_at(cls, store: Store, path: str) -> ClosedFile:
        """Check the footer of a local file; :class:`~tablewright.errors.CorruptTable` if it can't be opened safely."""
        location = store.codec_location(path)
        if location is None or not is_local(location):
            return cls(store, path)
        return cls(store, path, read_descriptor(location.uri, join_uri(store.location.uri, path)))

    def open(self, columns: Sequence[str] | None = None, *, describe: bool = False) -> DataFileReader:
        """Open it for some columns."""
        return DataFileReader(self.store, self.path, columns, describe=describe, looked_at=self)


class DataFileReader:
    """One open data file and the columns wanted from it. One thread at a time.

    ``columns`` are dotted paths of names inside the file; ``None`` means all. An unknown one raises ``KeyError``.
    Blobs of the second kind read as their descriptions, those of the first as their bytes, or as descriptions with
    ``describe``. A file whose schema the codec misreads is read through a view (:mod:`.view`).
    """

    def __init__(
        self,
        store: Store,
        path: str,
        columns: Sequence[str] | None = None,
        *,
        describe: bool = False,
        looked_at: ClosedFile | None = None,
    ) -> None:
        self.where = join_uri(store.location.uri, path)
        self._wanted = None if columns is None else list(columns)
        self._spool: Spool | None = None
        self._view: View | None = None
        self._is_fetched = False
        location = store.codec_location(path)
        self._local = location if location is not None and is_local(location) else None
        self._is_remote = location is not None and self._local is None
        self._other_readers: dict[tuple[str, ...], Any] = {}
        if location is None:
            self._view = view_of(store, path, describe=describe)
            if self._view is None:
                with present(self.where):
                    self._spool = fetch(store, path)
                self._reader = self._open(Location(self._spool.path), alone=True)
        else:
            known = looked_at or ClosedFile.look_at(store, path)
            if self._opened_wrong(location, describe, known.descriptor):
                self._view = view_of(store, path, describe=describe)
        if self._view is not None:
            self._reader = self._open(Location(self._view.path), alone=True)

    def _open(self, location: Location, *, alone: bool = False) -> Any:
        return _open(location, self.where, self._wanted, alone=alone)

    def _opened_wrong(self, location: Location, describe: bool, known: bytes | None) -> bool:
        """Open the file. Would it give values of other columns, or bytes where descriptions are wanted?

        ``known`` is the file's descriptor, if it was read already.
        """
        try:
            self._reader = self._open(location)
        except (KeyError, CorruptTable):
            if self._wanted is None or not self._is_misread(known or self._asked(location), describe):
                raise
            return True
        return self._is_misread(known or _descriptor(self._reader, self.where), describe)

    def _asked(self, location: Location) -> bytes:
        return _descriptor(_open(location, self.where, None), self.where)

    def _is_misread(self, known: bytes, describe: bool) -> bool:
        if repaired(known, self.where, describe=describe) is not None:
            return True
        self.descriptor = known
        return False

    @property
    def has_own_copy(self) -> bool:
        """Whether it reads a temporary file instead of the file itself."""
        return self._spool is not None or self._view is not None

    @cached_property
    def _physical_columns(self) -> list[int]:
        """The physical columns that are wanted."""
        layout = FileLayout.of(self.schema, self.version)
        if self._wanted is None:
            return list(range(len(layout.columns)))
        return layout.columns_at(self._wanted)

    def _fetched(self) -> None:
        """The view has the buffers of the wanted columns, and the reader was opened after they came.

        The codec keeps the end of a file as it was when it was opened.
        """
        if self._view is not None and not self._is_fetched:
            self._view.fetch(self._physical_columns)
            self._reader = self._open(Location(self._view.path), alone=True)
            self._is_fetched = True

    @cached_property
    def _metadata(self) -> Any:
        with reading(self.where):
            return self._reader.metadata()

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns of the file under the names that it was written with, wanted or not."""
        schema: pa.Schema = self._metadata.schema
        return schema

    @cached_property
    def descriptor(self) -> bytes:
        """The bytes that describe the file's schema and length: much cheaper than :attr:`schema`."""
        return _descriptor(self._reader, self.where)

    @property
    def version(self) -> str:
        """The file's version, like ``2.2`` (0.3 is what files of 2.0 say)."""
        major, minor = self._metadata.major_version, self._metadata.minor_version
        return "2.0" if (major, minor) == (0, 3) else f"{major}.{minor}"

    @property
    def num_rows(self) -> int:
        """How many rows the file has."""
        with reading(self.where):
            return int(self._reader.num_rows())

    @property
    def num_columns(self) -> int:
        """How many physical columns the file has."""
        return len(self.column_bytes)

    @cached_property
    def column_bytes(self) -> tuple[int, ...]:
        """The encoded size of each physical column."""
        with reading(self.where):
            return tuple(int(column.size_bytes) for column in self._reader.file_statistics().columns)

    @property
    def num_buffers(self) -> int:
        """How many buffers there are, with that of number 0, which describes the schema."""
        return len(self._metadata.global_buffers)

    def buffer(self, number: int) -> bytes:
        """The bytes that were put beside the columns under this number."""
        with reading(self.where):
            return bytes(self._reader.read_global_buffer(number))

    def read(self, start: int, count: int, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """``count`` rows from ``start`` on; every batch but the last has ``rows_per_batch`` rows.

        The codec reads all bytes of a request before it decodes the first batch. So of a local file a request covers
        eight batches, and the next one is made before the first batch is used: the codec reads its bytes meanwhile. To
        make a request takes 0.1 ms. Of a remote file one request covers all rows, since each waits for an answer.
        """
        self._fetched()
        limit = _BATCHES_PER_REQUEST * rows_per_batch
        if count <= limit or self._is_remote:
            return self._request(start, count, rows_per_batch)
        stop = start + count
        requests = (self._request(at, min(limit, stop - at), rows_per_batch) for at in range(start, stop, limit))
        return chain.from_iterable(_one_ahead(requests))

    def _request(self, start: int, count: int, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        check_usable(_CODEC)
        count_request("read rows", path=self.where)
        with reading(self.where):
            results = self._reader.read_range(
                start, count, batch_size=rows_per_batch, batch_readahead=_BATCHES_AHEAD
            ).to_batches()
        return self._batches(results)

    def take(self, offsets: npt.NDArray[np.int64], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The rows at ``offsets``, which ascend strictly, in batches of ``rows_per_batch``.

        Of local files some columns are copied without the codec (:mod:`.copied`), where there are enough rows.
        """
        self._fetched()
        copied = self._copied(len(offsets))
        if copied is None or not copied.has(offsets):
            return self._taken(self._reader, offsets, rows_per_batch)
        if not copied.others:
            return copied.batches(offsets, rows_per_batch)
        return copied.beside(self._taken(self._other_reader(copied.others), offsets, rows_per_batch), offsets)

    def _taken(self, reader: Any, offsets: npt.NDArray[np.int64], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        check_usable(_CODEC)
        count_request("take rows", path=self.where)
        indices = offsets.astype(np.uint64).data  # a memoryview is what the codec reads fastest
        with reading(self.where):
            # The wrapper's own method looks at every pair of indices in Python.
            results = reader._reader.take_rows(indices, rows_per_batch, _BATCHES_AHEAD)
        return self._batches(results)

    def _copied(self, rows: int) -> CopiedColumns | None:
        """The columns that are copied without the codec where this many rows are taken; ``None`` if there are none."""
        if rows < ROWS_MIN or self._local is None or self.has_own_copy:
            return None
        return self._copied_with_numbers if rows >= NUMBER_ROWS_MIN else self._copied_wide

    @cached_property
    def _copied_wide(self) -> CopiedColumns | None:
        return self._open_copied(numbers=False) if _FIXED_SIZE in self.descriptor else None

    @cached_property
    def _copied_with_numbers(self) -> CopiedColumns | None:
        return self._open_copied(numbers=True)

    def _open_copied(self, *, numbers: bool) -> CopiedColumns | None:
        assert self._local is not None, "only local files are mapped"
        path, wanted = self._local.uri, self._wanted
        return open_copied(path, self.descriptor, self.schema, self.version, wanted, numbers=numbers)

    def _other_reader(self, columns: tuple[str, ...]) -> Any:
        """A reader of the columns that are not copied."""
        assert self._local is not None, "only local files are mapped"
        if columns not in self._other_readers:
            self._other_readers[columns] = _open(self._local, self.where, list(columns))
        return self._other_readers[columns]

    def _batches(self, results: Any) -> Iterator[pa.RecordBatch]:
        while True:
            check_usable(_CODEC)
            with reading(self.where):
                batch = next(results, None)
            if batch is None:
                return
            yield batch


def _one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, of which there is one at least; the next one is made before an item is handed out."""
    held = next(items)
    for following in items:
        yield held
        held = following
    yield held


def _descriptor(reader: Any, where: str) -> bytes:
    with reading(where):
        return bytes(reader.read_global_buffer(0))


def _open(location: Location, where: str, columns: list[str] | None, *, alone: bool = False) -> Any:
    """A reader of the codec; files of one directory share a session, unless one is ``alone`` in its own."""
    options = dict(location.storage_options) or None
    base, _, name = location.uri.rpartition("/")
    check_usable(_CODEC)
    codec = load_codec()
    count_request("open", path=where)
    with reading(where):
        try:
            if alone or not base:
                return codec.reader(location.uri, storage_options=options, columns=columns)
            return _session(base, tuple(sorted((options or {}).items())), os.getpid()).open_reader(name, columns)
        except OSError as error:
            if "Error creating projection" not in str(error):
                raise
    raise KeyError(f"{where} has no columns {columns}")


@lru_cache(maxsize=64)
def _session(base: str, options: tuple[tuple[str, str], ...], process: int) -> Any:
    """What the readers and writers of a directory share: the connection, and the codec's threads for it."""
    return load_codec().session(base, storage_options=dict(options) or None)


@lru_cache(maxsize=64)
def _memory_session(process: int, thread: int) -> Any:
    """A directory in memory for one file at a time, which the next small file of the same thread replaces."""
    return load_codec().session(_MEMORY)


class Codec(NamedTuple):
    """The classes of ``lance.file`` that we use."""

    writer: Any
    reader: Any
    session: Any


@lru_cache(maxsize=1)
def load_codec() -> Codec:
    """The classes of the codec, imported with the first data file: whoever only looks at versions does without.

    This starts no thread: the process may still fork.
    """
    from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter

    hold_back_false_warnings()
    return Codec(LanceFileWriter, LanceFileReader, LanceFileSession)
