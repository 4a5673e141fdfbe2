"""From the row addresses that an index holds to those that the rows have now: rewrites of fragments, one after another.

A *step* is one rewrite: its groups (:mod:`tablewright.format.address_map`), which share no fragment. All groups of a
step are numbered as one sequence of live rows, so a step is applied to whole arrays at once:

1. the fragment of each address is looked up among the old fragments; addresses of other fragments stay as they are;
2. its rank is the offset, less the deleted rows before it, plus the live rows of the old fragments before its own;
   the address of a deleted row is dropped;
3. the new fragment is the one whose rows, counted over all new fragments, reach beyond that rank.

Ids of fragments are never given twice in a table, so addresses that are new already pass unchanged.

Format: ``docs/format/indices.md#fragment-reuse``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from tablewright.errors import InvalidRequest
from tablewright.format.address_map import AddressMap, OldRows
from tablewright.format.roaring import decode_bitmap, encode_bitmap
from tablewright.format.row_address import RowAddress
from tablewright.indices.query import Ids
from tablewright.lazy import cached_property

__all__ = ["Translation", "Within"]

Kept = npt.NDArray[np.bool_]

_ONES = np.array([number.bit_count() for number in range(256)], np.uint8)


@dataclass(frozen=True)
class Translation:
    """Steps that addresses go through, oldest first. Picklable: workers get it with their task.

    Calling it gives the new address of each address, and which ones are kept; the others hold any number.

    >>> from tablewright.format.address_map import NewRows, OldRows
    >>> from tablewright.format.row_set import RowSet
    >>> group = AddressMap((OldRows(0, 3, RowSet.of([1])), OldRows(1, 2)), (NewRows(5, 3), NewRows(6, 1)))
    >>> moved = Translation.of([[group]])
    >>> ids, kept = moved(np.array([1 << 32 | 1, 0, 1, 9 << 32 | 7], np.uint64))
    >>> [(RowAddress(id).fragment_id, RowAddress(id).offset) for id in ids[kept].tolist()], kept.tolist()
    ([(6, 0), (5, 0), (9, 7)], [True, True, False, True])
    >>> sorted(moved.coverage([0, 1, 9])), sorted(moved.coverage([0, 9]))
    ([5, 6, 9], [9])
    """

    steps: tuple[tuple[AddressMap, ...], ...] = ()

    @classmethod
    def of(cls, steps: Iterable[Iterable[AddressMap]]) -> Translation:
        """The translation through these rewrites, oldest first."""
        return cls(tuple(tuple(groups) for groups in steps))

    def __post_init__(self) -> None:
        for groups in self.steps:
            problem = next((each.problem for each in groups if each.problem), None) or _twice(groups)
            if problem is not None:
                raise InvalidRequest(f"Rows can't be followed through a rewrite: {problem}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Translation, (self.steps,)

    def __call__(self, ids: Ids) -> tuple[Ids, Kept]:
        kept = np.ones(len(ids), np.bool_)
        for step in self._prepared:
            ids, stay = step.apply(ids)
            kept &= stay
        return ids, kept

    def then(self, other: Translation) -> Translation:
        """This translation, followed by another one."""
        return Translation(self.steps + other.steps)

    def coverage(self, fragment_ids: Iterable[int]) -> FrozenBitMap:
        """The fragments that an index covers afterwards. Groups that it covers in part are not claimed."""
        covered = FrozenBitMap(fragment_ids)
        for groups in self.steps:
            for group in groups:
                old = FrozenBitMap(each.id for each in group.old)
                if covered.intersect(old):
                    inside = bool(old <= covered)
                    covered = covered - old
                    covered = covered | FrozenBitMap(each.id for each in group.new) if inside else covered
        return covered

    @cached_property
    def _prepared(self) -> tuple[_Step, ...]:
        return tuple(_Step(groups) for groups in self.steps)


@dataclass(frozen=True)
class Within:
    """A translation that keeps only rows that are in some fragments afterwards: what an index covers then.

    Entries of other fragments are stale: the column was rewritten there, or the fragment is gone. If they were kept,
    they would count again as soon as the index covers the fragment once more.

    >>> kept = Within(Translation(), FrozenBitMap([1]))(np.array([5, 1 << 32], np.uint64))[1]
    >>> kept.tolist()
    [False, True]
    """

    translation: Translation
    fragments: FrozenBitMap

    def __call__(self, ids: Ids) -> tuple[Ids, Kept]:
        ids, kept = self.translation(ids)
        known = np.frombuffer(self.fragments.to_array(), np.uint32).astype(np.uint64)
        if not len(known):
            return ids, np.zeros(len(ids), np.bool_)
        owners = ids >> np.uint64(32)
        places = np.minimum(np.searchsorted(known, owners), len(known) - 1)
        return ids, kept & (known[places] == owners)

    def __reduce__(self) -> tuple[Any, ...]:
        return _within, (self.translation, encode_bitmap(self.fragments))


def _within(translation: Translation, fragments: bytes) -> Within:
    return Within(translation, decode_bitmap(fragments))


def _twice(groups: Sequence[AddressMap]) -> str | None:
    counts = Counter(old.id for group in groups for old in group.old)
    counts.update(new.id for group in groups for new in group.new)
    found = [id for id, count in counts.items() if count > 1]
    return f"fragments {found} are in it twice" if found else None


class _Step:
    """One rewrite as arrays: old fragments by id, new ones in the order of ranks.

    Where rows were deleted, a bit per row says which were live, and a number per byte how many were live before it:
    five bytes for eight rows.
    """

    def __init__(self, groups: Sequence[AddressMap]) -> None:
        old = [each for group in groups for each in group.old]
        ends = np.cumsum([0, *(each.live_rows for each in old)], dtype=np.int64)
        order = sorted(range(len(old)), key=lambda place: old[place].id)
        self._old_ids = np.array([old[place].id for place in order], np.uint64)
        self._rows = np.array([old[place].physical_rows for place in order], np.int64)
        self._starts = ends[order]
        bits = [_live_bits(old[place]) for place in order] if any(each.deleted for each in old) else []
        self._bits = np.concatenate([np.zeros(0, np.uint8), *bits])
        self._first_byte = np.cumsum([0, *map(len, bits)], dtype=np.int64)[:-1]
        counts = [np.cumsum(_ONES[each], dtype=np.uint32) - _ONES[each] for each in bits]
        self._live_before = np.concatenate([np.zeros(0, np.uint32), *counts])
        new = [each for group in groups for each in group.new]
        self._new_ids = np.array([each.id for each in new], np.uint64)
        self._new_ends = np.cumsum([each.physical_rows for each in new], dtype=np.int64)

    def apply(self, ids: Ids) -> tuple[Ids, Kept]:
        kept = np.ones(len(ids), np.bool_)
        if not len(self._old_ids) or not len(ids):
            return ids, kept
        owners, offsets = RowAddress.split(ids)
        places = np.searchsorted(self._old_ids, owners)
        places[places == len(self._old_ids)] = 0
        hits = np.flatnonzero(self._old_ids[places] == owners)
        if not len(hits):
            return ids, kept
        places, offsets = places[hits], offsets[hits]
        self._check(places, offsets)
        live, ranks = self._ranks(places, offsets)
        kept[hits[~live]] = False
        moved = ids.copy()
        moved[hits[live]] = self._addresses(ranks[live])
        return moved, kept

    def _check(self, places: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64]) -> None:
        beyond = np.flatnonzero(offsets >= self._rows[places])
        if len(beyond):
            first = int(beyond[0])
            raise InvalidRequest(
                f"Fragment {self._old_ids[places[first]]} has {self._rows[places[first]]} rows, and none at "
                f"{offsets[first]}."
            )

    def _ranks(
        self, places: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64]
    ) -> tuple[Kept, npt.NDArray[np.int64]]:
        """Which rows were live, and their ranks."""
        if not len(self._bits):
            return np.ones(len(offsets), np.bool_), self._starts[places] + offsets
        at = self._first_byte[places] + (offsets >> 3)
        bit = (offsets & 7).astype(np.uint8)
        byte, mask = self._bits[at], np.left_shift(np.uint8(1), bit)
        ranks = self._starts[places] + self._live_before[at] + _ONES[byte & (mask - np.uint8(1))]
        return (byte & mask) != 0, ranks

    def _addresses(self, ranks: npt.NDArray[np.int64]) -> Ids:
        owners = np.searchsorted(self._new_ends, ranks, side="right")
        starts = np.concatenate(([0], self._new_ends[:-1]))
        return RowAddress.join(self._new_ids[owners], ranks - starts[owners])


def _live_bits(old: OldRows) -> npt.NDArray[np.uint8]:
    live = np.ones(old.physical_rows, np.bool_)
    live[old.deleted.to_numpy()] = False
    return np.packbits(live, bitorder="little")
