"""Rows of wide columns of a local file, copied out of it without the codec.

The codec makes a request of its own for each row of a vector: 10 us each, and an update of 5,000 rows spends most of
its time there. Where :mod:`tablewright.format.wide_pages` knows the layout, the file is mapped into memory and rows are
copied, 0.3 us each.

A page of the file that is not in memory is read when it is touched, one after the other, where the codec reads many at
a time. So some of the rows are looked for first, and if one is not in memory, the codec reads all of them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.data.layout import FileLayout
from tablewright.data.mapped import FileBytes
from tablewright.errors import CorruptTable
from tablewright.format.file_tail import decode_tail
from tablewright.format.proto import schema_pb2
from tablewright.format.row_set import Offsets
from tablewright.format.wide_pages import Longs, WidePages, decode_wide_pages
from tablewright.format.wire import decode_message
from tablewright.storage.requests import count_request

__all__ = ["ROWS_MIN", "WideRows", "open_wide_rows"]

ROWS_MIN = 64
"""From this many rows on it is worth to open the file once more."""

_SAMPLES = 32


@dataclass(frozen=True, slots=True, eq=False)
class WideRows:
    """A mapped file: its bytes, the top-level columns of a batch of it, and those that can be copied, by name.

    ``others`` are the paths of columns that the codec has to read.
    """

    path: str
    data: FileBytes
    num_rows: int
    schema: pa.Schema
    names: tuple[str, ...]
    columns: Mapping[str, WidePages]
    others: tuple[str, ...]

    def has(self, offsets: Offsets) -> bool:
        """Whether rows at ascending offsets can be copied: they are in the file, and in memory as far as is known."""
        try:
            is_whole = os.stat(self.path).st_size == len(self.data)  # touching bytes that are gone ends the process
        except OSError:
            return False
        if not is_whole or offsets[-1] >= self.num_rows:
            return False
        some = offsets[:: -(-len(offsets) // _SAMPLES)]
        return all(_are_in_memory(self.data, _positions(pages, some)) for pages in self.columns.values())

    def batches(self, offsets: Offsets, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The rows at ascending offsets. Precondition: there are no other columns."""
        count_request("copy rows", path=self.path)
        schema = pa.schema([self.schema.field(name) for name in self.names], self.schema.metadata)
        for at in range(0, len(offsets), rows_per_batch):
            part = offsets[at : at + rows_per_batch]
            yield pa.RecordBatch.from_arrays([self._take(name, part) for name in self.names], schema=schema)

    def beside(self, others: Iterator[pa.RecordBatch], offsets: Offsets) -> Iterator[pa.RecordBatch]:
        """Batches of the other columns of the rows at ascending offsets, completed."""
        count_request("copy rows", path=self.path)
        at = 0
        for batch in others:
            part = offsets[at : at + batch.num_rows]
            at += batch.num_rows
            fields, arrays = [], []
            for name in self.names:
                is_wide = name in self.columns
                fields.append((self.schema if is_wide else batch.schema).field(name))
                arrays.append(self._take(name, part) if is_wide else batch.column(name))
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))

    def _take(self, name: str, offsets: Offsets) -> pa.Array:
        """The values of a column at ascending offsets."""
        kind, pages = self.schema.field(name).type, self.columns[name]
        width, first_rows = pages.row_bytes, pages.first_rows
        found = np.empty((len(offsets), width), np.uint8)
        edges = np.searchsorted(offsets, first_rows)
        for page in np.flatnonzero(np.diff(edges)).tolist():
            begin, rows = int(pages.first_bytes[page]), int(first_rows[page + 1] - first_rows[page])
            values = self.data[begin : begin + rows * width].reshape(rows, width)
            part = slice(edges[page], edges[page + 1])
            values.take(offsets[part] - first_rows[page], axis=0, out=found[part], mode="clip")  # else it copies twice
        return _array(kind, len(offsets), pa.py_buffer(found))


def open_wide_rows(
    path: str, known: bytes, schema: pa.Schema, version: str, wanted: Sequence[str] | None
) -> WideRows | None:
    """Map a file with this schema and version, of which these columns are wanted: dotted names, ``None`` for all.

    ``known`` is what its reader has read as its descriptor. ``None`` if no column can be copied.
    """
    paths = schema.names if wanted is None else wanted
    candidates = [name for name in paths if name in schema.names and _has_one_size(schema.field(name).type)]
    if not candidates or _mincore() is None:
        return None
    layout = FileLayout.of(schema, version)
    try:
        with open(path, "rb", buffering=0) as file:
            descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size
            tail = decode_tail(size, lambda begin, end: os.pread(descriptor, end - begin, begin), path)
            if tail.descriptor != known:
                return None
            described = decode_message(schema_pb2.FileDescriptor, tail.descriptor, path, "the file's schema")
            columns = {}
            for name in candidates:
                (number,) = layout.columns_at([name])
                pages = decode_wide_pages(tail.columns[number], described.length, size)
                if pages is not None and pages.row_bytes * 8 == _bits(schema.field(name).type):
                    columns[name] = pages
            if not columns:
                return None
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except (OSError, ValueError, IndexError, CorruptTable):
        return None  # the codec says what is wrong
    mapped.madvise(mmap.MADV_RANDOM)
    names = tuple(dict.fromkeys(each.split(".")[0] for each in paths))
    others = tuple(each for each in paths if each not in columns)
    return WideRows(path, np.frombuffer(mapped, np.uint8), described.length, schema, names, columns, others)


# ------------------------------------------------------------------------------------------------------------- types
def _has_one_size(kind: pa.DataType) -> bool:
    """Whether values are lists of one size, of numbers, or bytes of one number: others are not wide."""
    types = pa.types
    if types.is_fixed_size_list(kind):
        inner = kind.value_type
        return bool(types.is_integer(inner) or types.is_floating(inner) or _has_one_size(inner))
    return bool(types.is_fixed_size_binary(kind)) and not isinstance(kind, pa.BaseExtensionType)


def _bits(kind: pa.DataType) -> int:
    return kind.list_size * _bits(kind.value_type) if pa.types.is_fixed_size_list(kind) else int(kind.bit_width)


def _array(kind: pa.DataType, count: int, data: pa.Buffer) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        inner = _array(kind.value_type, count * kind.list_size, data)
        return pa.Array.from_buffers(kind, count, [None], null_count=0, children=[inner])
    return pa.Array.from_buffers(kind, count, [None, data], null_count=0)


# ------------------------------------------------------------------------------------------------------------ memory
def _positions(pages: WidePages, offsets: Offsets) -> Longs:
    """The first byte of each of these rows."""
    page = np.searchsorted(pages.first_rows, offsets, "right") - 1
    return np.asarray(pages.first_bytes[page] + (offsets - pages.first_rows[page]) * pages.row_bytes, np.int64)


def _are_in_memory(data: FileBytes, positions: Longs) -> bool:
    """Whether the pages of a mapped file at these positions can be read without a disk."""
    ask, answer = _mincore(), ctypes.create_string_buffer(1)
    page_bytes, address = mmap.PAGESIZE, data.ctypes.data
    for position in (positions // page_bytes * page_bytes).tolist():
        if ask is None or ask(address + position, 1, answer) or not answer.raw[0] & 1:
            return False
    return True


@lru_cache(maxsize=1)
def _mincore() -> Any:
    """The system's call; ``None`` where there is none."""
    try:
        call = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError, TypeError):
        return None
    call.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    return call
