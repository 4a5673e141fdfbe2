"""Columns of a local file whose rows are copied out of it without the codec, where rows are scattered.

The codec makes a request of its own for each row of a vector: 7 to 10 us each, and an update of 5,000 rows spends most
of its time there. Numbers cost it 0.2 us per row and column. Where the layout is known, the file is mapped into memory
and rows are copied: 0.2 us for a vector of 512 bytes (4 us if its page is touched for the first time), 0.03 us for a
number.

- *Wide values*, such as vectors: :mod:`tablewright.format.wide_pages`.
- *Numbers*: :mod:`tablewright.format.packed_column`. They are copied where there are many rows, since another reader
  has to be opened for the columns that the codec reads.

A page of the file that is not in memory is read when it is touched, one after the other, where the codec reads many at
a time. So some of the rows are looked for first, and if one is not in memory, the codec reads all of them.

Why: ``docs/design/0013-without-the-codec.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablewright.data.layout import FileLayout
from tablewright.data.mapped import FileBytes, are_in_memory, can_tell_memory, map_file
from tablewright.data.number_files import is_number
from tablewright.data.sizes import fixed_width
from tablewright.errors import CorruptTable
from tablewright.format.file_tail import decode_tail
from tablewright.format.packed_column import Chunks, decode_chunks, load_chunks
from tablewright.format.proto import schema_pb2
from tablewright.format.row_set import Offsets
from tablewright.format.wide_pages import Longs, WidePages, decode_wide_pages
from tablewright.format.wire import decode_message
from tablewright.storage.requests import count_request

__all__ = ["NUMBER_ROWS_MIN", "ROWS_MIN", "CopiedColumns", "open_copied"]

ROWS_MIN, NUMBER_ROWS_MIN = 64, 2048
"""From how many rows on columns are copied: wide ones, and numbers."""

_SAMPLES = 32
_NUMBERS_VERSION = "2.2"


class Column(Protocol):
    """A column whose rows can be copied out of the bytes of its file."""

    def positions(self, offsets: Offsets) -> Longs:
        """Where in the file each of these rows is: the position of one of its bytes, or of its chunk."""

    def take(self, data: FileBytes, offsets: Offsets) -> pa.Array:
        """The values at ascending offsets; ``ValueError`` if they can't be what they should."""


@dataclass(frozen=True, slots=True, eq=False)
class CopiedColumns:
    """A mapped file: its bytes, the top-level columns of a batch of it, and those that can be copied, by name.

    ``others`` are the paths of columns that the codec has to read.
    """

    path: str
    data: FileBytes
    num_rows: int
    schema: pa.Schema
    names: tuple[str, ...]
    columns: Mapping[str, Column]
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
        return all(are_in_memory(self.data, column.positions(some)) for column in self.columns.values())

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
                is_copied = name in self.columns
                fields.append((self.schema if is_copied else batch.schema).field(name))
                arrays.append(self._take(name, part) if is_copied else batch.column(name))
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))

    def _take(self, name: str, offsets: Offsets) -> pa.Array:
        try:
            return self.columns[name].take(self.data, offsets)
        except ValueError as error:
            raise CorruptTable(self.path, (f"column {name}: {error}",)) from error


def open_copied(
    path: str, known: bytes, schema: pa.Schema, version: str, wanted: Sequence[str] | None, *, numbers: bool
) -> CopiedColumns | None:
    """Map a file with this schema and version, of which these columns are wanted: dotted names, ``None`` for all.

    ``known`` is the descriptor that the codec's reader has read: another file at the path is refused. Wide columns are
    copied, and with ``numbers`` columns of numbers too. ``None`` if no wanted column can be copied.
    """
    paths = schema.names if wanted is None else wanted
    numbers = numbers and version == _NUMBERS_VERSION
    candidates = {name: schema.field(name).type for name in paths if name in schema.names}
    candidates = {name: kind for name, kind in candidates.items() if _is_wide(kind) or (numbers and is_number(kind))}
    if not candidates or not can_tell_memory():
        return None
    layout = FileLayout.of(schema, version)
    try:
        with open(path, "rb", buffering=0) as file:
            descriptor, size = file.fileno(), os.fstat(file.fileno()).st_size

            def read(begin: int, end: int) -> bytes:
                return os.pread(descriptor, end - begin, begin)

            tail = decode_tail(size, read, path)
            if tail.descriptor != known:
                return None
            rows = decode_message(schema_pb2.FileDescriptor, tail.descriptor, path, "the file's schema").length
            columns = {}
            for name, kind in candidates.items():
                (number,) = layout.columns_at([name])
                column = _column(kind, tail.columns[number], rows, size, read)
                if column is not None:
                    columns[name] = column
            if not columns:
                return None
            data = map_file(descriptor, size)
    except (OSError, ValueError, IndexError, CorruptTable):
        return None  # the codec says what is wrong
    if data is None:
        return None
    names = tuple(dict.fromkeys(each.split(".")[0] for each in paths))
    others = tuple(each for each in paths if each not in columns)
    return CopiedColumns(path, data, rows, schema, names, columns, others)


def _column(
    kind: pa.DataType, metadata: bytes, num_rows: int, size: int, read: Callable[[int, int], bytes]
) -> Column | None:
    """A column of this type; ``None`` if only the codec can read it."""
    if _is_wide(kind):
        pages = decode_wide_pages(metadata, num_rows, size)
        return None if pages is None or pages.row_bytes != fixed_width(kind) else _Wide(kind, pages)
    chunks = decode_chunks(metadata, num_rows, read)
    if chunks is None or chunks.begins[0] or chunks.bits != kind.bit_width or int(chunks.ends.max()) > size:
        return None
    return _Numbers(kind, chunks)


# ----------------------------------------------------------------------------------------------------------- columns
@dataclass(frozen=True, slots=True, eq=False)
class _Wide:
    kind: pa.DataType
    pages: WidePages

    def positions(self, offsets: Offsets) -> Longs:
        pages = self.pages
        page = np.searchsorted(pages.first_rows, offsets, "right") - 1
        return np.asarray(pages.first_bytes[page] + (offsets - pages.first_rows[page]) * pages.row_bytes, np.int64)

    def take(self, data: FileBytes, offsets: Offsets) -> pa.Array:
        width, first_rows = self.pages.row_bytes, self.pages.first_rows
        found = np.empty((len(offsets), width), np.uint8)
        edges = np.searchsorted(offsets, first_rows)
        for page in np.flatnonzero(np.diff(edges)).tolist():
            begin, rows = int(self.pages.first_bytes[page]), int(first_rows[page + 1] - first_rows[page])
            values = data[begin : begin + rows * width].reshape(rows, width)
            part = slice(edges[page], edges[page + 1])
            values.take(offsets[part] - first_rows[page], axis=0, out=found[part], mode="clip")  # else it copies twice
        return _array(self.kind, len(offsets), pa.py_buffer(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    kind: pa.DataType
    chunks: Chunks

    def positions(self, offsets: Offsets) -> Longs:
        return self.chunks.offsets[self.chunks.owners(offsets)]

    def take(self, data: FileBytes, offsets: Offsets) -> pa.Array:
        owners = self.chunks.owners(offsets)
        loaded = load_chunks(self.chunks, owners, data, self.chunks.offsets[owners])
        words = loaded.values(offsets - self.chunks.begins[owners])
        return pa.Array.from_buffers(self.kind, len(words), [None, pa.py_buffer(words)], null_count=0)


def _is_wide(kind: pa.DataType) -> bool:
    """Whether values are fixed-size lists of numbers or fixed-size binary: they may be wide."""
    types = pa.types
    if types.is_fixed_size_list(kind):
        inner = kind.value_type
        return bool(types.is_integer(inner) or types.is_floating(inner) or _is_wide(inner))
    return bool(types.is_fixed_size_binary(kind)) and not isinstance(kind, pa.BaseExtensionType)


def _array(kind: pa.DataType, count: int, data: pa.Buffer) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        inner = _array(kind.value_type, count * kind.list_size, data)
        return pa.Array.from_buffers(kind, count, [None], null_count=0, children=[inner])
    return pa.Array.from_buffers(kind, count, [None, data], null_count=0)
