"""Interpolation search for many keys in a sorted column of numbers whose values can be read one by one.

Each key has a *window* of rows that may hold it. The first row that does not come before the key is found for all keys
at once. Where the row after it holds the key too, the first row that comes after the key is found in the same way.

1. Choose a chunk of the window: the one where the key is if the window is evenly distributed.
2. Read the chosen chunks (:mod:`tablewright.data.packed_reads`), each once, and bisect the rows of the window there.
3. If the row is not inside the chunk, it is before or after it: the window ends there. The neighbour is chosen next,
   and after that the middle of what is left.

So a key costs one or two chunks of some kilobytes, whatever the size of the index. Some values of each chunk are
compared with each other: a column that is not sorted is reported.

The first access to a page of a mapped file costs some microseconds, and in a large file nearly every key has a page of
its own: half of the time of a search. :func:`search_touching` shares this work between two threads.

Tests: ``tests/unit/indices/btree/test_packed_search.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data import prefetch
from tablewright.data.packed_reads import PackedColumn
from tablewright.format.packed_column import LoadedChunks
from tablewright.indices.btree.order import Longs, Order, spread
from tablewright.indices.btree.windows import KeyGroup, guessed_rows

__all__ = ["search_packed", "search_touching"]

Bools = npt.NDArray[np.bool_]

_CHECKED = 6
_KEYS_TO_TOUCH = 512  # for fewer the second thread costs what it saves
_SAMPLED = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Probes:
    """What is looked for: the first row with a value above the key, or, unless ``is_after``, not below it."""

    order: Order
    kind: pa.DataType
    keys: Any
    is_after: bool

    def at(self, which: Longs) -> _Probes:
        return _Probes(self.order, self.kind, self.keys[which], self.is_after)

    def values(self, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is stored, ready to be compared."""
        buffer = pa.py_buffer(np.ascontiguousarray(words))
        found: npt.NDArray[Any] = self.order.values(pa.Array.from_buffers(self.kind, len(words), [None, buffer]))
        return found

    def come_before(self, words: npt.NDArray[Any]) -> Bools:
        """Whether the row is after one with this value."""
        values = self.values(words)
        before: Bools = values <= self.keys if self.is_after else values < self.keys
        return before


def search_packed(order: Order, column: PackedColumn, kind: pa.DataType, group: KeyGroup) -> tuple[Longs, Longs]:
    """The rows that hold a key of the group, ascending, and the number of the key for each.

    ``ValueError`` if the column turns out not to be sorted.
    """
    probes = _Probes(order, kind, group.keys, is_after=False)
    begins, counts = _found(column, probes, group.lows, group.highs, guessed_rows(group))
    several = np.flatnonzero(counts < 0)
    if len(several):
        low, high = begins[several], group.highs[several]
        ends, _ = _found(column, _Probes(order, kind, group.keys[several], is_after=True), low, high, low.copy())
        counts[several] = ends - begins[several]
    if np.any((begins + counts)[:-1] > begins[1:]):
        raise ValueError("its values are not in order")
    return spread(begins, counts), np.repeat(group.numbers, counts)


def search_touching(
    order: Order, column: PackedColumn, kind: pa.DataType, group: KeyGroup, ids: PackedColumn | None
) -> tuple[Longs, Longs]:
    """:func:`search_packed`; where many keys need pages that were not used before, an idle thread helps to map these.

    One maps half of the pages at :func:`guessed_rows`, and searches. The other maps the rest, and those of ``ids`` at
    the same rows, which the caller reads next.
    """
    guesses = guessed_rows(group)
    if len(guesses) < _KEYS_TO_TOUCH or column.is_mapped(column.begins(guesses[:: len(guesses) // _SAMPLED])):
        return search_packed(order, column, kind, group)
    own, others = column.begins(guesses), None if ids is None else ids.begins(guesses)
    half = len(own) // 2

    def search() -> tuple[Longs, Longs]:
        column.touch(own[:half])
        return search_packed(order, column, kind, group)

    def touch() -> None:
        column.touch(own[half:])
        if ids is not None and others is not None:
            ids.touch(others)

    work: tuple[Callable[[], tuple[Longs, Longs] | None], ...] = search, touch
    found, _ = prefetch.spread(lambda do: do(), work)
    assert found is not None, "the first result is that of the search"
    return found


def _found(column: PackedColumn, probes: _Probes, lows: Longs, highs: Longs, targets: Longs) -> tuple[Longs, Longs]:
    """The row of each probe, between its low and its high (included); ``targets`` are rows to begin with.

    Also whether that row, alone, holds the key: 0 if it does not, 1 if it does, -1 if the next one may hold it too.
    """
    begins = column.chunks.begins
    lows, highs, counts, rounds = lows.copy(), highs.copy(), np.zeros(len(lows), np.int64), 0
    pending = np.flatnonzero(lows < highs)
    while len(pending):
        owners = np.searchsorted(begins, targets[pending], "right") - 1
        chunks, which = np.unique(owners, return_inverse=True)
        loaded = column.load(chunks)
        _check_order(loaded, probes, begins[chunks + 1] - begins[chunks])
        first, end = begins[owners], begins[owners + 1]
        start, stop = np.maximum(lows[pending], first), np.minimum(highs[pending], end)
        here, some = loaded.at(which), probes.at(pending)
        places = _bisected(here, some, start - first, stop - first)
        is_known = first + places < stop  # otherwise it is what was found for the row where the window ends now
        counts[pending] = np.where(is_known, _equal_rows(here, some, places, stop - first), counts[pending])
        rows = first + places
        is_before, is_after = (rows == start) & (start > lows[pending]), (rows == stop) & (stop < highs[pending])
        highs[pending] = np.where(is_after, highs[pending], rows)
        lows[pending] = np.where(is_before, lows[pending], rows)
        following = np.where(is_before, rows - 1, rows)
        pending, following = (part[is_before | is_after] for part in (pending, following))
        rounds += 1
        targets[pending] = following if rounds == 1 else (lows[pending] + highs[pending]) // 2
    return lows, counts


def _equal_rows(chunks: LoadedChunks, probes: _Probes, places: Longs, stops: Longs) -> Longs:
    """How many rows from a place on hold the key: 0, 1, or -1 if the next one holds it too, or is in another chunk."""
    one, next_one = (
        probes.values(chunks.values(np.minimum(places + step, stops - 1))) == probes.keys for step in (0, 1)
    )
    is_last = places + 1 >= stops
    return np.where(one, np.where(is_last | next_one, -1, 1), 0)


def _check_order(chunks: LoadedChunks, probes: _Probes, rows: Longs) -> None:
    """``ValueError`` if some values of a chunk, evenly chosen, don't ascend."""
    previous = probes.values(chunks.values(np.zeros(len(rows), np.int64)))
    for step in range(1, _CHECKED):  # one place of all chunks at a time: all places at once take longer
        values = probes.values(chunks.values((rows - 1) * step // (_CHECKED - 1)))
        if np.any(values < previous):
            raise ValueError("its values are not in order")
        previous = values


def _bisected(chunks: LoadedChunks, probes: _Probes, lows: Longs, highs: Longs) -> Longs:
    """The place of each probe in its chunk, between low and high (included)."""
    last = highs - 1
    for _ in range(int((highs - lows).max()).bit_length()):
        middle = (lows + highs) >> 1
        before = probes.come_before(chunks.values(np.minimum(middle, last))) & (lows < highs)
        lows, highs = np.where(before, middle + 1, lows), np.where(before, highs, middle)
    return lows
