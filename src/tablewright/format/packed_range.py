"""Neighbouring rows of a column of numbers, decoded without the codec: some thousands, as a page of an index has.

1. Pages that have some of the rows are found by counting rows.
2. The table of a page says which of its chunks have them: all but the last have as many rows. These chunks lie one
   after the other, and are read at once.
3. Packed chunks are unpacked as a whole: two words of each value are gathered, shifted, united and masked.

Format: ``docs/format/data-files.md#chunks-of-numbers``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tablewright.format.packed_column import CHUNK_ROWS_MAX, HEADER_BYTES, PACKED_ROWS, Read, have_sizes, lanes_of
from tablewright.format.packed_pages import NumberPage, decode_pages

__all__ = ["decode_range"]

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[Any]

_WORD = 8


def decode_range(column: bytes, num_rows: int, start: int, stop: int, read: Read) -> Words | None:
    """The rows from ``start`` up to ``stop`` as unsigned numbers, of a column with this metadata.

    The file has ``num_rows`` rows, and ``read`` returns its bytes. ``None`` if only the codec can read them, or if
    anything is odd.
    """
    found: list[Words] = []
    try:
        for begin, page in decode_pages(column, num_rows, start):
            if begin >= stop:
                break
            part = _part(page, max(start - begin, 0), min(stop - begin, page.rows), read)
            if part is None:
                return None
            found.append(part)
    except ValueError:
        return None
    if not found or sum(map(len, found)) != stop - start:
        return None
    return found[0] if len(found) == 1 else np.concatenate(found)


def _part(page: NumberPage, low: int, high: int, read: Read) -> Words | None:
    """The rows of one page, counted from its first."""
    kind = np.dtype(f"<u{page.bits // 8}") if page.bits else None
    if kind is None:
        return None
    if page.constant is not None:
        return np.full(high - low, np.frombuffer(page.constant, kind)[0])
    chunks = _chunks(page, read(*page.table), low, high)
    if chunks is None:
        return None
    nbytes = sum(chunks.sizes)
    data = read(chunks.begin, chunks.begin + nbytes)
    if len(data) != nbytes or not have_sizes(data, chunks.sizes):
        return None
    parts = _values(np.frombuffer(data, kind), chunks, is_packed=page.is_packed)
    if parts is None:
        return None
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole[low - chunks.first_row : high - chunks.first_row]


class _Chunks(NamedTuple):
    """Neighbours in a page: where the first begins, the size of each in bytes, its rows, and the first one's row."""

    begin: int
    sizes: list[int]
    rows: int
    first_row: int


def _chunks(page: NumberPage, table: bytes, low: int, high: int) -> _Chunks | None:
    """The chunks with these rows of a page; ``None`` if its table does not fit it."""
    if not table or len(table) % 4:
        return None
    entries = np.frombuffer(table, "<u4")
    rows = _rows_of_each(page, entries)
    ends = ((entries >> 4) + np.int64(1)).cumsum() * _WORD
    if not rows or int(ends[-1]) != page.data[1] - page.data[0]:
        return None
    first, last = low // rows, (high - 1) // rows
    edges = [int(ends[first - 1]) if first else 0, *ends[first : last + 1].tolist()]
    sizes = [end - begin for begin, end in pairwise(edges)]
    return _Chunks(page.data[0] + edges[0], sizes, rows, first * rows)


def _rows_of_each(page: NumberPage, entries: Words) -> int:
    """The rows of every chunk but the last, which has the rest, if any; 0 if chunks differ, or don't fit the page."""
    if len(entries) == 1:
        rows = page.rows
    else:
        logarithm = int(entries[0]) & 15
        rows = 1 << logarithm
        if not 0 < page.rows - rows * (len(entries) - 1) <= rows or np.count_nonzero((entries[:-1] & 15) != logarithm):
            return 0
    return rows if rows <= (PACKED_ROWS if page.is_packed else CHUNK_ROWS_MAX) else 0


def _values(words: Words, chunks: _Chunks, *, is_packed: bool) -> list[Words] | None:
    """The values of chunks out of their words, chunks of one size at once; the last ones may be more than it has rows.

    ``None`` if a chunk has too few, or another number of bits than it says.
    """
    parts, at = [], 0
    for size, group in groupby(chunks.sizes):
        step = size // words.itemsize
        end = at + step * len(list(group))
        matrix = words[at:end].reshape(-1, step)[:, HEADER_BYTES // words.itemsize :]
        values = _unpacked(matrix, size) if is_packed else matrix
        if values is None or (values.shape[1] < chunks.rows and end < len(words)):
            return None
        parts.append(values[:, : chunks.rows].ravel())
        at = end
    return parts


def _unpacked(chunks: Words, size: int) -> Words | None:
    """The values of packed chunks of this many bytes, 1,024 of each; a chunk begins with their number of bits."""
    kind = chunks.dtype
    bits = kind.itemsize * 8
    width = (size - HEADER_BYTES - kind.itemsize) // (PACKED_ROWS // 8)
    if not 0 <= width <= bits or chunks[:, 0].tolist() != [width] * len(chunks):
        return None
    if not width:
        return np.zeros((len(chunks), PACKED_ROWS), kind)
    words = chunks[:, 1 : 1 + width * lanes_of(bits)[0]]
    first, following, right, left = _steps(bits, width)
    values, upper = words.take(first, axis=1), words.take(following, axis=1)  # quicker than by index
    values >>= right
    upper <<= left
    values |= upper
    values &= kind.type((1 << width) - 1)
    return values


@lru_cache(maxsize=32)
def _steps(bits: int, width: int) -> tuple[Longs, Longs, Words, Words]:
    """For each value the words with its first and its last bits, and by how much these are shifted.

    numpy shifts by all bits of a word to 0, and bits that belong to the next value are masked away.
    """
    lanes, numbers = lanes_of(bits)
    begins, lane = numbers * width, np.arange(PACKED_ROWS) % lanes
    first = begins // bits
    right = (begins % bits).astype(f"<u{bits // 8}")
    following = np.minimum(first + 1, width - 1)
    return first * lanes + lane, following * lanes + lane, right, (bits - right).astype(right.dtype)
