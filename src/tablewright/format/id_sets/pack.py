"""Numbers to Roaring bitmaps, all sets of a column at once.

Values that share set and upper bits are a container: up to 4096 of them are stored as 16-bit numbers, more as 65,536
bits. Runs are not looked for: pylance writes none. Positions of all headers are computed with cumulative sums, so that
there is no loop over sets or values, only one over containers of bits.

Tests: ``tests/unit/format/id_sets/test_sets.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.id_sets.bitmaps import Bitmaps, Longs, Words

__all__ = ["pack"]

_COOKIE = 0x303A
_ARRAY_VALUES_MAX = 4096
_BITSET_WORDS = 4096
_WORD = 0xFFFF


def pack(ids: npt.NDArray[np.uint64], counts: Longs) -> Bitmaps:
    """The bitmaps of some sets: the first ``counts[0]`` ids are set 0, and so on. Ids of a set ascend strictly.

    >>> found = pack(np.array([1, 2, 5], np.uint64), np.array([2, 1]))
    >>> found.owners.tolist(), found.words[: found.sizes[0]].tobytes().hex()
    ([0, 1], '3a30000001000000000001001000000001000200')
    """
    if not len(ids):
        empty = np.zeros(0, np.int64)
        return Bitmaps(np.zeros(0, np.uint16), empty, empty, empty, empty)
    containers = _containers(ids, counts)
    payload, sizes = _payload(ids, containers)
    return _laid_out(containers, payload, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Containers:
    """Where each begins among the ids, how many values it has, and what they share: set, high word, upper 16 bits."""

    starts: Longs
    counts: Longs
    owners: Longs
    highs: Longs
    keys: Longs


def _containers(ids: npt.NDArray[np.uint64], counts: Longs) -> _Containers:
    ends = np.cumsum(counts)
    upper = ids >> np.uint64(16)
    is_first = np.empty(len(ids), np.bool_)
    is_first[0] = True
    np.not_equal(upper[1:], upper[:-1], out=is_first[1:])
    begins = ends[:-1]
    is_first[begins[begins < len(ids)]] = True
    starts = np.flatnonzero(is_first)
    first = upper[starts].astype(np.int64)
    return _Containers(
        starts=starts,
        counts=np.diff(starts, append=len(ids)),
        owners=np.searchsorted(ends, starts, "right"),
        highs=first >> 16,
        keys=first & _WORD,
    )


def _payload(ids: npt.NDArray[np.uint64], containers: _Containers) -> tuple[Words, Longs]:
    """The values of all containers as they are stored, and how many words each takes."""
    lows = ids.astype(np.uint16)
    sizes = np.minimum(containers.counts, _BITSET_WORDS)
    dense = np.flatnonzero(containers.counts > _ARRAY_VALUES_MAX)
    if not len(dense):
        return lows, sizes
    parts: list[Words] = []
    done = 0
    for start, count in zip(containers.starts[dense].tolist(), containers.counts[dense].tolist(), strict=True):
        bits = np.zeros(_WORD + 1, np.bool_)
        bits[lows[start : start + count]] = True
        parts += [lows[done:start], np.packbits(bits, bitorder="little").view(np.uint16)]
        done = start + count
    return np.concatenate([*parts, lows[done:]]), sizes


def _laid_out(containers: _Containers, payload: Words, sizes: Longs) -> Bitmaps:
    owners, highs = containers.owners, containers.highs
    is_first = np.ones(len(owners), np.bool_)
    is_first[1:] = (owners[1:] != owners[:-1]) | (highs[1:] != highs[:-1])
    firsts = np.flatnonzero(is_first)
    per_bitmap = np.diff(firsts, append=len(owners))
    before = np.cumsum(sizes) - sizes
    heads = 4 + 4 * per_bitmap
    words_of = heads + np.add.reduceat(sizes, firsts)
    starts = np.cumsum(words_of) - words_of

    out = np.zeros(int(words_of.sum()), np.uint16)
    is_head = np.zeros(len(out), np.bool_)

    def put(at: Longs, values: Longs | int) -> None:
        out[at] = values
        is_head[at] = True

    put(starts, _COOKIE)
    put(starts + 1, 0)
    put(starts + 2, per_bitmap & _WORD)
    put(starts + 3, per_bitmap >> 16)
    which = np.arange(len(firsts))  # the bitmap of each container
    if len(firsts) < len(owners):
        which = np.repeat(which, per_bitmap)
    place = np.arange(len(owners)) - firsts[which]
    described = starts[which] + 4 + 2 * place
    put(described, containers.keys)
    put(described + 1, containers.counts - 1)
    bytes_before = 2 * (heads[which] + before - before[firsts][which])
    pointer = described + 2 * per_bitmap[which]
    put(pointer, bytes_before & _WORD)
    put(pointer + 1, bytes_before >> 16)
    out[~is_head] = payload
    return Bitmaps(out, owners[firsts], highs[firsts], starts, words_of)
