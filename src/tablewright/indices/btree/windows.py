"""k-ary and interpolation search for many keys in the sorted column of a BTREE, without reading all of it.

Keys come sorted and distinct, with the *window* of rows that may hold each: the pages that the lookup names. Reading
whole pages is right while there are several keys per page, and wasteful when 1,000 keys lie in as many pages. So:

1. Keys are cut into *groups* of some 512 pages. Groups are searched independently, a few at a time.
2. A group with several keys per page reads its pages, neighbours in one request.
3. A group with few narrows its windows first: 15 rows of each window are taken and compared, which leaves a sixteenth
   of it, until most windows have at most 256 rows. Then the rows of all windows are taken. For numbers, the first 15
   rows lie around the place that the page's bounds let expect; that alone narrows most windows to 16 rows.

So a scattered key costs the same few rows in a large index as in a small one; 1,000 keys in 10 million rows took a
quarter to a third of the time that reading their pages took. Windows stay wide where rows can't be told from the
key: many equal values, or text that differs only after some 264 bytes. Those are read whole.

Numbers in a local file are not even taken by the codec: :mod:`.packed_search` reads them one by one.

Tests: ``tests/unit/indices/btree/test_lookup.py``, ``tests/differential/indices/btree/test_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.indices.btree.order import Longs, Order, spread

__all__ = [
    "ColumnReader",
    "KeyGroup",
    "cut",
    "guessed_rows",
    "is_scattered",
    "search",
]

_PAGES_PER_GROUP = 512
_PAGES_PER_PACKED_GROUP = 1 << 13
_KEYS_PER_PACKED_GROUP = 1 << 13
_ROWS_PER_KEY = 1024  # from here on narrowing is cheaper than reading
_PAGES_TO_NARROW = 16
_PIVOTS = 15
_STRIDE = 16  # between the rows that are looked at around an expected place
_WINDOW_ROWS = 256
_ROUNDS_MAX = 4
_RUN_ROWS = 2048  # runs that are longer on average are read, shorter ones taken
ROWS_PER_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """The sorted column: rows from ``start`` on, or the rows at ascending offsets; both as values of the order."""

    read: Callable[[int, int], Iterator[Any]]
    take: Callable[[Longs], Iterator[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroup:
    """Some of the distinct keys, their numbers, which ascend, and the rows that may hold each.

    These are the rows from ``lows`` to ``highs`` (excluded). Their values lie between ``smallest`` and ``largest``.
    """

    numbers: Longs
    keys: Any
    lows: Longs
    highs: Longs
    smallest: Any
    largest: Any


def cut(first_pages: Longs, last_pages: Longs, *, is_packed: bool = False) -> Iterator[slice]:
    """Slices of keys that share some 512 pages; the pages of ascending keys ascend, both ends included.

    A column that is read value by value (:mod:`.packed_search`) has groups of more pages, and at most 8,192 keys: what
    is worked out for each of them is in memory.

    >>> list(cut(np.array([0, 50, 70, 70]), np.array([0, 60, 70, 600])))
    [slice(0, 3, None), slice(3, 4, None)]
    """
    new_from = np.maximum(first_pages, np.concatenate(([-1], last_pages[:-1])) + 1)
    pages = np.cumsum(last_pages - new_from + 1) - 1
    group = pages // (_PAGES_PER_PACKED_GROUP if is_packed else _PAGES_PER_GROUP)
    is_edge = np.diff(group) > 0
    if is_packed:
        is_edge |= np.diff(np.arange(len(group)) // _KEYS_PER_PACKED_GROUP) > 0
    edges = np.flatnonzero(is_edge) + 1
    starts, stops = np.concatenate(([0], edges)), np.concatenate((edges, [len(group)]))
    return (slice(int(start), int(stop)) for start, stop in zip(starts, stops, strict=True) if start < stop)


def is_scattered(group: KeyGroup, rows_per_page: int) -> bool:
    """Whether so few keys lie in so many pages that reading these costs more than a search."""
    rows = int(_union(group.lows, group.highs)[1].sum())
    return rows > _ROWS_PER_KEY * len(group.lows) and rows > _PAGES_TO_NARROW * rows_per_page


def search(order: Order, column: ColumnReader, group: KeyGroup, rows_per_page: int) -> tuple[Longs, Longs]:
    """The rows that hold a key of the group, ascending, and the number of the key for each.

    ``ValueError`` if the column turns out not to be sorted.
    """
    is_wide = is_scattered(group, rows_per_page)
    begins, counts = _union(*_narrowed(order, column, group)) if is_wide else _union(group.lows, group.highs)
    if not len(begins):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows_found, keys_found = [], []
    for places, values in _read(column, begins, counts):
        hits, keys = order.matches(group.keys, values)
        rows_found.append(places[hits])
        keys_found.append(group.numbers[keys])
    return np.concatenate(rows_found), np.concatenate(keys_found)


def _narrowed(order: Order, column: ColumnReader, group: KeyGroup) -> tuple[Longs, Longs]:
    """Smaller windows around the same keys. One is empty where the key is known not to be."""
    lows, highs = group.lows, group.highs
    compare = order.comparison(group.keys, group.smallest, group.largest)
    for number in range(_ROUNDS_MAX):
        if np.median(highs - lows) <= _WINDOW_ROWS:
            break
        if number == 0 and isinstance(group.keys, np.ndarray):
            pivots = _expected(group)
        else:
            steps = (highs - lows)[:, np.newaxis] * np.arange(1, _PIVOTS + 1) // (_PIVOTS + 1)
            pivots = lows[:, np.newaxis] + steps  # of an empty window: the pivot that ended it, which changes nothing
        rows, which = np.unique(pivots, return_inverse=True)
        signs = compare(_joined(list(column.take(rows))), which.reshape(pivots.shape))
        lows = np.where(signs < 0, pivots + 1, lows[:, np.newaxis]).max(axis=1)
        highs = np.where(signs > 0, pivots, highs[:, np.newaxis]).min(axis=1)
        if np.any(lows > highs):
            raise ValueError("its values are not in order")
    return lows, highs


def _expected(group: KeyGroup) -> Longs:
    """Rows around those of :func:`guessed_rows`."""
    around = (np.arange(_PIVOTS) - _PIVOTS // 2) * _STRIDE
    pivots: Longs = guessed_rows(group)[:, np.newaxis] + around
    return pivots.clip(group.lows[:, np.newaxis], group.highs[:, np.newaxis] - 1)


def guessed_rows(group: KeyGroup) -> Longs:
    """Interpolation: the row of its window that a number has if the window is evenly distributed."""
    smallest, largest = group.smallest.astype(np.float64), group.largest.astype(np.float64)
    share = (group.keys.astype(np.float64) - smallest) / np.maximum(largest - smallest, 1)
    guesses = group.lows + (np.clip(share, 0, 1) * (group.highs - group.lows)).astype(np.int64)
    inside: Longs = np.maximum(np.minimum(guesses, group.highs - 1), group.lows)
    return inside


def _union(lows: Longs, highs: Longs) -> tuple[Longs, Longs]:
    """Windows as disjoint ascending runs: where they begin, and how many rows they have."""
    full = lows < highs
    order = np.argsort(lows[full], kind="stable")
    lows, highs = lows[full][order], np.maximum.accumulate(highs[full][order])
    is_first = np.concatenate(([True], lows[1:] > highs[:-1]))[: len(lows)]
    begins = lows[is_first]
    ends = highs[np.concatenate((is_first[1:], [True]))[: len(lows)]]
    return begins, ends - begins


def _read(column: ColumnReader, begins: Longs, counts: Longs) -> Iterator[tuple[Longs, Any]]:
    """The rows of some runs in pieces: their offsets and values."""
    if counts.mean() < _RUN_ROWS:
        rows = spread(begins, counts)
        done = 0
        for values in column.take(rows):
            yield rows[done : done + len(values)], values
            done += len(values)
        return
    for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
        for values in column.read(begin, count):
            yield np.arange(begin, begin + len(values)), values
            begin += len(values)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)
