"""What a match finds, as small values that travel: rows of fragments, and the source rows that they meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tablewright.operations.merge_insert.keys import Positions

__all__ = ["FragmentMatches", "Offsets", "Pairs", "no_offsets", "united"]

Offsets = npt.NDArray[np.uint32]


def no_offsets() -> Offsets:
    """No rows."""
    return np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows of one fragment, by ascending offsets, and for each the position of the source row with its key."""

    offsets: Offsets = field(default_factory=no_offsets)
    positions: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.offsets)

    def where(self, mask: npt.NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        return Pairs(self.offsets[mask], self.positions[mask])

    @staticmethod
    def joined(parts: Iterable[Pairs]) -> Pairs:
        """Several together, in the order of their offsets."""
        given = [part for part in parts if len(part)]
        if len(given) < 2:
            return given[0] if given else Pairs()
        offsets = np.concatenate([part.offsets for part in given])
        positions = np.concatenate([part.positions for part in given])
        if np.any(offsets[1:] < offsets[:-1]):
            order = np.argsort(offsets, kind="stable")
            offsets, positions = offsets[order], positions[order]
        return Pairs(offsets, positions)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FragmentMatches:
    """What was found in one fragment.

    ``pairs`` match, and satisfy the condition if there is one; those ``passed_over`` match without satisfying it.
    ``unmatched`` are the rows that no source row matches and that may go, ``None`` if nobody asked.
    """

    fragment_id: int
    pairs: Pairs
    passed_over: Pairs = field(default_factory=Pairs)
    unmatched: Offsets | None = None

    def united(self, other: FragmentMatches) -> FragmentMatches:
        """What two passes over a fragment found, each with other keys: unmatched is what neither knows."""
        unmatched = None
        if self.unmatched is not None and other.unmatched is not None:
            unmatched = np.intersect1d(self.unmatched, other.unmatched, assume_unique=True)
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
