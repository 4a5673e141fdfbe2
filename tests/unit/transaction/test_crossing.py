"""Rows followed through a rewrite, and the rewrites that they can't be followed through."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.compactor import plan_compaction
from tests.unit.transaction.crossings import crossed, crossing_to, sixteen_rows

import tablewright as tw
from tablewright.format.naming import deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import RewriteGroup
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.transaction.crossing import Crossing, NotFollowed


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def base(request: pytest.FixtureRequest) -> Snapshot:
    return sixteen_rows(stable=request.param)


def test_rows_are_followed_by_rank(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1], [3]])
    first, second, third = (id for id in crossing.after.fragments.ids.tolist() if id > 3)
    rows = {0: RowSet.of([0, 3]), 1: RowSet.of([0, 1, 3]), 2: RowSet.of([2]), 3: RowSet.of([1])}
    crossing.check(rows)
    assert crossing.forward(rows) == {
        first: RowSet.of([0, 2, 3]),
        second: RowSet.of([0, 1]),
        2: RowSet.of([2]),
        third: RowSet.of([1]),
    }
    assert crossing.rewritten([0, 2, 3]) == [0, 3]
    assert [[each.id for each in group.map.old] for group in crossing.groups_of([3, 2, 1])] == [[0, 1], [3]]


def test_reordered_rows_are_another_matter(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]], reorder=True)
    with pytest.raises(NotFollowed, match="after the rewrite"):
        crossing.check({0: RowSet.of([0])})
    crossing.check({2: RowSet.of([0])})  # not rewritten
    crossing.check({0: RowSet()})


def test_a_deletion_file_that_is_gone_ends_it(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]])
    old = base.fragments.by_id(0)
    assert old.deletion is not None
    base.world.store.delete(deletion_path(0, old.deletion))
    with pytest.raises(NotFollowed, match="can't be read"):
        crossing.forward({0: RowSet.of([0])})


def test_counts_have_to_agree(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]])
    (group,) = crossing.rewrite.groups
    cases = {
        "live rows": RewriteGroup(old_fragments=group.old_fragments[:1], new_fragments=group.new_fragments),
        "no ids of their own": replace(group, new_fragments=tuple(replace(each, id=2) for each in group.new_fragments)),
        "has 4 rows, not 5": replace(
            group,
            old_fragments=(replace(group.old_fragments[0], deletion=None), group.old_fragments[1]),
            new_fragments=(
                replace(group.new_fragments[0], physical_rows=group.new_fragments[0].physical_rows + 1),
                *group.new_fragments[1:],
            ),
        ),
        "lost": replace(group, new_fragments=tuple(replace(each, id=100 + each.id) for each in group.new_fragments)),
    }
    for reason, changed in cases.items():
        wrong = Crossing(crossing.before, crossing.after, replace(crossing.rewrite, groups=(changed,)))
        with pytest.raises(NotFollowed, match=reason):
            wrong.forward({0: RowSet.of([0])})


def test_rows_never_come_back(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]])
    first = open_snapshot(base.world, 1)
    with pytest.raises(NotFollowed, match="had other rows when it was read"):
        Crossing(first, crossing.after, crossing.rewrite).forward({0: RowSet.of([0])})


def test_fragments_have_to_be_replaced(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]])
    with pytest.raises(NotFollowed, match="still there"):
        Crossing(crossing.before, crossing.before, crossing.rewrite).forward({0: RowSet.of([0])})


def test_rows_have_to_be_live_on_both_sides(base: Snapshot) -> None:
    planned = plan_compaction(base, [[0, 1]], rows_per_file=3)
    tw.dataset(base.location.uri).delete("id in (0, 2, 3, 4)")  # the first output is empty, row 4 is hidden
    crossing = crossing_to(planned.commit())
    assert list(crossing.forward({1: RowSet.of([1, 3])}).values()) == [RowSet.of([1, 2])]
    with pytest.raises(NotFollowed, match="deleted in fragment"):
        crossing.forward({1: RowSet.of([0])})
    with pytest.raises(NotFollowed, match="has no rows"):
        crossing.forward({0: RowSet.of([0])})
