"""Roaring bitmaps to numbers, all bitmaps of a column at once, every byte checked.

Bitmaps whose containers are all lists of values, which is nearly all of them where there are many, are read together.
Those with containers of bits or runs are read one by one (:mod:`tablewright.format.roaring`).

Tests: ``tests/unit/format/id_sets/test_sets.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from tablewright.format.id_sets.bitmaps import Bitmaps, Longs, Words, ranges, read_u32
from tablewright.format.roaring import measure_bitmap

__all__ = ["Headers", "check", "headers", "unpack"]

_COOKIE = 0x303A
_ARRAY_VALUES_MAX = 4096
_CONTAINERS_MAX = 1 << 16
_HEAD_WORDS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Headers:
    """What the headers of some bitmaps say: values, words in all, and whether all containers are lists of values.

    ``sizes`` is -1 for bitmaps with runs: these say nothing at a fixed place.
    """

    counts: Longs
    sizes: Longs
    plain: npt.NDArray[np.bool_]


def headers(words: Words, starts: Longs, limits: Longs) -> Headers:
    """Read the headers of bitmaps that begin at ``starts`` and end not after ``limits``; else ``ValueError``."""
    if np.any(starts + _HEAD_WORDS > limits):
        raise ValueError("the roaring bitmap ends too early")
    simple = read_u32(words, starts) == _COOKIE
    containers = np.where(simple, read_u32(words, starts + 2), 0)
    if np.any(containers > _CONTAINERS_MAX):
        raise ValueError(f"the roaring bitmap claims {int(containers.max())} containers")
    if np.any(starts + _HEAD_WORDS + 4 * containers > limits):
        raise ValueError("the roaring bitmap ends too early")
    described = ranges(starts + _HEAD_WORDS, 2 * containers)
    cards = words[described[1::2]].astype(np.int64) + 1
    owner = np.repeat(np.arange(len(starts)), containers)
    counts = _summed(owner, cards, len(starts))
    stored = _summed(owner, np.minimum(cards, _ARRAY_VALUES_MAX), len(starts))
    sizes = np.where(simple, _HEAD_WORDS + 4 * containers + stored, -1)
    dense = _summed(owner, (cards > _ARRAY_VALUES_MAX).astype(np.int64), len(starts))
    return Headers(counts, sizes, simple & (dense == 0))


def _summed(owner: Longs, numbers: Longs, count: int) -> Longs:
    ends = np.cumsum(np.bincount(owner, minlength=count))
    totals = np.append(0, np.cumsum(numbers))
    return np.diff(totals[ends], prepend=0)


def unpack(bitmaps: Bitmaps, values_max: int | None = None) -> tuple[npt.NDArray[np.uint64], Longs]:
    """The ids of all bitmaps, one bitmap after the other, ascending in each; and how many each has.

    ``ValueError`` if the bytes are no bitmaps, or hold more than ``values_max`` values in all.
    """
    words, starts, sizes = bitmaps.words, bitmaps.starts, bitmaps.sizes
    head = headers(words, starts, starts + sizes)
    if np.any((head.sizes >= 0) & (head.sizes != sizes)):
        raise ValueError("the roaring bitmap has another length than its containers need")
    _check_total(int(head.counts.sum()), values_max)
    counts = head.counts.copy()
    others: dict[int, FrozenBitMap] = {}
    for number in np.flatnonzero(~head.plain).tolist():
        others[number] = _single(words[starts[number] : starts[number] + sizes[number]].tobytes(), values_max)
        counts[number] = len(others[number])
    _check_total(int(counts.sum()), values_max)
    ends = np.cumsum(counts)
    lows = np.empty(int(counts.sum()), np.uint32)
    plain = np.flatnonzero(head.plain)
    if len(plain) == len(counts):
        lows[:] = _lists(words, starts, counts)
    else:
        lows[ranges((ends - counts)[plain], counts[plain])] = _lists(words, starts[plain], counts[plain])
    for number, bitmap in others.items():
        lows[ends[number] - counts[number] : ends[number]] = np.frombuffer(bitmap.to_array(), np.uint32)
    ids = lows.astype(np.uint64)
    ids |= np.repeat(bitmaps.highs.astype(np.uint64) << np.uint64(32), counts)
    return ids, counts


def check(bitmaps: Bitmaps) -> None:
    """See that every bitmap is one, so that pyroaring, which looks at nothing, can have them; else ``ValueError``."""
    head = headers(bitmaps.words, bitmaps.starts, bitmaps.starts + bitmaps.sizes)
    if np.any((head.sizes >= 0) & (head.sizes != bitmaps.sizes)):
        raise ValueError("the roaring bitmap has another length than its containers need")
    _lists(bitmaps.words, bitmaps.starts[head.plain], head.counts[head.plain])
    for number in np.flatnonzero(~head.plain).tolist():
        start, size = bitmaps.starts[number], bitmaps.sizes[number]
        _single(bitmaps.words[start : start + size].tobytes(), None)


def _check_total(count: int, values_max: int | None) -> None:
    if values_max is not None and count > values_max:
        raise ValueError(f"the roaring bitmaps count {count} values where there can be at most {values_max}")


def _single(data: bytes, values_max: int | None) -> FrozenBitMap:
    if (size := measure_bitmap(data, values_max)) != len(data):
        raise ValueError(f"the roaring bitmap has {len(data)} bytes where {size} were expected")
    return FrozenBitMap.deserialize(data)


def _lists(words: Words, starts: Longs, counts: Longs) -> npt.NDArray[np.uint32]:
    """The values of bitmaps without bits and runs, whose headers are checked."""
    containers = read_u32(words, starts + 2)
    described = ranges(starts + _HEAD_WORDS, 2 * containers)
    keys, cards = words[described[0::2]], words[described[1::2]].astype(np.int64) + 1
    which = np.repeat(np.arange(len(starts)), containers)
    begin = np.cumsum(containers) - containers
    before = np.cumsum(cards) - cards
    heads = _HEAD_WORDS + 4 * containers
    inside = (
        heads[which] + before - before[np.minimum(begin, max(0, len(before) - 1))][which] if len(before) else before
    )
    pointers = ranges(starts + _HEAD_WORDS + 2 * containers, 2 * containers)
    if not np.array_equal(read_u32(words, pointers[0::2]), 2 * inside):
        raise ValueError("the offsets of the roaring bitmap do not point to its containers")
    lows = words[ranges(starts + heads, counts)].astype(np.uint32)
    lows |= np.repeat(keys.astype(np.uint32) << np.uint32(16), cards)
    falls = lows[1:] <= lows[:-1]
    edges = np.cumsum(counts)[:-1]
    falls[edges[(edges > 0) & (edges < len(lows))] - 1] = False
    if np.any(falls):
        raise ValueError("the values of a roaring bitmap are not in order")
    return lows
