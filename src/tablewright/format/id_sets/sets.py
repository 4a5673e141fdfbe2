"""Columns of sets of ids: from numbers, to numbers, counted, and united.

>>> column = encode_sets(np.array([7, 1, 1 << 33], np.uint64), np.array([1, 2]), ADDRESS_MAP)
>>> ids, counts = decode_sets(column, ADDRESS_MAP)
>>> ids.tolist(), counts.tolist()
([7, 1, 8589934592], [1, 2])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablewright.format.id_sets.bitmaps import Bitmaps, Longs, Words, joined, ranges
from tablewright.format.id_sets.forms import ADDRESS_MAP, Form, join_sets, split_sets
from tablewright.format.id_sets.pack import pack
from tablewright.format.id_sets.unpack import check, headers, unpack

__all__ = ["ADDRESS_MAP", "count_sets", "decode_sets", "encode_sets", "sorted_sets", "unite_sets"]

Ids = npt.NDArray[np.uint64]

_COOKIE_RUNS = bytes.fromhex("3b30")
_LARGE_WORDS = 2048


def encode_sets(ids: Ids, counts: Longs, form: Form) -> pa.Array:
    """A column of sets: the first ``counts[0]`` ids, ascending strictly, are the first set, and so on."""
    return join_sets(pack(ids, counts), len(counts), form)


def decode_sets(sets: pa.Array, form: Form, values_max: int | None = None) -> tuple[Ids, Longs]:
    """The ids of all sets, one set after the other, ascending in each; and how many each has.

    ``ValueError`` with the reason if the bytes are anything else, or hold more than ``values_max`` ids in all.
    """
    bitmaps = split_sets(sets, form)
    ids, counts = unpack(bitmaps, values_max)
    return ids, _per_owner(bitmaps.owners, counts, len(sets))


def count_sets(sets: pa.Array, form: Form) -> Longs:
    """How many ids each set has, from the headers alone where these say it."""
    bitmaps = split_sets(sets, form)
    head = headers(bitmaps.words, bitmaps.starts, bitmaps.starts + bitmaps.sizes)
    counts = head.counts.copy()
    others = np.flatnonzero(head.sizes < 0)
    if len(others):
        counts[others] = unpack(bitmaps.pick(others))[1]
    return _per_owner(bitmaps.owners, counts, len(sets))


def unite_sets(sets: pa.Array, groups: Longs, count: int, form: Form) -> pa.Array:
    """The union of all sets of each group; ``groups`` has the group of each set, from 0 to ``count - 1``.

    Where no two sets of a group have ids with the same high word, no bitmap is opened.

    >>> three = encode_sets(np.array([1, 2, 3], np.uint64), np.array([1, 1, 1]), ADDRESS_MAP)
    >>> decode_sets(unite_sets(three, np.array([0, 1, 0]), 2, ADDRESS_MAP), ADDRESS_MAP)[0].tolist()
    [1, 3, 2]
    """
    bitmaps = split_sets(sets, form)
    owners = groups[bitmaps.owners]
    moved = Bitmaps(bitmaps.words, owners, bitmaps.highs, bitmaps.starts, bitmaps.sizes)
    return join_sets(_united(moved.pick(np.lexsort((bitmaps.highs, owners)))), count, form)


def _united(bitmaps: Bitmaps) -> Bitmaps:
    """The same sets with one bitmap for each high word; they are sorted."""
    again = np.zeros(len(bitmaps), np.bool_)
    again[1:] = (bitmaps.owners[1:] == bitmaps.owners[:-1]) & (bitmaps.highs[1:] == bitmaps.highs[:-1])
    if not again.any():
        return bitmaps
    shared = again.copy()
    shared[:-1] |= again[1:]
    number = np.cumsum(~again) - 1  # of the bitmap to be
    is_large = shared & (np.bincount(number, weights=bitmaps.sizes)[number] >= _LARGE_WORDS)
    parts = [(bitmaps.pick(np.flatnonzero(~shared)), number[~shared])]
    for chosen, unite in ((shared & ~is_large, _united_small), (is_large, _united_large)):
        if chosen.any():
            targets, place = np.unique(number[chosen], return_inverse=True)
            parts.append((unite(bitmaps.pick(np.flatnonzero(chosen)), place), targets))
    order = np.argsort(np.concatenate([numbers for _, numbers in parts]), kind="stable")
    return joined([part for part, _ in parts]).pick(order)


def _united_small(bitmaps: Bitmaps, place: Longs) -> Bitmaps:
    """One bitmap for all with the same place; all values are sorted together."""
    firsts = np.flatnonzero(np.diff(place, prepend=-1))
    ids, counts = unpack(bitmaps)
    ids, counts = sorted_sets(*_by_first(ids, counts, place), len(firsts))
    made = pack(ids, counts)
    return Bitmaps(made.words, bitmaps.owners[firsts], made.highs, made.starts, made.sizes)


def _united_large(bitmaps: Bitmaps, place: Longs) -> Bitmaps:
    """The same for large bitmaps: pyroaring unites those of each place. They are checked before."""
    check(bitmaps)
    firsts = np.flatnonzero(np.diff(place, prepend=-1))
    ends = np.append(firsts[1:], len(place))
    made = [
        _union([bitmaps.words[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True)])
        for starts, sizes in (
            (bitmaps.starts[first:end].tolist(), bitmaps.sizes[first:end].tolist())
            for first, end in zip(firsts, ends, strict=True)
        )
    ]
    sizes = np.array([len(each) for each in made], np.int64)
    starts = np.cumsum(sizes) - sizes
    return Bitmaps(np.concatenate(made), bitmaps.owners[firsts], bitmaps.highs[firsts], starts, sizes)


def _union(parts: list[bytes]) -> Words:
    """The words of the union of some bitmaps, without containers of runs, which pyroaring makes of full ones."""
    union = BitMap.union(*(BitMap.deserialize(part) for part in parts))
    data = bytes(union.serialize())
    if data[:2] == _COOKIE_RUNS:
        lows = np.frombuffer(union.to_array(), np.uint32).astype(np.uint64)
        return pack(lows, np.array([len(lows)])).words
    return np.frombuffer(data, np.uint16)


def _by_first(ids: Ids, counts: Longs, groups: Longs) -> tuple[Ids, Longs]:
    """The ids of some bitmaps and the group of each; bitmaps of a group by their first id: then most need no sort."""
    present = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[present]
    order = present[np.lexsort((ids[starts], groups[present]))]
    return ids[ranges((np.cumsum(counts) - counts)[order], counts[order])], np.repeat(groups[order], counts[order])


def sorted_sets(ids: Ids, groups: Longs, count: int) -> tuple[Ids, Longs]:
    """Ids by group, ascending, each once in a group; and how many each of ``count`` groups has.

    >>> sorted_sets(np.array([9, 2, 2], np.uint64), np.array([1, 0, 0]), 3)[1].tolist()
    [1, 1, 0]
    """
    shift = 64 - max(1, (count - 1).bit_length())
    if len(ids) and int(ids.max()) >> shift:  # group and id do not fit into 64 bits together
        order = np.lexsort((ids, groups))
        ids, groups = ids[order], groups[order]
    else:
        together = (groups.astype(np.uint64) << np.uint64(shift)) | ids
        if not np.all(together[1:] >= together[:-1]):
            together.sort()
        ids, groups = together & np.uint64((1 << shift) - 1), (together >> np.uint64(shift)).astype(np.int64)
    keep = np.ones(len(ids), np.bool_)
    keep[1:] = (ids[1:] != ids[:-1]) | (groups[1:] != groups[:-1])
    return ids[keep], np.bincount(groups[keep], minlength=count).astype(np.int64)


def _per_owner(owners: Longs, counts: Longs, count: int) -> Longs:
    ends = np.cumsum(np.bincount(owners, minlength=count))
    return np.diff(np.append(0, np.cumsum(counts))[ends], prepend=0)
