"""Runs of unsigned 64-bit numbers in the five shapes that Lance stores (fact sheet §5.1).

A segment keeps its stored form (two bounds, or bytes) and answers questions by array arithmetic on it; values are made
only on demand. So a range costs the same whatever it spans, equality is equality of bytes, and what was decoded encodes
to the same bytes again. All ``end`` bounds are exclusive. In a bitmap the least significant bit comes first.

:func:`segment_of` chooses the shape for values as Lance does:

1. ascending without holes: a range
2. ascending: the cheapest of range with holes (4 bytes per hole), range with bitmap (1 bit per number spanned) and
   sorted array (2 bytes per value); of equals the first
3. anything else: a plain array

Numbers in arrays are distances from the smallest in 16 or 32 bits, or plain 64 bits: the narrowest that fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.many_ranges import ManyRanges

__all__ = [
    "Array",
    "NumberArray",
    "Range",
    "RangeWithBitmap",
    "RangeWithHoles",
    "Segment",
    "SortedArray",
    "segment_of",
]

Numbers = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

_LIMIT = 2**64
_BITS_PER_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(axis=1, dtype=np.int64)
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class NumberArray:
    """Numbers of ``width`` bits, little-endian in ``data``, each a distance from ``base`` (0 when 64 bits wide)."""

    width: int
    base: int
    data: bytes

    @classmethod
    def of(cls, values: Numbers) -> NumberArray:
        """The narrowest form of some numbers, in their order."""
        if not len(values):
            return cls(16, 0, b"")
        base, highest = int(values.min()), int(values.max())
        width = 16 if highest - base < 2**16 else 32 if highest - base < 2**32 else 64
        base = 0 if width == 64 else base
        return cls(width, base, (values - np.uint64(base)).astype(f"<u{width // 8}").tobytes())

    def __len__(self) -> int:
        return len(self.data) * 8 // self.width

    def values(self) -> Numbers:
        """All numbers, in order."""
        stored = np.frombuffer(self.data, dtype=f"<u{self.width // 8}").astype(np.uint64)
        return stored + np.uint64(self.base)


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from ``start`` up to ``end``."""

    start: int
    end: int

    @property
    def count(self) -> int:
        """How many numbers there are; no array is made for it."""
        return self.end - self.start

    def values(self) -> Numbers:
        """All numbers, in order."""
        return np.arange(self.start, self.end, dtype=np.uint64)

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        return (self.start, self.end - 1) if self.start < self.end else None

    def positions(self, numbers: Numbers) -> Offsets:
        """Where each number stands in the segment; -1 where it does not."""
        inside, distance = _within(numbers, self.start, self.end)
        return np.where(inside, distance, _ABSENT)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Disjoint ascending intervals that hold the same numbers, as first and last numbers (both included)."""
        return _interval(self.start, self.end)


@dataclass(frozen=True, slots=True)
class RangeWithHoles:
    """All numbers from ``start`` up to ``end`` but the holes, which ascend."""

    start: int
    end: int
    holes: NumberArray

    @property
    def count(self) -> int:
        """How many numbers there are; no array is made for it."""
        return self.end - self.start - len(self.holes)

    def values(self) -> Numbers:
        """All numbers, in order."""
        keep = np.ones(self.end - self.start, np.bool_)
        keep[(self.holes.values() - np.uint64(self.start)).astype(np.int64)] = False
        return np.flatnonzero(keep).astype(np.uint64) + np.uint64(self.start)

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        firsts, lasts = self.intervals()
        return (int(firsts[0]), int(lasts[-1])) if len(firsts) else None

    def positions(self, numbers: Numbers) -> Offsets:
        """Where each number stands in the segment; -1 where it does not."""
        holes = self.holes.values()
        inside, distance = _within(numbers, self.start, self.end)
        before = np.searchsorted(holes, numbers, side="left")
        is_hole = np.searchsorted(holes, numbers, side="right") > before
        return np.where(inside & ~is_hole, distance - before, _ABSENT)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Disjoint ascending intervals that hold the same numbers, as first and last numbers (both included)."""
        firsts, lasts = _interval(self.start, self.end)
        holes, one = self.holes.values(), np.uint64(1)
        if not len(holes):
            return firsts, lasts
        after, before = np.concatenate([firsts, holes + one]), np.concatenate([holes - one, lasts])
        full = np.concatenate([firsts < holes[:1], holes[1:] - holes[:-1] > one, holes[-1:] < lasts])
        return after[full], before[full]


@dataclass(frozen=True, slots=True)
class RangeWithBitmap:
    """Those numbers from ``start`` up to ``end`` whose bit is set."""

    start: int
    end: int
    bitmap: bytes

    @property
    def count(self) -> int:
        """How many numbers there are; no array is made for it."""
        return int(_BITS_PER_BYTE[np.frombuffer(self.bitmap, np.uint8)].sum())

    def _bits(self) -> npt.NDArray[np.uint8]:
        packed = np.frombuffer(self.bitmap, np.uint8)
        return np.unpackbits(packed, count=self.end - self.start, bitorder="little")

    def values(self) -> Numbers:
        """All numbers, in order."""
        return np.flatnonzero(self._bits()).astype(np.uint64) + np.uint64(self.start)

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        set_bits = np.flatnonzero(self._bits())
        return (self.start + int(set_bits[0]), self.start + int(set_bits[-1])) if len(set_bits) else None

    def positions(self, numbers: Numbers) -> Offsets:
        """Where each number stands in the segment; -1 where it does not."""
        if not self.bitmap:
            return np.full(len(numbers), _ABSENT, np.int64)
        inside, distance = _within(numbers, self.start, self.end)
        packed = np.frombuffer(self.bitmap, np.uint8)
        before = np.cumsum(_BITS_PER_BYTE[packed]) - _BITS_PER_BYTE[packed]
        place, bit = np.divmod(np.where(inside, distance, 0), 8)
        byte = packed[place]
        is_set = (byte >> bit.astype(np.uint8)) & 1 == 1
        lower = byte & ((1 << bit) - 1).astype(np.uint8)
        return np.where(inside & is_set, before[place] + _BITS_PER_BYTE[lower], _ABSENT)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Disjoint ascending intervals that hold the same numbers, as first and last numbers (both included)."""
        return _runs(self.values())


@dataclass(frozen=True, slots=True)
class SortedArray:
    """Ascending numbers."""

    numbers: NumberArray

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return len(self.numbers)

    def values(self) -> Numbers:
        """All numbers, in order."""
        return self.numbers.values()

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        values = self.values()
        return (int(values[0]), int(values[-1])) if len(values) else None

    def positions(self, numbers: Numbers) -> Offsets:
        """Where each number stands in the segment; -1 where it does not."""
        return _search(self.values(), numbers)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Disjoint ascending intervals that hold the same numbers, as first and last numbers (both included)."""
        return _runs(self.values())


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers in any order."""

    numbers: NumberArray

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return len(self.numbers)

    def values(self) -> Numbers:
        """All numbers, in order."""
        return self.numbers.values()

    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest number, both included."""
        values = self.values()
        return (int(values.min()), int(values.max())) if len(values) else None

    def positions(self, numbers: Numbers) -> Offsets:
        """Where each number stands in the segment; -1 where it does not."""
        values = self.values()
        order = np.argsort(values, kind="stable")
        found = _search(values[order], numbers)
        return np.where(found >= 0, order[found], _ABSENT) if len(values) else found

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Disjoint ascending intervals that hold the same numbers, as first and last numbers (both included)."""
        return _runs(np.sort(self.values()))


Segment = Range | RangeWithHoles | RangeWithBitmap | SortedArray | Array | ManyRanges


def _within(numbers: Numbers, start: int, end: int) -> tuple[npt.NDArray[np.bool_], Offsets]:
    """Which numbers lie between the bounds, and how far from the first (wrong where they do not)."""
    if start >= end:
        return np.zeros(len(numbers), np.bool_), np.zeros(len(numbers), np.int64)
    inside = (numbers >= np.uint64(start)) & (numbers <= np.uint64(end - 1))
    return inside, (numbers - np.uint64(start)).astype(np.int64)


def _interval(start: int, end: int) -> tuple[Numbers, Numbers]:
    full = [start] if start < end else []
    return np.array(full, np.uint64), np.array([end - 1 for _ in full], np.uint64)


def _search(ascending: Numbers, numbers: Numbers) -> Offsets:
    if not len(ascending):
        return np.full(len(numbers), _ABSENT, np.int64)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.where(ascending[place] == numbers, place, _ABSENT)


def _runs(ascending: Numbers) -> tuple[Numbers, Numbers]:
    """Runs of consecutive numbers. A number that comes twice begins a new one, so that intervals show duplicates."""
    breaks = np.flatnonzero(ascending[1:] - ascending[:-1] != np.uint64(1))
    edges = np.concatenate([[-1], breaks, [len(ascending) - 1]]) if len(ascending) else np.zeros(1, np.int64)
    return ascending[edges[:-1] + 1], ascending[edges[1:]]


# ------------------------------------------------------------------------------------------------- choice of a shape
def segment_of(values: Numbers) -> Segment:
    """The shape that Lance would choose for these numbers.

    >>> segment_of(np.array([100, 101, 103, 104], np.uint64))
    RangeWithBitmap(start=100, end=105, bitmap=b'\\x1b')
    """
    if not len(values):
        return Range(0, 0)
    if np.any(values[1:] <= values[:-1]):
        return Array(NumberArray.of(values))
    start, end = int(values[0]), int(values[-1]) + 1
    span, count = end - start, len(values)
    holes = span - count
    costs = (4 * holes, (span + 7) // 8, 2 * count)
    if not holes and end < _LIMIT:
        return Range(start, end)
    if end == _LIMIT or min(costs) == costs[2] < min(costs[:2]):  # an exclusive end of 2**64 can't be stored
        return SortedArray(NumberArray.of(values))
    present = np.zeros(span, np.uint8)
    present[(values - np.uint64(start)).astype(np.int64)] = 1
    if costs[0] <= costs[1]:
        gaps = np.flatnonzero(present == 0).astype(np.uint64) + np.uint64(start)
        return RangeWithHoles(start, end, NumberArray.of(gaps))
    return RangeWithBitmap(start, end, np.packbits(present, bitorder="little").tobytes())
