"""Data files with one schema, joined into one data file: its pages are theirs, one file after the other.

A page of a data file depends on nothing but its own buffers, so it may lie at another place of another file. Joined are

::

    all bytes of the first file | … of the last file | an end for all of them (:mod:`.file_tail`)

where the metadata of a physical column lists the pages of all files, moved to where their buffers lie now. Each file
begins at a multiple of 64. No page is decoded for it. The codec then opens one file instead of many, which is most of
its work where files are small; and what was sorted in parts becomes one file without being encoded again.

Files are joined only where nothing can differ: from version 2.1 on, where every page counts rows of the table; with
no buffers but pages and the schema; and if all pages of a file together have the rows that it says. What is damaged is
not joined either: whoever reads the file by itself finds out what is wrong with it.

Format: ``docs/format/data-files.md#pages``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from tablewright.errors import CorruptTable
from tablewright.format.field import BLOB
from tablewright.format.file_tail import ALIGNMENT, FileTail, decode_tail
from tablewright.format.proto import data_file_pb2, schema_pb2

__all__ = ["FilePart", "WholeFile", "file_part", "join_ends", "join_files", "padding_after", "whole_file"]

_FIRST_VERSION = (2, 1)
_BLOB_BYTES = BLOB.encode()


@dataclass(frozen=True, slots=True)
class FilePart:
    """The end of a data file, which may be joined with others of the same ``kind``."""

    tail: FileTail
    rows: int
    kind: Hashable


@dataclass(frozen=True, slots=True)
class WholeFile:
    """All bytes of such a file."""

    data: bytes
    part: FilePart

    @property
    def kind(self) -> Hashable:
        """Files of one kind may be joined."""
        return self.part.kind


def whole_file(data: bytes) -> WholeFile | None:
    """The file with these bytes; ``None`` if it can't be joined with others.

    >>> whole_file(b"PAR1") is None
    True
    """
    try:
        part = file_part(decode_tail(len(data), lambda begin, end: data[begin:end], ""))
    except CorruptTable:
        return None
    return None if part is None else WholeFile(data, part)


def file_part(tail: FileTail) -> FilePart | None:
    """The file with this end; ``None`` if it can't be joined with others."""
    if len(tail.buffers) != 1 or tail.version < _FIRST_VERSION or _BLOB_BYTES in tail.descriptor:
        return None
    try:
        schema, rows = _described(tail.descriptor)
    except DecodeError:
        return None
    return FilePart(tail, rows, (schema, tail.version, len(tail.columns)))


@lru_cache(maxsize=256)
def _described(descriptor: bytes) -> tuple[bytes, int]:
    """A file's schema and its number of rows."""
    message: Any = schema_pb2.FileDescriptor.FromString(descriptor)
    rows = int(message.length)
    message.length = 0
    return bytes(message.SerializeToString()), rows


def join_files(files: Sequence[WholeFile], wanted: Collection[int] | None = None) -> bytes | None:
    """The bytes of one file with the rows of all, which are of one kind; ``None`` if they can't be joined.

    Only the ``wanted`` physical columns of it can be read; ``None`` means all of them. The first column keeps its pages
    in any case: the codec tells by them how all columns are encoded, and panics if there are none.
    """
    end = join_ends([file.part for file in files], wanted)
    if end is None:
        return None
    padded = (part for file in files for part in (file.data, padding_after(len(file.data))))
    return b"".join((*padded, end))


def join_ends(files: Sequence[FilePart], wanted: Collection[int] | None = None) -> bytes | None:
    """The end of the joined file, after the bytes of all and what each is padded with."""
    first = files[0]
    try:
        columns = [
            _joined_column(files, column)
            if wanted is None or column in wanted or not column
            else _no_pages(first, column)
            for column in range(len(first.tail.columns))
        ]
    except (_NotJoined, DecodeError):
        return None
    descriptor = _descriptor(first, sum(file.rows for file in files))
    size = sum(_padded(file.tail.size) for file in files)
    tail = FileTail(size=size, descriptor=descriptor, columns=tuple(columns), version=first.tail.version)
    return tail.encode(descriptor)[1]


def padding_after(size: int) -> bytes:
    """What follows a file of this size, so that the next one begins where it may."""
    return bytes(_padded(size) - size)


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class _NotJoined(Exception):
    """A file that has to be read by itself."""


def _descriptor(file: FilePart, rows: int) -> bytes:
    message: Any = schema_pb2.FileDescriptor.FromString(file.tail.descriptor)
    message.length = rows
    return bytes(message.SerializeToString())


def _metadata(file: FilePart, column: int) -> Any:
    return data_file_pb2.ColumnMetadata.FromString(file.tail.columns[column])


def _no_pages(file: FilePart, column: int) -> bytes:
    """The metadata of a column that is not wanted."""
    message = _metadata(file, column)
    del message.pages[:]
    return bytes(message.SerializeToString())


def _joined_column(files: Sequence[FilePart], column: int) -> bytes:
    """The metadata of a column with the pages of all files."""
    rest, joined = _no_pages(files[0], column), data_file_pb2.ColumnMetadata()
    at = first_row = 0
    for file in files:
        message = _metadata(file, column)
        _move(message.pages, at, first_row, file)
        joined.pages.MergeFrom(message.pages)
        del message.pages[:]
        if message.buffer_offsets or message.SerializeToString() != rest:
            raise _NotJoined
        at += _padded(file.tail.size)
        first_row += file.rows
    return bytes(joined.SerializeToString() + rest)


def _move(pages: Any, at: int, first_row: int, file: FilePart) -> None:
    """Move pages to where their file lies in the joined one."""
    size, rows = file.tail.size, 0
    for page in pages:
        offsets = list(page.buffer_offsets)
        if any(offset + length > size for offset, length in zip(offsets, page.buffer_sizes, strict=False)):
            raise _NotJoined
        page.buffer_offsets[:] = [offset + at for offset in offsets]
        page.priority += first_row
        rows += page.length
    if rows != file.rows:
        raise _NotJoined
