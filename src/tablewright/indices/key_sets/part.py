"""A part of an index in memory: different keys, ascending, a null first, and the set of rows of each.

Tests: ``tests/unit/indices/key_sets/test_build.py``, ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.id_sets import Form, decode_sets, encode_sets, unite_sets
from tablewright.format.id_sets.sets import sorted_sets
from tablewright.indices.building import Translate
from tablewright.indices.key_sets.order import Longs, comparable, is_ascending, ranked
from tablewright.indices.query import Ids

__all__ = ["Part", "grouped", "sorted_part", "translated", "united"]

_NARROW = ((1 << 8, np.uint8), (1 << 16, np.uint16))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Keys of the column's type, and one set (``large_binary``) for each."""

    keys: pa.Array
    sets: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """The bytes of its values."""
        return int(self.keys.nbytes + self.sets.nbytes)

    def slice(self, start: int, count: int) -> Part:
        """Some keys with their sets; the buffers are shared."""
        return Part(self.keys.slice(start, count), self.sets.slice(start, count))

    def take(self, positions: Longs) -> Part:
        """The keys at some positions with their sets."""
        chosen = pa.array(positions)
        return Part(self.keys.take(chosen), self.sets.take(chosen))


def grouped(keys: pa.Array, ids: Ids, form: Form) -> Part:
    """The sets of rows by key, where row ``ids[i]`` has the key ``keys[i]``; a pair may come more than once.

    >>> from tablewright.format.id_sets import ADDRESS_MAP
    >>> part = grouped(pa.array(["b", None, "a", "b"]), np.array([4, 5, 6, 7], np.uint64), ADDRESS_MAP)
    >>> part.keys.to_pylist(), decode_sets(part.sets, ADDRESS_MAP)[0].tolist()
    ([None, 'a', 'b'], [5, 6, 4, 7])
    """
    if len(ids) and not np.all(ids[1:] >= ids[:-1]):
        order = np.argsort(ids, kind="stable")
        keys, ids = keys.take(pa.array(order)), ids[order]
    nulls = ids[:0]
    if keys.null_count:
        valid = keys.is_valid().to_numpy(zero_copy_only=False)
        nulls, ids, keys = ids[~valid], ids[valid], keys.drop_null()
    ranks, firsts = ranked(comparable(keys))
    ids = ids[_by_rank(ranks, len(firsts))]
    counts = np.bincount(ranks, minlength=len(firsts)).astype(np.int64)
    found = keys.take(pa.array(firsts))
    if len(nulls):
        found = pa.concat_arrays([pa.nulls(1, keys.type), found])
        ids, counts = np.concatenate([nulls, ids]), np.concatenate([[len(nulls)], counts])
    ids, counts = _once(ids, counts)
    return Part(found, encode_sets(ids, counts, form))


def _by_rank(ranks: npt.NDArray[np.integer], count: int) -> Longs:
    """The positions sorted by rank, those of one rank in their order. Numbers of 16 bits are sorted by radix."""
    for limit, narrow in _NARROW:
        if count <= limit:
            return np.argsort(ranks.astype(narrow), kind="stable")
    together = (ranks.astype(np.int64) << 32) | np.arange(len(ranks))
    together.sort()
    return together & 0xFFFFFFFF


def _once(ids: Ids, counts: Longs) -> tuple[Ids, Longs]:
    """The same sets, in which ids ascend, without repetitions."""
    again = np.zeros(len(ids), np.bool_)
    again[1:] = ids[1:] == ids[:-1]
    begins = (np.cumsum(counts) - counts)[counts > 0]
    again[begins] = False
    if not again.any():
        return ids, counts
    totals = np.append(0, np.cumsum(~again))
    return ids[~again], np.diff(totals[np.cumsum(counts)], prepend=0)


def united(parts: Sequence[Part], form: Form) -> Part:
    """One part of several (at least one); equal keys become one with the rows of all."""
    if len(parts) == 1:
        return parts[0]
    both = Part(pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.sets for part in parts]))
    groups, positions = _groups(both.keys)
    if len(positions) == len(both):
        return both.take(positions)
    return Part(both.keys.take(pa.array(positions)), unite_sets(both.sets, groups, len(positions), form))


def _groups(keys: pa.Array) -> tuple[Longs, Longs]:
    """For each key the number of its group, and for each group, a null first, a position where its key is."""
    if not keys.null_count:
        ranks, positions = ranked(comparable(keys))
        return ranks.astype(np.int64), positions
    valid = keys.is_valid().to_numpy(zero_copy_only=False)
    ranks, positions = ranked(comparable(keys.drop_null()))
    groups = np.zeros(len(keys), np.int64)
    groups[valid] = ranks.astype(np.int64) + 1
    return groups, np.append(np.flatnonzero(~valid)[0], np.flatnonzero(valid)[positions])


def sorted_part(part: Part, form: Form) -> Part:
    """The same keys and sets in order; a key that comes twice, which no writer does, becomes one."""
    nulls = part.keys.null_count
    first_is_null = nulls == 0 or (nulls == 1 and not part.keys[0].is_valid)
    if first_is_null and is_ascending(comparable(part.keys[nulls:])):
        return part
    groups, positions = _groups(part.keys)
    if len(positions) == len(part):
        return part.take(positions)
    return Part(part.keys.take(pa.array(positions)), unite_sets(part.sets, groups, len(positions), form))


def translated(part: Part, translate: Translate, form: Form) -> Part:
    """The same keys with the rows that ``translate`` keeps, under their new ids; keys without a row are left out."""
    ids, counts = decode_sets(part.sets, form)
    moved, kept = translate(ids)
    owners = np.repeat(np.arange(len(part)), counts)[kept]
    ids, counts = sorted_sets(moved[kept], owners, len(part))
    present = np.flatnonzero(counts)
    return Part(part.keys.take(pa.array(present)), encode_sets(ids, counts[present], form))
