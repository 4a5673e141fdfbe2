"""One protobuf message, field by field, in plain Python: for a few small messages cheaper than the columnar scanner.

It accepts and refuses the same bytes as :func:`tablewright.format.wire.scan`.

Tests: ``tests/unit/format/test_wire_walk.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["NotWhole", "walk"]

_U64_MASK = (1 << 64) - 1
_VARINT_BYTES_MAX = 10
_FIXED_BYTES = {1: 8, 5: 4}


class NotWhole(ValueError):
    """The bytes are no sequence of fields that ends exactly at the last of them."""


def walk(data: bytes | memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields between ``at`` and ``end``: number and wire type, then value and 0, or first byte and byte after it.

    >>> list(walk(bytes.fromhex("0896011202abcd"), 0, 7))
    [(1, 0, 150, 0), (2, 2, 5, 7)]
    """
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise NotWhole
        if kind == 0 or kind == 2:
            if at >= end:
                raise NotWhole
            value = data[at]
            at += 1
            if value >= 0x80:
                value, at = _varint(data, at - 1, end)
            if kind == 0:
                yield number, 0, value, 0
                continue
        elif kind in _FIXED_BYTES:
            value = _FIXED_BYTES[kind]
        else:  # groups, and what is no wire type
            raise NotWhole
        begin, at = at, at + value
        if at > end:
            raise NotWhole
        yield number, kind, begin, at


def _varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if at + place >= end:
            break
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if place == _VARINT_BYTES_MAX - 1 and byte >= 0x02:
                break
            return value & _U64_MASK, at + place + 1
    raise NotWhole
