"""Segmentation of row ids: where a sequence is split into segments, and in which of the five shapes each is stored.

The cheapest of a few candidate splits is chosen by exact encoded size. Input are *runs* of consecutive numbers (first,
last), so a range costs the same whatever its length; runs that continue each other become one. The size of a group of
runs in each shape follows from its bounds, its count and the bounds of its holes, so the sizes of all groups are
computed at once, vectorised:

1. One segment of everything is the first candidate. If numbers descend somewhere, that is a plain array.
2. The others break where numbers descend. They add breaks at gaps wider than 64, 1,024, 65,536 or 2**32 numbers, or
   where the upper 48 bits change (so that offsets fit 16 bits); each also with breaks around runs of more than 1,024
   numbers. Each segment costs 32 bytes extra, because readers search segments one after the other. Ties go to fewer
   segments.
3. Where numbers descend, adjacent groups that would be cheaper in one plain array are one: shuffled ids beside a
   range don't turn the range into an array.
4. Ids that were stored before bring *splits*, the borders of their segments, which are a candidate as well: sequences
   that are joined never cost more than one by one.
5. A group without holes is a range. Others take their smallest shape; ties go to range with holes, then range with
   bitmap, then sorted array. A group that descends is an array.

Lance estimates 4 bytes per hole and 2 per array value, whatever they need; any of its choices can be read.

Format: ``docs/format/row-ids.md#segments``.

Tests: ``tests/unit/format/test_many_ranges.py``, ``tests/property/test_segments.py``,
``tests/differential/test_segments.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tablewright.format.segments import (
    Array,
    NumberArray,
    Numbers,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    runs_of,
)

__all__ = ["segments_of", "segments_of_runs"]

Sizes = npt.NDArray[np.float64]
Breaks = npt.NDArray[np.bool_]

_GAPS = (1 << 32, 1 << 16, 1 << 10, 1 << 6)
_HIGH_BITS = np.uint64(16)
_LONG_RUN = 1 << 10
_SEGMENT_COST = 32
_TOP = np.uint64(2**64 - 1)
_ONE = np.uint64(1)
_VARINT_STEPS = {
    kind: np.array([1 << bits for bits in range(7, 64, 7)], dtype)
    for kind, dtype in (("u", np.uint64), ("f", np.float64))
}
_RANGE, _HOLES, _BITMAP, _SORTED, _ARRAY = range(5)


def segments_of(values: Numbers) -> tuple[Segment, ...]:
    """These numbers, in their order, as segments that together take few bytes.

    >>> segments_of(np.concatenate([np.arange(9, 50), np.arange(2**40, 2**40 + 7)]).astype(np.uint64))
    (Range(start=9, end=50), Range(start=1099511627776, end=1099511627783))
    """
    return segments_of_runs(*runs_of(values))


def segments_of_runs(firsts: Numbers, lasts: Numbers, splits: Breaks | None = None) -> tuple[Segment, ...]:
    """The numbers of runs, given by first and last (included), in their order.

    ``splits`` has one bool per pair of adjacent runs: whether a stored segment ended there.
    """
    if not len(firsts):
        return ()
    stored = np.zeros(len(firsts) - 1, np.bool_) if splits is None else splits
    joined = _joined(firsts, lasts, stored)
    candidates = [(*joined[:2], way) for way in _ways(*joined)]
    if stored.any():
        candidates.append(_joined(firsts, lasts, stored, only=stored & _alone(stored)))
    costs = [_cost(*each) for each in candidates] if len(candidates) > 1 else [0.0]
    return tuple(_shaped(*candidates[costs.index(min(costs))]))


def _alone(splits: Breaks) -> Breaks:
    """One bool per pair of adjacent runs: whether both are stored segments of their own."""
    ends = np.concatenate([[True], splits, [True]])
    alone: Breaks = ends[1:] & ends[:-1]
    return np.logical_and(alone[1:], alone[:-1])


def _joined(
    firsts: Numbers, lasts: Numbers, splits: Breaks, only: Breaks | None = None
) -> tuple[Numbers, Numbers, Breaks]:
    """The runs, where those that continue each other are one (``only``: at these pairs), and the splits left."""
    breaks = (firsts[1:] != lasts[:-1] + _ONE) | (lasts[:-1] == _TOP)
    if only is not None:
        breaks |= ~only
    if breaks.all():
        return firsts, lasts, splits
    return firsts[np.append(True, breaks)], lasts[np.append(breaks, True)], splits[breaks]


def _ways(firsts: Numbers, lasts: Numbers, splits: Breaks) -> Iterator[Breaks]:
    """Distinct candidate splits, fewest segments first: one bool per pair of adjacent runs, true at a break."""
    descends = firsts[1:] <= lasts[:-1]
    ways = _ascending_ways(firsts, lasts, descends) if len(firsts) > 1 else []
    if ways and descends.any():
        ordered = ~_shuffled(firsts, lasts, descends)
        ways = [descends, *(way & ordered for way in ways), *ways[-1:]]
    if splits.any():
        ways += [splits, *(way | splits for way in ways[1:2])]
    known: set[bytes] = set()
    for way in sorted([np.zeros(len(firsts) - 1, np.bool_), *ways], key=np.count_nonzero):
        if way.tobytes() not in known:
            known.add(way.tobytes())
            yield way


def _ascending_ways(firsts: Numbers, lasts: Numbers, descends: Breaks) -> list[Breaks]:
    """Splits into groups that ascend; only the coarsest, or none, where there are so many that they can't pay."""
    if _SEGMENT_COST * np.count_nonzero(descends) >= _array_cost(firsts, lasts):
        longest = _counts(firsts, lasts, np.append(0, np.flatnonzero(descends) + 1)).max()
        in_array = longest * _width(float(lasts.max() - firsts.min()))
        return [descends] if in_array > 2 * _SEGMENT_COST else []  # its own segment, and a second array after it
    gaps = np.where(descends, 0, firsts[1:] - lasts[:-1])
    ways = [descends, *(descends | (gaps > np.uint64(gap)) for gap in _GAPS)]
    ways.append(descends | (firsts[1:] >> _HIGH_BITS != firsts[:-1] >> _HIGH_BITS))
    long = lasts - firsts >= np.uint64(_LONG_RUN)
    if long.any():
        ways += [way | long[1:] | long[:-1] for way in ways]
    return ways


def _shuffled(firsts: Numbers, lasts: Numbers, descends: Breaks) -> Breaks:
    """Pairs of adjacent runs within one array: in groups that would take more bytes than their numbers in an array."""
    begin, end, sizes = _weighed(firsts, lasts, descends)
    in_array = _counts(firsts, lasts, begin) * _width(float(lasts.max() - firsts.min()))
    is_dear = np.concatenate([[False], sizes.min(axis=0) + _SEGMENT_COST > in_array, [False]])
    is_dear[1:-1] &= is_dear[2:] | is_dear[:-2]
    in_dear: Breaks = np.repeat(is_dear[1:-1], end - begin + 1)
    return np.logical_and(in_dear[1:], in_dear[:-1])


def _cost(firsts: Numbers, lasts: Numbers, breaks: Breaks) -> float:
    sizes = _weighed(firsts, lasts, breaks)[2].min(axis=0)
    return float(sizes.sum()) + _SEGMENT_COST * len(sizes)


def _array_cost(firsts: Numbers, lasts: Numbers) -> float:
    counts = np.array([float((lasts - firsts).astype(np.float64).sum()) + len(firsts)])
    low, high = firsts.min()[np.newaxis], lasts.max()[np.newaxis]
    return float(_nested(_array(low, high, counts))[0]) + _SEGMENT_COST


# --------------------------------------------------------------------------------------------------------------- sizes
def _weighed(
    firsts: Numbers, lasts: Numbers, breaks: Breaks
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Sizes]:
    """First and last run of each group, and its encoded size in each shape (infinite where the shape can't hold it)."""
    begin = np.concatenate([[0], np.flatnonzero(breaks) + 1]).astype(np.int64)
    end = np.append(begin[1:], len(firsts)).astype(np.int64) - 1
    descends = np.append(False, (firsts[1:] <= lasts[:-1]) & ~breaks)
    shuffled = np.logical_or.reduceat(descends, begin)
    low, high = np.minimum.reduceat(firsts, begin), np.maximum.reduceat(lasts, begin)
    counts = _counts(firsts, lasts, begin)
    span = (high - low).astype(np.float64) + 1
    holes = span - counts
    bounds = _field(low) + _field(high + _ONE)
    hole_bytes = _array(lasts[begin] + _ONE, firsts[end] - _ONE, holes)
    bitmap_bytes = np.ceil(span / 8)
    array_bytes = _nested(_array(low, high, counts))
    sizes = np.stack(
        [
            np.where(end == begin, _nested(bounds), np.inf),
            np.where(end > begin, _nested(bounds + _tagged(hole_bytes)), np.inf),
            _nested(bounds + _tagged(bitmap_bytes)),
            array_bytes,
            np.where(shuffled, array_bytes, np.inf),
        ]
    )
    sizes[:_SORTED, high == _TOP] = np.inf  # an exclusive end of 2**64 can't be stored
    sizes[_HOLES:, (end == begin) & (high != _TOP)] = np.inf
    sizes[:_ARRAY, shuffled] = np.inf
    return begin, end, sizes


def _counts(firsts: Numbers, lasts: Numbers, begin: npt.NDArray[np.int64]) -> Sizes:
    """How many numbers there are in the groups that begin at these runs."""
    return np.add.reduceat((lasts - firsts).astype(np.float64) + 1, begin)


def _varint(values: npt.NDArray[np.generic]) -> Sizes:
    """Encoded size of varints."""
    steps = np.searchsorted(_VARINT_STEPS[values.dtype.kind], values, side="right")
    return steps.astype(np.float64) + 1


def _field(values: Numbers) -> Sizes:
    """Encoded size of a varint field; 0 for the default value 0."""
    return np.where(values == 0, 0, _varint(values) + 1)


def _tagged(sizes: Sizes) -> Sizes:
    """Encoded size of a length-delimited field with a one-byte tag."""
    return sizes + _varint(sizes) + 1


def _nested(inner: Sizes) -> Sizes:
    """Encoded size of a shape as a field of its segment, as a field of the sequence."""
    return _tagged(_tagged(inner))


def _array(low: Numbers, high: Numbers, counts: Sizes) -> Sizes:
    """Encoded size of ``counts`` numbers between two bounds (both included) as an array: tag, base and values."""
    distance = (high - low).astype(np.float64)
    width = _width(distance)
    base = np.where(width == 8, 0, _field(low))
    return _tagged(base + _tagged(width * counts))


def _width(distance: Sizes | float) -> Sizes:
    """Bytes per number of an array whose numbers are this far apart."""
    return np.where(np.less(distance, 2**16), 2.0, np.where(np.less(distance, 2**32), 4.0, 8.0))


# -------------------------------------------------------------------------------------------------------------- shapes
def _shaped(firsts: Numbers, lasts: Numbers, breaks: Breaks) -> Iterator[Segment]:
    begin, end, sizes = _weighed(firsts, lasts, breaks)
    shapes = sizes.argmin(axis=0)
    for first, last, shape in zip(begin.tolist(), end.tolist(), shapes.tolist(), strict=True):
        low, high = firsts[first : last + 1], lasts[first : last + 1]
        start, stop = int(low[0]), int(high[-1]) + 1
        if shape == _RANGE:
            yield Range(start, stop)
        elif shape == _HOLES:
            yield RangeWithHoles(start, stop, NumberArray.of(_expanded(high[:-1] + _ONE, low[1:] - _ONE)))
        elif shape == _BITMAP:
            edges = np.zeros(stop - start + 1, np.int8)
            edges[(low - low[0]).astype(np.int64)] = 1
            edges[(high - low[0]).astype(np.int64) + 1] -= 1
            bits = np.cumsum(edges[:-1], dtype=np.int8)
            yield RangeWithBitmap(start, stop, np.packbits(bits.view(np.uint8), bitorder="little").tobytes())
        else:
            yield (SortedArray if shape == _SORTED else Array)(NumberArray.of(_expanded(low, high)))


def _expanded(firsts: Numbers, lasts: Numbers) -> Numbers:
    """The numbers of all runs, expanded."""
    sizes = (lasts - firsts).astype(np.int64) + 1
    before = np.cumsum(sizes) - sizes
    numbers: Numbers = np.arange(int(sizes.sum()), dtype=np.uint64)
    numbers += np.repeat(firsts - before.astype(np.uint64), sizes)
    return numbers
