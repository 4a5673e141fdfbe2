"""Small data files with one schema, joined into one data file: its pages are theirs, one file after the other.

A page of a data file depends on nothing but its own buffers, so it may lie at another place of another file. Joined are

::

    all bytes of the first file | … of the last file | an end for all of them (:mod:`.file_tail`)

where the metadata of a physical column lists the pages of all files, moved to where their buffers lie now. No page is
decoded for it. The codec then opens one file instead of many, which is most of its work where files are small.

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

__all__ = ["WholeFile", "join_files", "whole_file"]

_FIRST_VERSION = (2, 1)
_BLOB_BYTES = BLOB.encode()


@dataclass(frozen=True, slots=True)
class WholeFile:
    """All bytes of a data file, which may be joined with others of the same ``kind``."""

    data: bytes
    tail: FileTail
    rows: int
    kind: Hashable


def whole_file(data: bytes) -> WholeFile | None:
    """The file with these bytes; ``None`` if it can't be joined with others.

    >>> whole_file(b"PAR1") is None
    True
    """
    try:
        tail = decode_tail(len(data), lambda begin, end: data[begin:end], "")
        if len(tail.buffers) != 1 or tail.version < _FIRST_VERSION or _BLOB_BYTES in tail.descriptor:
            return None
        schema, rows = _described(tail.descriptor)
    except (CorruptTable, DecodeError):
        return None
    return WholeFile(data, tail, rows, (schema, tail.version, len(tail.columns)))


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
    padded = [file.data.ljust(-(-len(file.data) // ALIGNMENT) * ALIGNMENT, b"\0") for file in files]
    first = files[0]
    try:
        columns = [
            _joined_column(files, padded, column)
            if wanted is None or column in wanted or not column
            else _no_pages(first, column)
            for column in range(len(first.tail.columns))
        ]
    except (_NotJoined, DecodeError):
        return None
    descriptor = _descriptor(first, sum(file.rows for file in files))
    size = sum(map(len, padded))
    tail = FileTail(size=size, descriptor=descriptor, columns=tuple(columns), version=first.tail.version)
    return b"".join((*padded, tail.encode(descriptor)[1]))


class _NotJoined(Exception):
    """A file that has to be read by itself."""


def _descriptor(file: WholeFile, rows: int) -> bytes:
    message: Any = schema_pb2.FileDescriptor.FromString(file.tail.descriptor)
    message.length = rows
    return bytes(message.SerializeToString())


def _metadata(file: WholeFile, column: int) -> Any:
    return data_file_pb2.ColumnMetadata.FromString(file.tail.columns[column])


def _no_pages(file: WholeFile, column: int) -> bytes:
    """The metadata of a column that is not wanted."""
    message = _metadata(file, column)
    del message.pages[:]
    return bytes(message.SerializeToString())


def _joined_column(files: Sequence[WholeFile], padded: Sequence[bytes], column: int) -> bytes:
    """The metadata of a column with the pages of all files."""
    rest, joined = _no_pages(files[0], column), data_file_pb2.ColumnMetadata()
    at = first_row = 0
    for file, data in zip(files, padded, strict=True):
        message = _metadata(file, column)
        _move(message.pages, at, first_row, file)
        joined.pages.MergeFrom(message.pages)
        del message.pages[:]
        if message.buffer_offsets or message.SerializeToString() != rest:
            raise _NotJoined
        at += len(data)
        first_row += file.rows
    return bytes(joined.SerializeToString() + rest)


def _move(pages: Any, at: int, first_row: int, file: WholeFile) -> None:
    """Move pages to where their file lies in the joined one."""
    size, rows = len(file.data), 0
    for page in pages:
        offsets = list(page.buffer_offsets)
        if any(offset + length > size for offset, length in zip(offsets, page.buffer_sizes, strict=False)):
            raise _NotJoined
        page.buffer_offsets[:] = [offset + at for offset in offsets]
        page.priority += first_row
        rows += page.length
    if rows != file.rows:
        raise _NotJoined
