"""A struct of arrays for many ``Range`` segments: Lance writes one per row where rows were moved in no order.

A fragment may have hundreds of thousands of them. They are parsed by vectorised arithmetic on the bytes, without a
message per segment, and kept as two columns that act as one segment. It encodes to the ranges it was read from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.row_set import Offsets
from tablewright.format.wire import as_buffer, scan

__all__ = ["ManyRanges", "many_ranges"]

Numbers = npt.NDArray[np.uint64]

_SEGMENT_TAG = _RANGE_TAG = 0x0A
_SHAPES = (1, 2, 3, 4, 5)
_RANGE, _START, _END = 1, 1, 2
_LENGTH_MAX = 0x80
_SMALL_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ManyRanges:
    """The numbers of several ranges in their order; ``starts`` and ``ends`` are 64-bit numbers, little-endian."""

    starts: bytes
    ends: bytes

    def _bounds(self) -> tuple[Numbers, Numbers]:
        return np.frombuffer(self.starts, "<u8").astype(np.uint64), np.frombuffer(self.ends, "<u8").astype(np.uint64)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        starts, ends = self._bounds()
        return zip(starts.tolist(), ends.tolist(), strict=True)

    @property
    def count(self) -> int:
        """How many numbers there are; no array of that size is made for it."""
        starts, ends = self._bounds()
        sizes = ends - starts
        return int(sizes.sum()) if int(sizes.max(initial=0)) < 2**32 else sum(sizes.tolist())

    def values(self) -> Numbers:
        """All numbers, in order."""
        starts, ends = self._bounds()
        sizes = (ends - starts).astype(np.int64)
        before = np.cumsum(sizes) - sizes
        numbers: Numbers = np.arange(int(sizes.sum()), dtype=np.uint64)
        numbers += np.repeat(starts - before.astype(np.uint64), sizes)
        return numbers

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        firsts, lasts = self.intervals()
        return (int(firsts.min()), int(lasts.max())) if len(firsts) else None

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most."""
        return len(self.starts) // 8

    def intervals(self) -> tuple[Numbers, Numbers]:
        """First and last numbers (both included) of the ranges that are not empty, in their order."""
        starts, ends = self._bounds()
        full = starts < ends
        return starts[full], ends[full] - np.uint64(1)

    def finder(self) -> Callable[[Numbers], Offsets]:
        """A binary search over the ranges sorted by start, prepared once for many calls of :meth:`positions`."""
        firsts, lasts = self.intervals()
        sizes = (lasts - firsts).astype(np.int64) + 1
        order = np.argsort(firsts, kind="stable")
        before = (np.cumsum(sizes) - sizes)[order]
        firsts, lasts = firsts[order], lasts[order]

        def positions(numbers: Numbers) -> Offsets:
            if not len(firsts):
                return np.full(len(numbers), -1, np.int64)
            place = np.maximum(np.searchsorted(firsts, numbers, side="right") - 1, 0)
            inside = (numbers >= firsts[place]) & (numbers <= lasts[place])
            return np.where(inside, before[place] + (numbers - firsts[place]).astype(np.int64), -1)

        return positions

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        return self.finder()(numbers)


def many_ranges(data: bytes) -> ManyRanges | None:
    """The ranges in the bytes of a row-id sequence; ``None`` if they are few, or mixed with other shapes."""
    if len(data) < _SMALL_BYTES:
        return None
    begins = _segments(data)
    if begins is None:
        return None
    buffer, _, _ = as_buffer([data])
    ends = begins + buffer[begins - 1]
    shapes = scan(buffer, begins, ends, spans=_SHAPES)
    found = shapes.spans[_RANGE]
    alone = len(found.rows) == len(begins) and not any(len(shapes.spans[shape].rows) for shape in _SHAPES[1:])
    if shapes.bad.any() or not alone or not np.array_equal(found.ends, ends):
        return None
    order = np.argsort(found.rows, kind="stable")
    if not np.array_equal(found.rows[order], np.arange(len(begins))):
        return None
    numbers = scan(buffer, found.starts[order], found.ends[order], numbers=(_START, _END))
    low, high = numbers.numbers[_START], numbers.numbers[_END]
    if numbers.bad.any() or np.any(high < low):
        return None
    return ManyRanges(low.astype("<u8").tobytes(), high.astype("<u8").tobytes())


def _segments(data: bytes) -> Offsets | None:
    """The start of each segment's range message, or ``None`` unless every segment is short and holds one range.

    Candidates are all places with the four header bytes of such a segment: its tag and length, then those of its range,
    which is two bytes shorter. They are the segments if each begins where the one before it ends.
    """
    buffer = np.frombuffer(data, np.uint8)
    tags, sizes = buffer[:-3], buffer[1:-2]
    inner_tags, inner_sizes = buffer[2:-1], buffer[3:]
    begins = np.flatnonzero(
        (tags == _SEGMENT_TAG)
        & (inner_tags == _RANGE_TAG)
        & (sizes < _LENGTH_MAX)
        & (inner_sizes + np.uint8(2) == sizes)
    )
    if not len(begins) or begins[0] != 0:
        return None
    ends = begins + 2 + buffer[begins + 1]
    return begins + 2 if np.array_equal(ends, np.append(begins[1:], len(data))) else None
