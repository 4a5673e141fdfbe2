"""The map of row addresses past a rewrite, against a plain list of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import InvalidRequest
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.row_set import RowSet


@st.composite
def groups(draw: st.DrawFn) -> AddressMap:
    old = []
    for id in range(draw(st.integers(1, 5))):
        rows = draw(st.integers(1, 12))
        deleted = draw(st.sets(st.integers(0, rows - 1)))
        old.append(OldRows(id, rows, RowSet.of(sorted(deleted))))
    left, new = sum(each.live_rows for each in old), []
    while left:
        rows = draw(st.integers(1, left))
        new.append(NewRows(10 + len(new), rows))
        left -= rows
    return AddressMap(tuple(old), tuple(new))


def pairs(group: AddressMap) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Old and new address of every live row, counted one by one."""
    before = [(each.id, row) for each in group.old for row in range(each.physical_rows) if row not in each.deleted]
    after = [(each.id, row) for each in group.new for row in range(each.physical_rows)]
    return list(zip(before, after, strict=True))


@given(groups())
def test_every_row_is_found_both_ways(group: AddressMap) -> None:
    assert group.problem is None
    for (old, row), (new, place) in pairs(group):
        assert group.forward(old, RowSet.of([row])) == {new: RowSet.of([place])}
        assert group.backward(new, RowSet.of([place])) == {old: RowSet.of([row])}


@given(groups())
def test_sets_of_rows_are_split_by_fragment(group: AddressMap) -> None:
    for each in group.old:
        found = group.forward(each.id, each.deleted.complement(each.physical_rows))
        expected = [new for (old, _), new in pairs(group) if old == each.id]
        assert [(id, row) for id, rows in found.items() for row in rows] == expected


@given(groups())
def test_pieces_are_the_rows_of_a_new_fragment_in_order(group: AddressMap) -> None:
    members = {each.id: each for each in group.old}
    rows = []
    for each in group.new:
        for piece in group.pieces(each.id):
            live = [row for row in range(piece.start, piece.stop) if row not in members[piece.old_id].deleted]
            assert len(live) == piece.rows
            rows += [((piece.old_id, row), (each.id, piece.new_offset + n)) for n, row in enumerate(live)]
    assert rows == pairs(group)


def test_counts_that_differ_are_a_problem() -> None:
    group = AddressMap((OldRows(0, 3, RowSet.of([1])),), (NewRows(5, 3),))
    assert group.problem == "the old fragments have 2 live rows, the new ones 3 rows"
    assert AddressMap((), ()).problem is None


def test_rows_without_a_rank_are_refused() -> None:
    group = AddressMap((OldRows(0, 3, RowSet.of([1])),), (NewRows(5, 2),))
    with pytest.raises(InvalidRequest, match="deleted before the rewrite"):
        group.forward(0, RowSet.of([0, 1]))
    with pytest.raises(InvalidRequest, match="has 3 rows, and none at 3"):
        group.forward(0, RowSet.of([3]))
    assert group.forward(0, RowSet()) == {}
