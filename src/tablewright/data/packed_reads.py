"""Single values of a column of numbers in a local file, read without the codec: for searches at thousands of places.

:mod:`tablewright.format.packed_column` knows the layout. The file is mapped into memory, so that a value costs no
system call. Where chunks are is cached by what identifies the file. The mapping is not: it would keep the disk space
of a file that was removed.

A file elsewhere, or a column with another encoding, has no such reader: the codec reads it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.data.codec_errors import reading
from tablewright.data.file_end import FileEnd, read_end
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.logical_types import arrow_type_of
from tablewright.format.packed_column import (
    Chunks,
    LoadedChunks,
    decode_chunks,
    load_chunks,
)
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.identity import is_local, is_settled, local_identity
from tablewright.storage.local_files import open_regular
from tablewright.storage.requests import count_request

__all__ = ["PackedColumn", "open_packed"]

_VERSION = (2, 2)
_TOP = -1

Longs = npt.NDArray[np.int64]
Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True, eq=False)
class PackedColumn:
    """A column whose values can be read one by one, from row ``first_row`` on."""

    path: str
    data: npt.NDArray[np.uint8]
    chunks: Chunks

    @property
    def first_row(self) -> int:
        """Rows before this one have to be read in another way."""
        return int(self.chunks.begins[0])

    def take(self, rows: Longs) -> npt.NDArray[Any]:
        """The values at any rows, as unsigned numbers of the column's width."""
        owners = np.searchsorted(self.chunks.begins, rows, "right") - 1
        return self.load(owners).values(rows - self.chunks.begins[owners])

    def load(self, which: Longs) -> LoadedChunks:
        """These chunks, which may repeat; :class:`CorruptTable` if they can't be what they should."""
        count_request("read chunks", path=self.path)
        with reading(self.path):
            if os.stat(self.path).st_size != len(self.data):  # touching bytes that are gone would end the process
                raise CorruptTable(self.path, ("it has another size than before",))
        try:
            return load_chunks(self.chunks, which, self.data, self.chunks.offsets[which])
        except ValueError as error:
            raise CorruptTable(self.path, (f"{error}",)) from error


_chunks = CacheKind[tuple[Chunks | None, ...]]("chunks of columns")


def open_packed(store: Store, path: str, columns: Mapping[str, pa.DataType]) -> tuple[PackedColumn | None, ...]:
    """Top-level columns of a file, with their types; ``None`` for those that only the codec can read."""
    location = store.codec_location(path)
    identity = None if location is None or not is_local(location) else local_identity(location.uri)
    if location is None or identity is None:
        return (None,) * len(columns)
    key: Hashable = (location.uri, identity, tuple((name, str(kind)) for name, kind in columns.items()))
    found = _chunks.find(key)
    if found is None:
        found = _read_chunks(store, path, location.uri, columns)
        if is_settled(identity):
            _chunks.keep(key, found, sum(64 + (chunks.nbytes if chunks is not None else 0) for chunks in found))
    data = None if all(chunks is None for chunks in found) else _mapped(location.uri, identity[2])
    if data is None:
        return (None,) * len(columns)
    return tuple(None if chunks is None else PackedColumn(location.uri, data, chunks) for chunks in found)


def _mapped(file: str, size: int) -> npt.NDArray[np.uint8] | None:
    """The bytes of a file; ``None`` if it has another size by now, or can't be mapped."""
    try:
        with open_regular(file) as descriptor:
            if os.fstat(descriptor).st_size != size:
                return None
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except OSError:
        return None
    mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint8)


def _read_chunks(store: Store, path: str, file: str, columns: Mapping[str, pa.DataType]) -> tuple[Chunks | None, ...]:
    none = (None,) * len(columns)
    try:
        end = read_end(store, path)
        described = decode_message(schema_pb2.FileDescriptor, end.tail.descriptor, end.where, "the file's schema")
        fields = list(described.schema.fields)
        is_flat = len(fields) == len(end.tail.columns) and all(field.parent_id == _TOP for field in fields)
        if end.tail.version != _VERSION or not is_flat:
            return none
        with open_regular(file) as descriptor:

            def read(begin: int, stop: int) -> bytes:
                return os.pread(descriptor, stop - begin, begin) if begin < stop <= end.tail.size else b""

            return tuple(_chunks_of(end, fields, name, kind, read) for name, kind in columns.items())
    except (CorruptTable, InvalidRequest, ObjectNotFound, OSError):
        return none  # the codec says what is wrong with it


def _chunks_of(end: FileEnd, fields: list[Any], name: str, kind: pa.DataType, read: Read) -> Chunks | None:
    places = [place for place, field in enumerate(fields) if field.name == name]
    if not _is_number(kind) or len(places) != 1 or arrow_type_of(fields[places[0]].logical_type, name) != kind:
        return None
    found = decode_chunks(end.tail.columns[places[0]], end.num_rows, read)
    if found is None or found.bits != kind.bit_width or int(found.ends.max()) > end.tail.size:
        return None
    return found


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind))
