"""Where each row of a column of wide values is, whose values have one size: vectors, mostly.

From 256 bytes on Lance does not put values into chunks. A page without nulls whose values are not compressed is one
buffer, with one value after the other.

Format: ``docs/format/data-files.md#wide-values``.

Tests: ``tests/unit/data/test_copied.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from tablewright.format.page_layouts import ALL_VALID, LAYOUT_ZIPPED, fields_of, page_layout
from tablewright.format.proto import data_file_pb2

__all__ = ["WidePages", "decode_wide_pages"]

Longs = npt.NDArray[np.int64]
_FLAT, _LIST = 1, 11


@dataclass(frozen=True, slots=True, eq=False)
class WidePages:
    """Bytes per row, the first row of each page and its first byte. The number of rows follows the last page."""

    row_bytes: int
    first_rows: Longs
    first_bytes: Longs


def decode_wide_pages(column: bytes, num_rows: int, size: int) -> WidePages | None:
    """The pages of a column with this metadata, of a file with this many rows and bytes.

    ``None`` if only the codec can read one of them, or if anything is odd.
    """
    try:
        message: Any = data_file_pb2.ColumnMetadata.FromString(column)
        widths = {_width(page, size) for page in message.pages}
    except (DecodeError, ValueError):
        return None
    rows = [page.length for page in message.pages]
    if len(widths) != 1 or sum(rows) != num_rows or len(message.buffer_offsets):
        return None
    first_bytes = np.array([page.buffer_offsets[0] for page in message.pages], np.int64)
    return WidePages(widths.pop(), np.cumsum([0, *rows]), first_bytes)


def _width(page: Any, size: int) -> int:
    """The bytes of a row of this page; ``ValueError`` if it has another layout, or does not lie within the file."""
    kind, layout = page_layout(page.encoding)
    # bits per value; items, of which all are visible; their compression; one layer, of items that are all valid
    if kind != LAYOUT_ZIPPED or set(layout) != {3, 5, 6, 7, 8} or layout[8] != ALL_VALID:
        raise ValueError
    bits, rows = _number(layout[3]), page.length
    if bits != _bits(layout[7]) or not layout[5] == layout[6] == rows:
        raise ValueError
    (begin,), (nbytes,) = page.buffer_offsets, page.buffer_sizes
    if bits % 8 or nbytes != rows * bits // 8 or begin + nbytes > size:
        raise ValueError
    return bits // 8


def _bits(compression: int | bytes) -> int:
    """The bits of an uncompressed value, or of a list of these; ``ValueError`` for anything else."""
    ((kind, inner),) = fields_of(compression).items()
    fields = fields_of(inner)
    if kind == _FLAT and set(fields) == {1}:
        return _number(fields[1])
    if kind == _LIST and set(fields) == {1, 2}:
        return _number(fields[1]) * _bits(fields[2])
    raise ValueError


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError
    return value
