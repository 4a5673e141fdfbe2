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

from tablewright.format.proto import data_file_pb2
from tablewright.format.wire_walk import NotWhole, walk

__all__ = ["NumberPage", "decode_pages"]

_TYPE_URL = b"/lance.encodings21.PageLayout"
_WORD = 8
_CHUNKS, _CONSTANT = 1, 2
_FLAT, _PACKED = 1, 5
_BITS = (8, 16, 32, 64)
_ALL_VALID = b"\x01"  # one layer, of items none of which is null
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
        wrapped = dict(_fields(_only(_only(encoding, 2), 1)))
        if set(wrapped) != {1, 2} or wrapped[1] != _TYPE_URL:
            return _Encoding()
        ((kind, layout),) = _fields(_bytes(wrapped[2]))
        read = {_CHUNKS: _chunks, _CONSTANT: _constant}.get(kind)
        return _Encoding() if read is None else read(dict(_fields(_bytes(layout))))
    except (NotWhole, ValueError):
        return _Encoding()


def _chunks(layout: dict[int, int | bytes]) -> _Encoding:
    # values; one layer, of items that are all valid; one buffer; number of items; large chunks
    if set(layout) != {3, 6, 7, 9, 10} or (layout[6], layout[7], layout[10]) != (_ALL_VALID, 1, 1):
        return _Encoding()
    ((kind, inner),) = _fields(_bytes(layout[3]))
    ((number, bits),) = _fields(_bytes(inner))
    items = layout[9]
    if kind not in (_FLAT, _PACKED) or number != 1 or bits not in _BITS or isinstance(items, bytes):
        return _Encoding()
    return _Encoding(int(bits), kind == _PACKED, items)


def _constant(layout: dict[int, int | bytes]) -> _Encoding:
    if set(layout) != {5, 6} or layout[5] != _ALL_VALID:
        return _Encoding()
    value = _bytes(layout[6])
    bits = 8 * len(value)
    return _Encoding(bits, constant=value) if bits in _BITS else _Encoding()


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    for number, kind, begin, end in walk(data, 0, len(data)):
        yield number, begin if kind == 0 else data[begin:end]


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError
    return value


def _only(data: bytes, number: int) -> bytes:
    """The one field of a message, which has to have this number."""
    ((found, value),) = _fields(data)
    if found != number:
        raise ValueError
    return _bytes(value)
