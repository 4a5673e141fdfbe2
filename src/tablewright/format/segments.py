"""Runs of unsigned 64-bit numbers in the five shapes that Lance stores.

A segment keeps its stored form (two bounds, or bytes) and computes on it by array arithmetic; values are expanded only
on demand. So a range costs the same whatever its length, equality is equality of bytes, and what was decoded encodes to
the same bytes again. All ``end`` bounds are exclusive. In a bitmap the least significant bit comes first. Numbers in
arrays are distances from the smallest in 16 or 32 bits, or plain 64 bits: the narrowest that fits.

Which shape some numbers take is decided in ``segment_choice.py``.

Format: ``docs/format/row-ids.md#segments``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tablewright.format.many_ranges import ManyRanges
from tablewright.format.row_set import Offsets

__all__ = [
    "Array",
    "NumberArray",
    "Range",
    "RangeWithBitmap",
    "RangeWithHoles",
    "Segment",
    "SortedArray",
    "runs_of",
]

Numbers = npt.NDArray[np.uint64]
Finder = Callable[[Numbers], Offsets]

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

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most; no array is made for it."""
        return 1

    def finder(self) -> Finder:
        """The search that :meth:`positions` does, prepared once for many calls."""
        return self.positions

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        inside, distance = _within(numbers, self.start, self.end)
        return np.where(inside, distance, _ABSENT)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
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

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most; no array is made for it."""
        return len(self.holes) + 1

    def finder(self) -> Finder:
        """The search that :meth:`positions` does, prepared once for many calls."""
        holes, start, end = self.holes.values(), self.start, self.end

        def positions(numbers: Numbers) -> Offsets:
            inside, distance = _within(numbers, start, end)
            before = np.searchsorted(holes, numbers, side="left")
            is_hole = np.searchsorted(holes, numbers, side="right") > before
            return np.where(inside & ~is_hole, distance - before, _ABSENT)

        return positions

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        return self.finder()(numbers)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
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

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most; no array is made for it."""
        return min(self.count, (self.end - self.start + 1) // 2)

    def finder(self) -> Finder:
        """The search that :meth:`positions` does, prepared once for many calls."""
        packed, start, end = np.frombuffer(self.bitmap, np.uint8), self.start, self.end
        bits = _BITS_PER_BYTE[packed]
        before = np.cumsum(bits) - bits

        def positions(numbers: Numbers) -> Offsets:
            inside, distance = _within(numbers, start, end)
            if not len(packed):
                return np.full(len(numbers), _ABSENT, np.int64)
            place, bit = np.divmod(np.where(inside, distance, 0), 8)
            byte = packed[place]
            is_set = (byte >> bit.astype(np.uint8)) & 1 == 1
            lower = byte & ((1 << bit) - 1).astype(np.uint8)
            return np.where(inside & is_set, before[place] + _BITS_PER_BYTE[lower], _ABSENT)

        return positions

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        return self.finder()(numbers)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
        return runs_of(self.values())


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

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most."""
        return self.count

    def finder(self) -> Finder:
        """The search that :meth:`positions` does, prepared once for many calls."""
        return partial(_search, self.values())

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        return self.finder()(numbers)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
        return runs_of(self.values())


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

    @property
    def num_runs_max(self) -> int:
        """How many runs of consecutive numbers there are at most."""
        return self.count

    def finder(self) -> Finder:
        """The search that :meth:`positions` does, prepared once for many calls."""
        values = self.values()
        order = np.argsort(values, kind="stable")
        ascending = values[order]

        def positions(numbers: Numbers) -> Offsets:
            found = _search(ascending, numbers)
            return np.where(found >= 0, order[found], _ABSENT) if len(order) else found

        return positions

    def positions(self, numbers: Numbers) -> Offsets:
        """The position of each number in the segment; -1 if it is absent."""
        return self.finder()(numbers)

    def intervals(self) -> tuple[Numbers, Numbers]:
        """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
        return runs_of(self.values())


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


def runs_of(values: Numbers) -> tuple[Numbers, Numbers]:
    """Runs of consecutive numbers in their order, as first and last numbers (both included)."""
    if not len(values):
        return values, values
    breaks = np.flatnonzero((values[1:] - values[:-1] != np.uint64(1)) | (values[1:] == 0))
    return values[np.append(0, breaks + 1)], values[np.append(breaks, len(values) - 1)]
