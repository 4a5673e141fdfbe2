"""How a page of a data file is laid out: the message that its encoding wraps, field by field.

Format: ``docs/format/data-files.md#pages``.

Tests: ``tests/unit/format/test_packed_column.py``, ``tests/unit/data/test_copied.py``.
"""

from __future__ import annotations

from tablewright.format.wire_walk import walk

__all__ = ["ALL_VALID", "LAYOUT_CHUNKS", "LAYOUT_CONSTANT", "LAYOUT_ZIPPED", "fields_of", "page_layout"]

LAYOUT_CHUNKS, LAYOUT_CONSTANT, LAYOUT_ZIPPED = 1, 2, 3
ALL_VALID = b"\x01"
"""Layers of a page: one, of items none of which is null."""

_TYPE_URL = b"/lance.encodings21.PageLayout"

Layout = dict[int, int | bytes]


def page_layout(encoding: bytes) -> tuple[int, Layout]:
    """The kind of a page layout and its fields by number; ``ValueError`` if the encoding is no such layout."""
    wrapped = fields_of(_message_in(_message_in(encoding, 2), 1))
    if set(wrapped) != {1, 2} or wrapped[1] != _TYPE_URL:
        raise ValueError
    ((kind, layout),) = fields_of(wrapped[2]).items()
    return kind, fields_of(layout)


def fields_of(message: int | bytes) -> Layout:
    """The fields of a message by number; ``ValueError`` if it is none, or has a field twice.

    >>> fields_of(bytes.fromhex("0896011202abcd"))
    {1: 150, 2: b'\\xab\\xcd'}
    """
    if not isinstance(message, bytes):
        raise ValueError
    found: Layout = {}
    for number, kind, begin, end in walk(message, 0, len(message)):
        if number in found:
            raise ValueError
        found[number] = begin if kind == 0 else message[begin:end]
    return found


def _message_in(message: int | bytes, number: int) -> bytes:
    """The one field of a message, which has to be a message and to have this number; else ``ValueError``."""
    ((found, value),) = fields_of(message).items()
    if found != number or not isinstance(value, bytes):
        raise ValueError
    return value
