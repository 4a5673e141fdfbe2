"""The pages of a column of numbers: which can be read without the codec, and where their buffers are.

Three encodings of file version 2.2 are understood, those that numbers without nulls nearly always have: chunks of
*flat* or *inline bit-packed* values (:mod:`.packed_column`), and one *constant* for all rows.

Format: ``docs/format/data-files.md#chunks-of-numbers``.

Tests: ``tests/unit/format/test_packed_column.py``, ``tests/unit/format/test_packed_range.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from tablewright.format.page_layouts import ALL_VALID, LAYOUT_CHUNKS, LAYOUT_CONSTANT, fields_of, page_layout
from tablewright.format.proto import data_file_pb2

__all__ = ["NumberPage", "decode_pages"]

_WORD = 8
_FLAT, _PACKED = 1, 5
_BITS = (8, 16, 32, 64)
_NUMBER_MAX = 1 << 62


@dataclass(frozen=True, slots=True)
class _Encoding:
    """Bits of a value, 0 if the codec has to read the page; how many items are in chunks; the value of a constant."""

    bits: int = 0
    is_packed: bool = False
    items: int = 0
    constant: bytes | None = None


@dataclass(frozen=True, slots=True)
class NumberPage:
    """A page of this many rows; ``bits`` of a value, 0 if only the codec can read it.

    It has the places of two buffers (first byte, byte after the last), the table of its chunks and these, or a
    ``constant``.
    """

    rows: int
    bits: int = 0
    is_packed: bool = False
    table: tuple[int, int] = (0, 0)
    data: tuple[int, int] = (0, 0)
    constant: bytes | None = None

    @property
    def has_chunks(self) -> bool:
        """Whether its values can be read one by one."""
        return bool(self.bits) and self.constant is None


def decode_pages(column: bytes, num_rows: int, start: int = 0) -> Iterator[tuple[int, NumberPage]]:
    """The pages of a column with this metadata in a file with this many rows, each with the number of its first row.

    Those that end before row ``start`` are left out. ``ValueError`` if pages don't fit the file, or there is more.
    """
    try:
        message: Any = data_file_pb2.ColumnMetadata.FromString(column)
    except DecodeError as error:
        raise ValueError from error
    rows = [page.length for page in message.pages]
    if len(message.buffer_offsets) or sum(rows) != num_rows:
        raise ValueError
    begin = 0
    for page, count in zip(message.pages, rows, strict=True):
        if begin + count > start:
            yield begin, _page(page)
        begin += count


def _page(page: Any) -> NumberPage:
    rows, offsets, sizes = page.length, page.buffer_offsets, page.buffer_sizes
    found = _encoding(page.encoding)
    if found.constant is not None and not len(offsets):
        return NumberPage(rows, found.bits, constant=found.constant)
    if found.constant is not None or not found.bits or found.items != rows:
        return NumberPage(rows)
    if len(offsets) != 2 or len(sizes) != 2 or offsets[1] % _WORD:
        return NumberPage(rows)
    table, data = (offsets[0], offsets[0] + sizes[0]), (offsets[1], offsets[1] + sizes[1])
    if max(rows, table[1], data[1]) > _NUMBER_MAX:
        return NumberPage(rows)
    return NumberPage(rows, found.bits, found.is_packed, table, data)


@lru_cache(maxsize=64)
def _encoding(encoding: bytes) -> _Encoding:
    try:
        kind, layout = page_layout(encoding)
        read = {LAYOUT_CHUNKS: _chunks, LAYOUT_CONSTANT: _constant}.get(kind)
        return _Encoding() if read is None else read(layout)
    except ValueError:
        return _Encoding()


def _chunks(layout: dict[int, int | bytes]) -> _Encoding:
    # values; one layer, of items that are all valid; one buffer; number of items; large chunks
    if set(layout) != {3, 6, 7, 9, 10} or (layout[6], layout[7], layout[10]) != (ALL_VALID, 1, 1):
        return _Encoding()
    ((kind, inner),) = fields_of(layout[3]).items()
    ((number, bits),) = fields_of(inner).items()
    items = layout[9]
    if kind not in (_FLAT, _PACKED) or number != 1 or bits not in _BITS or isinstance(items, bytes):
        return _Encoding()
    return _Encoding(int(bits), kind == _PACKED, items)


def _constant(layout: dict[int, int | bytes]) -> _Encoding:
    if set(layout) != {5, 6} or layout[5] != ALL_VALID or not isinstance(layout[6], bytes):
        return _Encoding()
    bits = 8 * len(layout[6])
    return _Encoding(bits, constant=layout[6]) if bits in _BITS else _Encoding()
