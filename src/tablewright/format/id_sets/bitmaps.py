"""A list of 32-bit Roaring bitmaps that lie somewhere in one buffer, each with the set and the high word it belongs to.

Sets of ids consist of such bitmaps. All parts of their bytes have even lengths, unless there are containers of runs,
so a buffer is an array of 16-bit words.

Tests: ``tests/unit/format/id_sets/test_sets.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Bitmaps", "Longs", "Words", "gather", "joined", "ranges", "read_u32"]

Words = npt.NDArray[np.uint16]
Longs = npt.NDArray[np.int64]

_LARGE_WORDS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Bitmaps:
    """Bitmap ``i`` is ``words[starts[i]:starts[i] + sizes[i]]``: low words beside ``highs[i]`` in set ``owners[i]``."""

    words: Words
    owners: Longs
    highs: Longs
    starts: Longs
    sizes: Longs

    def __len__(self) -> int:
        return len(self.owners)

    def pick(self, which: npt.NDArray[Any]) -> Bitmaps:
        """Some of the bitmaps, in the order of ``which``; the buffer is shared."""
        return Bitmaps(self.words, self.owners[which], self.highs[which], self.starts[which], self.sizes[which])


def joined(parts: Sequence[Bitmaps]) -> Bitmaps:
    """All bitmaps of some lists, one list after the other."""
    before = np.cumsum([0, *(len(part.words) for part in parts)])
    return Bitmaps(
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.owners for part in parts]),
        np.concatenate([part.highs for part in parts]),
        np.concatenate([part.starts + offset for part, offset in zip(parts, before, strict=False)]),
        np.concatenate([part.sizes for part in parts]),
    )


def ranges(starts: Longs, counts: Longs) -> Longs:
    """The numbers of all ranges, one range after the other.

    >>> ranges(np.array([5, 20]), np.array([3, 2])).tolist()
    [5, 6, 7, 20, 21]
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def gather(words: Words, starts: Longs, sizes: Longs) -> Words:
    """The words of all ranges, one range after the other: large ranges are copied, small ones picked word by word.

    Ranges that follow each other already are not copied.
    """
    if not len(starts):
        return np.zeros(0, np.uint16)
    if np.array_equal(starts[1:], starts[:-1] + sizes[:-1]):
        return words[starts[0] : starts[-1] + sizes[-1]]
    if int(sizes.sum()) >= _LARGE_WORDS * len(starts):
        return np.concatenate([words[start : start + size] for start, size in zip(starts, sizes, strict=True)])
    return words[ranges(starts, sizes)]


def read_u32(words: Words, at: Longs) -> Longs:
    """The 32-bit numbers that begin at some words."""
    return words[at].astype(np.int64) | (words[at + 1].astype(np.int64) << 16)
