"""Runs of rows against plain lists: what a fragment holds, and what differs between two versions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tablewright.format.row_ids import RowIdSequence, VersionSequence, decode_row_ids, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.operations.change_feed.runs import KINDS, Picks, Runs, compare, runs_of_fragment

ID_MAX = 60


@dataclass(frozen=True)
class Rows:
    """A fragment as lists: the id of each row, when it was last updated, and whether it is there."""

    ids: tuple[int, ...]
    updated: tuple[int, ...]
    live: tuple[bool, ...]

    def runs(self, number: int) -> Runs:
        sequence = RowIdSequence.from_values(np.array(self.ids, np.uint64))
        sequence = decode_row_ids(encode_row_ids(sequence), "")
        deleted = [offset for offset, live in enumerate(self.live) if not live]
        vector = RowSet.of(deleted) if deleted else None
        return runs_of_fragment(
            sequence, VersionSequence.from_values(np.array(self.updated, np.uint64)), vector, number
        )

    def told(self, number: int) -> dict[int, tuple[int, int, int]]:
        return {
            id: (version, number, offset)
            for offset, (id, version, live) in enumerate(zip(self.ids, self.updated, self.live, strict=True))
            if live
        }


@st.composite
def fragments(draw: st.DrawFn) -> list[Rows]:
    """Up to three fragments that share no id: in order, with gaps, or in no order at all."""
    ids = draw(st.one_of(st.just(list(range(ID_MAX))), st.permutations(range(ID_MAX)), st.lists(_ID, unique=True)))
    cuts = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=2)))
    made = []
    for begin, end in zip([0, *cuts], [*cuts, len(ids)], strict=True):
        here = ids[begin:end]
        here = sorted(here) if draw(st.booleans()) else here
        versions = draw(st.lists(st.integers(1, 3), min_size=len(here), max_size=len(here)))
        versions = sorted(versions) if draw(st.booleans()) else versions
        live = draw(st.lists(st.booleans(), min_size=len(here), max_size=len(here)))
        made.append(Rows(tuple(here), tuple(versions), tuple(live)))
    return made


_ID = st.integers(0, ID_MAX)


def _expanded(runs: Runs) -> dict[int, tuple[int, int, int]]:
    columns = (runs.ids, runs.counts, runs.versions, runs.fragments, runs.offsets)
    return {
        first + step: (version, fragment, offset + step)
        for first, count, version, fragment, offset in zip(*(column.tolist() for column in columns), strict=True)
        for step in range(count)
    }


def _picked(picks: Picks) -> dict[int, tuple[str, int, int]]:
    found = {}
    for number, part in picks.by_fragment():
        assert np.all(np.diff(part.offsets) > 0)
        ids = part.row_ids().tolist()
        offsets = [
            first + step for first, count in zip(part.offsets, part.counts, strict=True) for step in range(count)
        ]
        kinds = np.repeat(part.kinds, part.counts).tolist()
        found.update({id: (KINDS[kind], number, int(at)) for id, kind, at in zip(ids, kinds, offsets, strict=True)})
    assert len(found) == picks.total_rows
    return found


@given(before=fragments(), after=fragments())
def test_two_versions_differ_as_their_lists_do(before: list[Rows], after: list[Rows]) -> None:
    runs = [Runs.joined([rows.runs(number) for number, rows in enumerate(side)]) for side in (before, after)]
    old, new = (
        {id: told for n, rows in enumerate(side) for id, told in rows.told(n).items()} for side in (before, after)
    )
    assert (_expanded(runs[0]), _expanded(runs[1])) == (old, new)
    gone, came = compare(*runs)
    updated = {id for id in old.keys() & new.keys() if old[id][0] != new[id][0]}
    assert _picked(gone) == {
        id: ("update_preimage" if id in updated else "delete", *old[id][1:])
        for id in (old.keys() - new.keys()) | updated
    }
    assert _picked(came) == {
        id: ("update_postimage" if id in updated else "insert", *new[id][1:])
        for id in (new.keys() - old.keys()) | updated
    }


def test_a_billion_rows_that_moved_are_two_runs() -> None:
    rows = 1 << 30
    before = [
        runs_of_fragment(RowIdSequence.from_range(first, first + rows), VersionSequence.constant(rows, 1), None, number)
        for number, first in enumerate((0, rows))
    ]
    after = runs_of_fragment(RowIdSequence.from_range(0, 2 * rows), VersionSequence.constant(2 * rows, 1), None, 0)
    gone, came = compare(Runs.joined(before), Runs.joined([after]))
    assert gone.total_rows == came.total_rows == 0
    gone, came = compare(Runs.joined(before), Runs.joined(before[1:]))
    assert (gone.counts.tolist(), came.total_rows) == ([rows], 0)
