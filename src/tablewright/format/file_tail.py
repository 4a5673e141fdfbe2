"""The end of a data file: where its parts are, and how to write another end for the same parts.

::

    pages and other buffers | global buffer 0: the file's schema | … | metadata of each column
    | (offset, size) of each column's metadata | (offset, size) of each global buffer | footer, 40 bytes

    footer: u64 column metadata, u64 column metadata offsets, u64 global buffer offsets     positions in the file
            u32 global buffers, u32 columns, u16 major, u16 minor, "LANC"

All numbers are little-endian. The codec wants the global buffer 0 at a multiple of 64, and the metadata after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tablewright.errors import CorruptTable
from tablewright.format.proto import data_file_pb2
from tablewright.format.wire import decode_message

__all__ = ["ALIGNMENT", "FOOTER_BYTES", "FileTail", "decode_tail", "descriptor_in", "problems_of_footer"]

_FOOTER = struct.Struct("<QQQIIHH4s")
_ENTRY = struct.Struct("<QQ")
ALIGNMENT = 64
FOOTER_BYTES = _FOOTER.size


def problems_of_footer(tail: bytes, size: int) -> tuple[str, ...]:
    """What is wrong with the footer ``tail`` of a file of ``size`` bytes.

    >>> problems_of_footer(b"PAR1", 4)
    ('it has 4 bytes, less than a footer',)
    """
    if len(tail) < _FOOTER.size:
        return (f"it has {size} bytes, less than a footer",)
    columns, column_table, buffer_table, num_buffers, num_columns, _, _, magic = _FOOTER.unpack(tail)
    if magic != b"LANC":
        return ("it does not end in LANC",)
    limit = size - _FOOTER.size
    problems = []
    if max(columns, column_table, buffer_table) > limit:
        problems.append("its footer points outside of it")
    if _ENTRY.size * (num_buffers + num_columns) > limit:
        problems.append(f"its footer counts {num_columns} columns and {num_buffers} buffers, which do not fit the file")
    return tuple(problems)


def descriptor_in(tail: bytes, size: int) -> bytes | None:
    """The descriptor of a file of ``size`` bytes, out of its last bytes, whose footer was checked; ``None`` if it lies
    outside of them, or nowhere.
    """
    begin = size - len(tail)
    _, _, table, num_buffers, _, _, _, _ = _FOOTER.unpack_from(tail, len(tail) - _FOOTER.size)
    if not num_buffers or table < begin or table + _ENTRY.size > size - _FOOTER.size:
        return None
    offset, length = _ENTRY.unpack_from(tail, table - begin)
    if offset < begin or offset + length > size:
        return None
    return tail[offset - begin : offset - begin + length]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTail:
    """A file's schema, the metadata of its physical columns, its version, as two numbers, and where its global buffers
    are: begin and end of each; the schema is the first.
    """

    size: int
    descriptor: bytes
    columns: tuple[bytes, ...]
    version: tuple[int, int]
    buffers: tuple[tuple[int, int], ...] = ()

    def ranges(self, columns: Sequence[int], path: str) -> Iterator[tuple[int, int]]:
        """Where the buffers of some physical columns are: begin and end of each, none of them empty."""
        for index in columns:
            message: Any = decode_message(
                data_file_pb2.ColumnMetadata, self.columns[index], path, f"the metadata of column {index}"
            )
            for part in (message, *message.pages):
                for offset, size in zip(part.buffer_offsets, part.buffer_sizes, strict=False):
                    if offset + size > self.size:
                        raise CorruptTable(path, (f"a buffer of column {index} lies outside of it",))
                    if size:
                        yield offset, offset + size

    def encode(self, descriptor: bytes) -> tuple[int, bytes]:
        """Another end of the file, with another schema, and where it begins."""
        begin = -(-self.size // ALIGNMENT) * ALIGNMENT
        metadata = begin + len(descriptor)
        entries, at = [], metadata
        for column in self.columns:
            entries.append(_ENTRY.pack(at, len(column)))
            at += len(column)
        tables = at + _ENTRY.size * len(entries)
        footer = _FOOTER.pack(metadata, at, tables, 1, len(entries), *self.version, b"LANC")
        parts = (descriptor, *self.columns, *entries, _ENTRY.pack(begin, len(descriptor)), footer)
        return begin, b"".join(parts)


def decode_tail(size: int, read: Callable[[int, int], bytes], path: str) -> FileTail:
    """Read the end of a file of ``size`` bytes; ``read`` returns the bytes of a range."""
    footer = read(max(0, size - _FOOTER.size), size)
    problems = problems_of_footer(footer, size)
    if problems:
        raise CorruptTable(path, tuple(f"the data file can't be decoded: {problem}" for problem in problems))
    _, column_table, buffer_table, num_buffers, num_columns, major, minor, _ = _FOOTER.unpack(footer)
    columns = _entries(read(column_table, column_table + _ENTRY.size * num_columns), size, path)
    buffers = _entries(read(buffer_table, buffer_table + _ENTRY.size * num_buffers), size, path)
    if len(columns) < num_columns or not buffers:
        raise CorruptTable(path, ("the data file can't be decoded: its tables of offsets are cut short",))
    return FileTail(
        size=size,
        descriptor=read(*buffers[0]),
        columns=tuple([read(begin, end) for begin, end in columns]),
        version=(major, minor),
        buffers=tuple(buffers),
    )


def _entries(table: bytes, size: int, path: str) -> list[tuple[int, int]]:
    whole = len(table) // _ENTRY.size * _ENTRY.size
    found = [(offset, offset + length) for offset, length in _ENTRY.iter_unpack(table[:whole])]
    if max([end for _, end in found], default=0) > size:
        raise CorruptTable(path, ("the data file can't be decoded: a part of it lies outside of it",))
    return found
