"""Where rows are after a rewrite of their fragments: the map from old to new row addresses of one group.

A compaction keeps the order of rows, so no map is stored. The *rank* of a live row is its position among the live rows
of the group's old fragments, in the order of the group, as they were when the rewrite read them. The row with rank k
becomes the k-th physical row of the new fragments. Rows that were deleted then have no rank, and map to nothing.

The map holds while the old fragments have exactly as many live rows as the new ones have physical rows
(:meth:`AddressMap.problem`). Whether the rows are in fact the same, only their values or row ids can tell.

Format: ``docs/format/transactions.md#row-addresses-after-a-rewrite``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tablewright.errors import InvalidRequest
from tablewright.format.row_set import Offsets, RowSet
from tablewright.lazy import cached_property

__all__ = ["AddressMap", "NewRows", "OldRows", "Piece"]


@dataclass(frozen=True, slots=True)
class OldRows:
    """An old fragment of a group: its rows, and those that were deleted when the rewrite read it."""

    id: int
    physical_rows: int
    deleted: RowSet = field(default_factory=RowSet)

    @property
    def live_rows(self) -> int:
        """Rows that were carried over."""
        return self.physical_rows - len(self.deleted)


@dataclass(frozen=True, slots=True)
class NewRows:
    """A new fragment of a group and its physical rows."""

    id: int
    physical_rows: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of a new fragment, from ``new_offset`` on: the live rows of an old one in ``start..stop``.

    ``rows`` of the physical rows in that range were live.
    """

    old_id: int
    start: int
    stop: int
    new_offset: int
    rows: int


@dataclass(frozen=True)
class AddressMap:
    """One group of a rewrite.

    >>> group = AddressMap((OldRows(0, 3, RowSet.of([1])), OldRows(1, 2)), (NewRows(5, 3), NewRows(6, 1)))
    >>> group.forward(1, RowSet.of([0, 1]))
    {5: RowSet([2]), 6: RowSet([0])}
    >>> group.backward(5, RowSet.of([1, 2]))
    {0: RowSet([2]), 1: RowSet([0])}
    >>> [(piece.old_id, piece.start, piece.stop) for piece in group.pieces(5)]
    [(0, 0, 3), (1, 0, 1)]
    """

    old: Sequence[OldRows]
    new: Sequence[NewRows]

    @property
    def problem(self) -> str | None:
        """Why the map can't hold; ``None`` if the counts of both sides agree."""
        before, after = int(self._old_ends[-1]), int(self._new_ends[-1])
        if before == after:
            return None
        return f"the old fragments have {before} live rows, the new ones {after} rows"

    # -------------------------------------------------------------------------------------------------------- addresses
    def forward(self, old_id: int, rows: RowSet) -> dict[int, RowSet]:
        """Where rows of an old fragment are now, by new fragment id. They must have been live."""
        place = self._place_of_old[old_id]
        ranks = self._old_start(place) + self._ranks(self.old[place], rows.to_numpy())
        return dict(self._split(ranks, self._new_ends, self.new))

    def backward(self, new_id: int, rows: RowSet) -> dict[int, RowSet]:
        """Where rows of a new fragment were, by old fragment id."""
        place = self._place_of_new[new_id]
        ranks = self._new_start(place) + rows.to_numpy()
        by_member = dict(self._split(ranks, self._old_ends, self.old))
        return {
            id: RowSet.of(self.old[self._place_of_old[id]].deleted.nth_absent(found.to_numpy()))
            for id, found in by_member.items()
        }

    def pieces(self, new_id: int) -> Iterator[Piece]:
        """The old rows that a new fragment consists of, in order."""
        place = self._place_of_new[new_id]
        begin, end = self._new_start(place), int(self._new_ends[place])
        member = int(np.searchsorted(self._old_ends, begin, side="right"))
        while begin < end:
            old, start = self.old[member], self._old_start(member)
            stop = min(end, start + old.live_rows)
            if begin < stop:
                first, last = begin - start, stop - start
                bounds = old.deleted.nth_absent(np.array([first, last - 1])).tolist()
                low = 0 if first == 0 else bounds[0]
                high = old.physical_rows if last == old.live_rows else bounds[1] + 1
                yield Piece(old.id, low, high, begin - self._new_start(place), last - first)
                begin = stop
            member += 1

    # ------------------------------------------------------------------------------------------------------------ ranks
    @cached_property
    def _old_ends(self) -> Offsets:
        return np.cumsum([0, *(each.live_rows for each in self.old)], dtype=np.int64)[1 if self.old else 0 :]

    @cached_property
    def _new_ends(self) -> Offsets:
        return np.cumsum([0, *(each.physical_rows for each in self.new)], dtype=np.int64)[1 if self.new else 0 :]

    @cached_property
    def _place_of_old(self) -> dict[int, int]:
        return {each.id: place for place, each in enumerate(self.old)}

    @cached_property
    def _place_of_new(self) -> dict[int, int]:
        return {each.id: place for place, each in enumerate(self.new)}

    def _old_start(self, place: int) -> int:
        return int(self._old_ends[place]) - self.old[place].live_rows

    def _new_start(self, place: int) -> int:
        return int(self._new_ends[place]) - self.new[place].physical_rows

    @staticmethod
    def _ranks(old: OldRows, offsets: Offsets) -> Offsets:
        if len(offsets) and int(offsets[-1]) >= old.physical_rows:
            raise InvalidRequest(f"Fragment {old.id} has {old.physical_rows} rows, and none at {int(offsets[-1])}.")
        deleted = old.deleted.to_numpy()
        before = np.searchsorted(deleted, offsets, side="right")
        if len(deleted) and np.any(deleted[np.maximum(before - 1, 0)][before > 0] == offsets[before > 0]):
            raise InvalidRequest(f"A row of fragment {old.id} was deleted before the rewrite: it has no new address.")
        return offsets - before

    @staticmethod
    def _split(
        ranks: Offsets, ends: Offsets, parts: Sequence[OldRows] | Sequence[NewRows]
    ) -> Iterator[tuple[int, RowSet]]:
        """Ascending ranks by the part that they fall into, counted from where that begins."""
        owners = np.searchsorted(ends, ranks, side="right")
        cuts = np.flatnonzero(np.diff(owners)) + 1
        for place, some in zip(owners[[0, *cuts]].tolist() if len(ranks) else (), np.split(ranks, cuts), strict=False):
            part = parts[place]
            size = part.live_rows if isinstance(part, OldRows) else part.physical_rows
            yield part.id, RowSet.of(some - (int(ends[place]) - size))
