"""What the end of a file says, without the codec: encoded bytes of each physical column, rows, metadata, buffers.

The end of a file is read in one request (64 KiB), which holds the metadata of all columns unless they are very many.
So files of any store are looked into without fetching them. Files of indices have the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablewright.errors import CorruptTable
from tablewright.format.file_tail import FileTail, decode_tail
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store

__all__ = ["LEGACY_BEFORE", "FileEnd", "column_bytes", "read_end"]

LEGACY_BEFORE = (0, 3)
"""Data files of earlier versions have another end; 0.3 is what files of 2.0 say."""

_TAIL_BYTES = 1 << 16

Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileEnd:
    """The end of one file: how many rows it has, the metadata of its schema, and its parts."""

    where: str
    num_rows: int
    metadata: dict[str, str]
    tail: FileTail
    read: Read

    @property
    def column_bytes(self) -> tuple[int, ...]:
        """The encoded size of each physical column."""
        columns = range(len(self.tail.columns))
        return tuple(sum(end - begin for begin, end in self.tail.ranges([index], self.where)) for index in columns)

    def buffer(self, number: int) -> bytes:
        """A global buffer of the file."""
        if not 0 <= number < len(self.tail.buffers):
            raise CorruptTable(self.where, (f"it has no buffer {number}",))
        return self.read(*self.tail.buffers[number])


def read_end(store: Store, path: str, size: int = 0) -> FileEnd:
    """Read the end of a file of ``size`` bytes, 0 if that is not known.

    ``ObjectNotFound`` if the file is missing, :class:`~tablewright.errors.CorruptTable` if it is no such file.
    """
    size = size or store.head(path).size
    where = join_uri(store.location.uri, path)
    read = _buffered(store, path, size)
    tail = decode_tail(size, read, where)
    descriptor = decode_message(schema_pb2.FileDescriptor, tail.descriptor, where, "the file's schema")
    metadata = {key: value.decode("utf-8", "replace") for key, value in descriptor.schema.metadata.items()}
    return FileEnd(where=where, num_rows=descriptor.length, metadata=metadata, tail=tail, read=read)


def column_bytes(store: Store, path: str, size: int = 0) -> tuple[int, ...]:
    """The encoded size of each physical column of a file."""
    return read_end(store, path, size).column_bytes


def _buffered(store: Store, path: str, size: int) -> Read:
    """Reads of ranges, served from the end of the file where they lie in it."""
    begin = max(0, size - _TAIL_BYTES)
    end_of_file = store.get_range(path, begin, size)

    def read(start: int, stop: int) -> bytes:
        if start >= begin:
            return end_of_file[start - begin : stop - begin]
        return store.get_range(path, start, stop)

    return read
