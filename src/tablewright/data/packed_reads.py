"""Single values of a column of numbers in a local file, read without the codec: for searches at thousands of places.

:mod:`tablewright.format.packed_column` knows the layout. Chunks that lie close together are read in one call, and at
most :data:`CHUNKS_MAX` are in memory at a time. Where chunks are is cached by what identifies the file.

A file elsewhere, or a column with another encoding, has no such reader: the codec reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
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
    span_starts,
    values_of_spans,
)
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.identity import is_local, is_settled, local_identity
from tablewright.storage.local_files import open_regular
from tablewright.storage.requests import count_request

__all__ = ["CHUNKS_MAX", "PackedColumn", "Scratch", "open_packed"]

CHUNKS_MAX = 2048
_GAP_BYTES = 4096  # reading on costs less than another call
_VALUES_PER_CHUNK = 4  # from here on reading whole chunks costs less
_SPARE_BYTES = 256  # a span that ends with its file is shorter than others
_VERSION = (2, 2)
_TOP = -1

Longs = npt.NDArray[np.int64]
Read = Callable[[int, int], bytes]


class Scratch:
    """Memory that several reads use in turn: new memory costs as much as what is read into it."""

    def __init__(self) -> None:
        self._data = bytearray()

    def view(self, size: int) -> memoryview:
        """This many bytes, and at least some more; what was there before is gone."""
        if len(self._data) < size + _SPARE_BYTES:
            self._data = bytearray(size + size // 4 + _SPARE_BYTES)
        return memoryview(self._data)


@dataclass(frozen=True, slots=True, eq=False)
class PackedColumn:
    """A column whose values can be read one by one, from row ``first_row`` on."""

    path: str
    where: str
    size: int
    chunks: Chunks

    @property
    def first_row(self) -> int:
        """Rows before this one have to be read in another way."""
        return int(self.chunks.begins[0])

    def take(self, rows: Longs) -> npt.NDArray[Any]:
        """The values at ascending rows, as unsigned numbers of the column's width."""
        found = np.empty(len(rows), f"<u{self.chunks.bits // 8}")
        for part, which, owners in self._parts(rows):
            places = rows[part] - self.chunks.begins[owners]
            if len(owners) > _VALUES_PER_CHUNK * len(which):
                found[part] = self.load(which).at(np.searchsorted(which, owners)).values(places)
            else:
                found[part] = self._single(owners, places)
        return found

    def _single(self, owners: Longs, places: Longs) -> npt.NDArray[Any]:
        """Values that lie in nearly as many chunks: only the bytes around each are read."""
        size = self.chunks.span_bytes
        starts = span_starts(self.chunks, owners, places)
        # The last values of a file end before their span would.
        counts = np.minimum(size, self.size - starts)
        begins = np.arange(0, len(starts) * size, size)
        data = np.frombuffer(self._read(starts, begins, begins + counts, Scratch()), np.uint8)
        return values_of_spans(self.chunks, owners, places, data[: len(starts) * size].reshape(-1, size))

    def _parts(self, rows: Longs) -> Iterator[tuple[slice, Longs, Longs]]:
        """Parts of the rows that lie in few chunks: a slice of the rows, those chunks, and the chunk of each row."""
        owners = np.searchsorted(self.chunks.begins, rows, "right") - 1
        is_new = np.concatenate(([True], owners[1:] != owners[:-1]))[: len(rows)]
        numbers = np.cumsum(is_new) - 1
        for start in range(0, int(numbers[-1]) + 1 if len(rows) else 0, CHUNKS_MAX):
            low, high = np.searchsorted(numbers, [start, start + CHUNKS_MAX])
            part = slice(int(low), int(high))
            yield part, owners[part][is_new[part]], owners[part]

    def load(self, which: Longs, scratch: Scratch | None = None) -> LoadedChunks:
        """Read these chunks, which ascend; :class:`CorruptTable` if they can't be what they should.

        With a ``scratch`` they are overwritten by what is loaded next into it.
        """
        offsets, ends = self.chunks.offsets[which], self.chunks.ends[which]
        is_first = np.concatenate(([True], offsets[1:] > ends[:-1] + _GAP_BYTES))[: len(which)]
        firsts = np.flatnonzero(is_first)
        starts, stops = offsets[firsts], ends[np.concatenate((firsts[1:], [len(which)])) - 1]
        placed = np.concatenate(([0], np.cumsum(stops - starts)))
        data = self._read(starts, placed[:-1], placed[1:], scratch or Scratch())
        runs = np.cumsum(is_first) - 1
        try:
            begins = placed[runs] + offsets - starts[runs]
            return load_chunks(self.chunks, which, np.frombuffer(data, np.uint8), begins)
        except ValueError as error:
            raise CorruptTable(self.where, (f"{error}",)) from error

    def _read(self, starts: Longs, begins: Longs, ends: Longs, scratch: Scratch) -> memoryview:
        """The bytes of the file from each of ``starts`` on, placed from ``begins`` to ``ends``."""
        count_request("read chunks", path=self.where)
        view = scratch.view(int(ends.max(initial=0)))
        with reading(self.where), open_regular(self.path) as descriptor:
            for start, begin, end in zip(starts.tolist(), begins.tolist(), ends.tolist(), strict=True):
                if os.preadv(descriptor, [view[begin:end]], start) != end - begin:
                    raise CorruptTable(self.where, ("it is shorter than it says",))
        return view


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
    return tuple(
        None if chunks is None else PackedColumn(location.uri, location.uri, identity[2], chunks) for chunks in found
    )


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
