"""Local files of numbers, read without the codec: files of indices, of which a lookup wants some thousand rows.

To open a file and to read a page of it takes the codec most of a millisecond, as it hands the work to threads of its
own. A lookup that finds nothing in the cache reads three files, and that is nearly all of its time. So:

1. The file is opened, and its end is decoded: which columns there are. That is cached by what identifies the file.
2. Rows are decoded by :func:`~tablewright.format.packed_range.decode_range`.

Whatever is not understood, and whatever is wrong with a file, is left to the codec, which says what it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy.typing as npt
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.file_tail import FileTail, decode_tail
from tablewright.format.logical_types import arrow_type_of
from tablewright.format.packed_column import Read
from tablewright.format.packed_range import decode_range
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message
from tablewright.storage.base import Store
from tablewright.storage.identity import FileIdentity, is_local, is_settled, local_identity
from tablewright.storage.requests import count_request

__all__ = ["VERSION_READ_HERE", "NumberFile", "is_number", "open_numbers"]

VERSION_READ_HERE = (2, 2)
_TOP = frozenset((-1,))
_TAIL_BYTES = 1 << 15
_ROWS_MAX = 1 << 20
_COLUMN_BYTES = 512


class FileColumn(NamedTuple):
    """A top-level column: name, logical type, the Arrow type if its values are numbers, and metadata of its pages."""

    name: str
    logical_type: str
    type: pa.DataType | None
    metadata: bytes


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """The end of a file. Of another version than 2.2, or with nested columns, it has no columns here."""

    num_rows: int
    metadata: Mapping[str, str]
    columns: tuple[FileColumn, ...]

    @property
    def nbytes(self) -> int:
        return sum([_COLUMN_BYTES + len(column.metadata) for column in self.columns])


_ends = CacheKind[_End]("ends of files")


@dataclass(frozen=True, slots=True, eq=False)
class NumberFile:
    """An open file; ``read_bytes`` returns those of a range, none if it does not lie within the file.

    ``was_known``: its end was cached, so it was read before.
    """

    path: str
    descriptor: int
    identity: FileIdentity
    read_bytes: Read
    num_rows: int
    metadata: Mapping[str, str]
    columns: tuple[FileColumn, ...]
    was_known: bool = False

    def places(self, names: Sequence[str]) -> list[int]:
        """The numbers of columns of numbers with these names; -1 where there is no such column."""
        known = {column.name: place for place, column in enumerate(self.columns) if column.type is not None}
        return [known.get(name, -1) for name in names]

    def words(self, places: Sequence[int], start: int, stop: int) -> list[npt.NDArray[Any]] | None:
        """The rows from ``start`` up to ``stop`` of the columns with these numbers, as unsigned numbers of their width.

        ``None`` if the codec has to read them.
        """
        if min(places) < 0 or not 0 <= stop - start <= _ROWS_MAX:
            return None
        count_request("read numbers", path=self.path)
        found = []
        for place in places:
            column = self.columns[place]
            words = decode_range(column.metadata, self.num_rows, start, stop, self.read_bytes)
            if column.type is None or words is None or words.itemsize * 8 != column.type.bit_width:
                return None
            found.append(words)
        return found

    def read(self, places: Sequence[int], start: int, stop: int) -> list[pa.Array] | None:
        """The same rows as arrays; ``None`` if the codec has to read them."""
        found = self.words(places, start, stop)
        if found is None:
            return None
        return [_array(self.columns[place], words) for place, words in zip(places, found, strict=True)]


def _array(column: FileColumn, words: npt.NDArray[Any]) -> pa.Array:
    assert column.type is not None, f"{column.name} has no numbers"
    return pa.Array.from_buffers(column.type, len(words), [None, pa.py_buffer(words)])


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers of a fixed size: integers, floats, dates and times."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))


@contextmanager
def open_numbers(store: Store, path: str) -> Iterator[NumberFile | None]:
    """Open a local file; ``None`` if it is elsewhere, or can't be decoded: the codec has to open it."""
    location = store.codec_location(path)
    if location is None or not is_local(location):
        yield None
        return
    try:
        descriptor = os.open(location.uri, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        yield None
        return
    try:
        yield _opened(location.uri, descriptor)
    finally:
        os.close(descriptor)


def _opened(path: str, descriptor: int) -> NumberFile | None:
    identity = local_identity(descriptor)
    if identity is None:
        return None
    key, size, begin_of_tail, tail = (path, identity), identity[2], identity[2], b""

    def read(begin: int, stop: int) -> bytes:
        if not begin < stop <= size:
            return b""
        if begin >= begin_of_tail:
            return tail[begin - begin_of_tail : stop - begin_of_tail]
        try:
            return os.pread(descriptor, stop - begin, begin)
        except OSError:
            return b""

    end = _ends.find(key)
    was_known = end is not None
    if end is None:
        start = max(0, size - _TAIL_BYTES)
        tail = read(start, size)
        begin_of_tail = start
        try:
            end = _decode_end(decode_tail(size, read, path), path)
        except CorruptTable:
            return None
        if is_settled(identity):
            _ends.keep(key, end, end.nbytes)
    return NumberFile(path, descriptor, identity, read, end.num_rows, end.metadata, end.columns, was_known)


def _decode_end(tail: FileTail, path: str) -> _End:
    described = decode_message(schema_pb2.FileDescriptor, tail.descriptor, path, "the file's schema")
    fields = described.schema.fields
    columns: tuple[FileColumn, ...] = ()
    is_flat = len(fields) == len(tail.columns) and {field.parent_id for field in fields} <= _TOP
    if is_flat and tail.version == VERSION_READ_HERE:
        pairs = zip(fields, tail.columns, strict=True)
        columns = tuple(
            [
                FileColumn(field.name, field.logical_type, _number_type(field.logical_type), metadata)
                for field, metadata in pairs
            ]
        )
    metadata = {key: value.decode("utf-8", "replace") for key, value in described.schema.metadata.items()}
    return _End(described.length, metadata, columns)


@lru_cache(maxsize=256)
def _number_type(logical_type: str) -> pa.DataType | None:
    try:
        kind = arrow_type_of(logical_type, "")
    except UnsupportedFeature:
        return None
    return kind if is_number(kind) else None
