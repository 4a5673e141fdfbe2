"""What a match finds, as small values that travel: rows of fragments, and the source rows that they meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.keys.key_table import Positions

__all__ = ["ClauseNumbers", "FragmentMatches", "PairOffsets", "Pairs", "by_fragment", "united"]

ClauseNumbers = npt.NDArray[np.int8]
PairOffsets = npt.NDArray[np.uint32]  # half as wide as elsewhere: there is one per matched row of the table


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows of one fragment, by ascending offsets, and for each the position of the source row with its key.

    ``clauses`` are the numbers of the clauses that take them, ``None`` if that is the first for all. Rows that no
    source row matches have the position -1.
    """

    offsets: PairOffsets = field(default_factory=lambda: np.zeros(0, np.uint32))
    positions: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    clauses: ClauseNumbers | None = None

    def __post_init__(self) -> None:
        assert len(self.offsets) == len(self.positions), "each row has one source row: others would shift"
        assert self.clauses is None or len(self.clauses) == len(self.offsets), "each row has one clause"

    def __len__(self) -> int:
        return len(self.offsets)

    def where(self, mask: npt.NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        clauses = None if self.clauses is None else self.clauses[mask]
        return Pairs(self.offsets[mask], self.positions[mask], clauses)

    @property
    def numbers(self) -> ClauseNumbers:
        """The numbers of their clauses."""
        return np.zeros(len(self), np.int8) if self.clauses is None else self.clauses

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel light: source positions mostly fit 32 bits, and offsets are often a range."""
        offsets: Any = self.offsets
        if len(self) and int(offsets[-1]) - int(offsets[0]) + 1 == len(self):
            offsets = range(int(offsets[0]), int(offsets[-1]) + 1)
        small = len(self) and int(self.positions.max()) < 2**32 and int(self.positions.min()) >= 0
        return _unpacked, (offsets, self.positions.astype(np.uint32) if small else self.positions, self.clauses)

    @staticmethod
    def joined(parts: Iterable[Pairs]) -> Pairs:
        """Several together, in the order of their offsets."""
        given = [part for part in parts if len(part)]
        if len(given) < 2:
            return given[0] if given else Pairs()
        offsets = np.concatenate([part.offsets for part in given])
        positions = np.concatenate([part.positions for part in given])
        clauses = None
        if any(part.clauses is not None for part in given):
            clauses = np.concatenate([part.numbers for part in given])
        if np.any(offsets[1:] < offsets[:-1]):
            order = np.argsort(offsets, kind="stable")
            offsets, positions = offsets[order], positions[order]
            clauses = None if clauses is None else clauses[order]
        return Pairs(offsets, positions, clauses)


def _unpacked(offsets: PairOffsets | range, positions: npt.NDArray[Any], clauses: ClauseNumbers | None = None) -> Pairs:
    if isinstance(offsets, range):
        offsets = np.arange(offsets.start, offsets.stop, dtype=np.uint32)
    return Pairs(offsets, positions.astype(np.int64, copy=False), clauses)


def by_fragment(addresses: npt.NDArray[np.uint64], positions: Positions) -> Iterator[tuple[int, Pairs]]:
    """Pairs of row addresses and source positions, in any order, by fragment id.

    >>> addresses = np.array([RowAddress.of(1, 0), 7, 3], np.uint64)
    >>> [(id, pairs.offsets.tolist()) for id, pairs in by_fragment(addresses, np.arange(3))]
    [(0, [3, 7]), (1, [0])]
    """
    order = np.argsort(addresses, kind="stable")
    positions, addresses = positions[order], addresses[order]
    owners, offsets = RowAddress.split(addresses)
    ids, begins = np.unique(owners, return_index=True)
    for id, (begin, end) in zip(ids.tolist(), pairwise([*begins.tolist(), len(addresses)]), strict=True):
        yield id, Pairs(offsets[begin:end].astype(np.uint32), positions[begin:end])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FragmentMatches:
    """What was found in one fragment.

    ``pairs`` match, and satisfy the condition if there is one; those ``passed_over`` match without satisfying it.
    ``unmatched`` are the rows that no source row matches, by the clause that takes them; ``None`` if that was not asked
    for.
    """

    fragment_id: int
    pairs: Pairs
    passed_over: Pairs = field(default_factory=Pairs)
    unmatched: tuple[RowSet, ...] | None = None

    def united(self, other: FragmentMatches) -> FragmentMatches:
        """What two passes over a fragment found, each with other keys: unmatched is what neither knows."""
        unmatched = None
        if self.unmatched is not None and other.unmatched is not None:
            unmatched = tuple(mine & theirs for mine, theirs in zip(self.unmatched, other.unmatched, strict=True))
        return FragmentMatches(
            fragment_id=self.fragment_id,
            pairs=Pairs.joined((self.pairs, other.pairs)),
            passed_over=Pairs.joined((self.passed_over, other.passed_over)),
            unmatched=unmatched,
        )


def united(found: Iterable[FragmentMatches]) -> dict[int, FragmentMatches]:
    """By fragment id; a fragment may come once per pass."""
    by_id: dict[int, FragmentMatches] = {}
    for each in found:
        known = by_id.get(each.fragment_id)
        by_id[each.fragment_id] = each if known is None else known.united(each)
    return dict(sorted(by_id.items()))
