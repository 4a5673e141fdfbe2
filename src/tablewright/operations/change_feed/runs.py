"""Which rows differ, by row id, without an entry per row.

A *run* is a stretch of live rows of one fragment whose ids and offsets both count up by one and that were last updated
in the same version. A fragment without deletions, written at once, is one run, whatever its size.

1. :func:`runs_of` cuts a fragment at the borders of its id segments, its version runs and its deleted rows.
2. :func:`compare` takes the runs of all touched fragments of two versions, cuts both at each other's borders, and tells
   for each piece: only before (deleted), only after (inserted), in both but updated since, or the same.

That a row moved to another fragment, as compaction and updates do, makes no difference: ids are compared, and the
version that a row was last updated in goes with it. All is array arithmetic over runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.row_ids import RowIdSequence, VersionSequence
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.segments import Range, RangeWithBitmap, RangeWithHoles, Segment, SortedArray

__all__ = [
    "DELETE",
    "INSERT",
    "KINDS",
    "UPDATE_POSTIMAGE",
    "UPDATE_PREIMAGE",
    "Picks",
    "Runs",
    "compare",
    "runs_of_fragment",
]

Numbers = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int8]

KINDS = ("insert", "update_preimage", "update_postimage", "delete")
INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE, DELETE = range(4)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of live rows: the first id, how many, last updated when; in which fragment, from which offset on."""

    ids: Numbers
    counts: Offsets
    versions: Numbers
    fragments: Offsets
    offsets: Offsets

    @classmethod
    def joined(cls, parts: Sequence[Runs]) -> Runs:
        """All runs of several fragments, by id."""
        if not parts:
            numbers, offsets = np.zeros(0, np.uint64), np.zeros(0, np.int64)
            return cls(numbers, offsets, numbers, offsets, offsets)
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(ids, kind="stable")
        return cls(
            ids[order],
            np.concatenate([part.counts for part in parts])[order],
            np.concatenate([part.versions for part in parts])[order],
            np.concatenate([part.fragments for part in parts])[order],
            np.concatenate([part.offsets for part in parts])[order],
        )

    @property
    def ends(self) -> Numbers:
        """The id after the last of each run."""
        return self.ids + self.counts.astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Picks:
    """Rows that changed, as stretches of fragments: what happened to them, and the id of the first one."""

    fragments: Offsets
    offsets: Offsets
    counts: Offsets
    ids: Numbers
    kinds: Codes

    def of_kind(self, kind: int) -> Picks:
        """Those rows that one thing happened to."""
        return self._at(np.flatnonzero(self.kinds == kind))

    def rows(self, kind: int) -> int:
        """How many rows something happened to."""
        return int(self.counts[self.kinds == kind].sum())

    @property
    def total_rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def row_ids(self) -> Numbers:
        """The id of each row."""
        before = np.cumsum(self.counts) - self.counts
        ids: Numbers = np.arange(self.total_rows, dtype=np.uint64)
        ids += np.repeat(self.ids - before.astype(np.uint64), self.counts)
        return ids

    def row_offsets(self) -> Offsets:
        """The offset of each row in its fragment."""
        before = np.cumsum(self.counts) - self.counts
        offsets: Offsets = np.arange(self.total_rows) + np.repeat(self.offsets - before, self.counts)
        return offsets

    def where(self, mask: npt.NDArray[np.bool_]) -> Picks:
        """Some of the rows, chosen by a bool for each."""
        stretch = np.repeat(np.arange(len(self.counts)), self.counts)[mask]
        offsets, ids = self.row_offsets()[mask], self.row_ids()[mask]
        return Picks(self.fragments[stretch], offsets, np.ones(len(stretch), np.int64), ids, self.kinds[stretch])

    @classmethod
    def joined(cls, parts: Sequence[Picks]) -> Picks:
        """The picks of all parts."""
        if not parts:
            none = np.zeros(0, np.int64)
            return cls(none, none, none, np.zeros(0, np.uint64), np.zeros(0, np.int8))
        return cls(
            np.concatenate([part.fragments for part in parts]),
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.kinds for part in parts]),
        )

    def by_fragment(self) -> Iterator[tuple[int, Picks]]:
        """The picks of each fragment, by offset; neighbours with one fate become one."""
        if not len(self.fragments):
            return
        order = np.lexsort((self.offsets, self.fragments))
        ordered = self._at(order)._coalesced()
        numbers, begins = np.unique(ordered.fragments, return_index=True)
        for number, begin, end in zip(numbers.tolist(), begins, [*begins[1:], len(ordered.fragments)], strict=True):
            yield number, ordered._at(np.arange(begin, end))

    def _at(self, rows: Offsets) -> Picks:
        return Picks(self.fragments[rows], self.offsets[rows], self.counts[rows], self.ids[rows], self.kinds[rows])

    def _coalesced(self) -> Picks:
        follows = (
            (self.fragments[1:] == self.fragments[:-1])
            & (self.kinds[1:] == self.kinds[:-1])
            & (self.offsets[1:] == self.offsets[:-1] + self.counts[:-1])
            & (self.ids[1:] == self.ids[:-1] + self.counts[:-1].astype(np.uint64))
        )
        begins = np.concatenate([[0], np.flatnonzero(~follows) + 1])
        counts = np.add.reduceat(self.counts, begins)
        return Picks(self.fragments[begins], self.offsets[begins], counts, self.ids[begins], self.kinds[begins])


def runs_of_fragment(ids: RowIdSequence, updated: VersionSequence, gone: RowSet | None, fragment: int) -> Runs:
    """The runs of a fragment, in the order of its rows. ``fragment`` is the number that they carry.

    >>> ids, updated = RowIdSequence.from_range(10, 15), VersionSequence.constant(5, 1)
    >>> runs = runs_of_fragment(ids, updated, RowSet.of([2]), 0)
    >>> runs.ids.tolist(), runs.counts.tolist(), runs.offsets.tolist()
    ([10, 13], [2, 2], [0, 3])
    """
    rows = len(ids)
    firsts, first_offsets = _pieces(ids)
    updates = np.cumsum(updated.counts) - updated.counts
    begins, ends = _live_ranges(gone, rows)
    cuts = np.unique(np.concatenate([first_offsets, updates, begins, ends]))
    counts = np.diff(np.append(cuts, rows))
    at = np.searchsorted(begins, cuts, side="right") - 1
    kept = (counts > 0) & (at >= 0) & (cuts < np.append(ends, 0)[at])
    cuts, counts = cuts[kept], counts[kept]
    piece = np.searchsorted(first_offsets, cuts, side="right") - 1
    return Runs(
        firsts[piece] + (cuts - first_offsets[piece]).astype(np.uint64),
        counts,
        updated.versions[np.searchsorted(updates, cuts, side="right") - 1],
        np.full(len(cuts), fragment, np.int64),
        cuts,
    )


def compare(before: Runs, after: Runs) -> tuple[Picks, Picks]:
    """What happened to the rows: pictures from before (deleted, updated), and from after (inserted, updated)."""
    cuts = np.unique(np.concatenate([before.ids, before.ends, after.ids, after.ends]))
    starts, counts = cuts[:-1], np.diff(cuts).astype(np.int64)
    left, was = _within(before, starts)
    right, is_ = _within(after, starts)
    both = was & is_
    changed = np.zeros(len(starts), np.bool_)
    changed[both] = before.versions[left[both]] != after.versions[right[both]]
    old, new = (was & ~is_) | changed, (is_ & ~was) | changed
    return (
        _picked(before, left[old], starts[old], counts[old], np.where(changed[old], UPDATE_PREIMAGE, DELETE)),
        _picked(after, right[new], starts[new], counts[new], np.where(changed[new], UPDATE_POSTIMAGE, INSERT)),
    )


def _within(runs: Runs, starts: Numbers) -> tuple[Offsets, npt.NDArray[np.bool_]]:
    """The run that each start lies in, and whether there is one."""
    at = np.searchsorted(runs.ids, starts, side="right") - 1
    return at, (at >= 0) & (starts < np.append(runs.ends, np.uint64(0))[at])


def _picked(runs: Runs, at: Offsets, starts: Numbers, counts: Offsets, kinds: npt.NDArray[np.int_]) -> Picks:
    offsets = runs.offsets[at] + (starts - runs.ids[at]).astype(np.int64)
    return Picks(runs.fragments[at], offsets, counts, starts, kinds.astype(np.int8))


def _pieces(ids: RowIdSequence) -> tuple[Numbers, Offsets]:
    """Stretches of ids that count up by one: the first id of each, and the offset that it stands at."""
    found = [_stretches(segment) for segment in ids.segments]
    if not found:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    counts = np.concatenate([counts for _, counts in found])
    return np.concatenate([firsts for firsts, _ in found]), np.cumsum(counts) - counts


def _stretches(segment: Segment) -> tuple[Numbers, Offsets]:
    if isinstance(segment, Range | RangeWithHoles | RangeWithBitmap | SortedArray):
        firsts, lasts = segment.intervals()
        return firsts, (lasts - firsts).astype(np.int64) + 1
    values = segment.values()  # ids in any order
    begins = np.flatnonzero(np.append(True, values[1:] - values[:-1] != np.uint64(1)))[: len(values)]
    return values[begins], np.diff(np.append(begins, len(values)))


def _live_ranges(gone: RowSet | None, rows: int) -> tuple[Offsets, Offsets]:
    """Where live rows begin and end."""
    deleted = np.zeros(0, np.int64) if gone is None else gone.to_numpy().astype(np.int64)
    begins, ends = np.append(0, deleted + 1), np.append(deleted, rows)
    full = begins < ends
    return begins[full], ends[full]
