"""Addresses through rewrites: as the groups' own maps say, for whole arrays, in any order."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pyroaring import FrozenBitMap

from tablewright.errors import InvalidRequest
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.indices.translation import Translation, Within


def address(fragment: int, offset: int) -> int:
    return int(RowAddress.of(fragment, offset))


def applied(translation: Translation, *ids: int) -> list[int | None]:
    found, kept = translation(np.array(ids, np.uint64))
    return [id if keep else None for id, keep in zip(found.tolist(), kept.tolist(), strict=True)]


def random_groups(rng: np.random.Generator, first_old: int, first_new: int) -> tuple[AddressMap, ...]:
    groups, old_id, new_id = [], first_old, first_new
    for _ in range(int(rng.integers(1, 4))):
        old = []
        for _ in range(int(rng.integers(1, 4))):
            rows = int(rng.integers(1, 30))
            old.append(OldRows(old_id, rows, RowSet.of(np.flatnonzero(rng.random(rows) < rng.choice([0, 0.3, 1])))))
            old_id += 1
        rng.shuffle(old)
        live, new = sum(each.live_rows for each in old), []
        while live:
            rows = int(rng.integers(1, live + 1))
            new.append(NewRows(new_id, rows))
            new_id, live = new_id + 1, live - rows
        groups.append(AddressMap(tuple(old), tuple(new)))
    return tuple(groups)


def one_by_one(groups: tuple[AddressMap, ...], id: int) -> int | None:
    at = RowAddress(id)
    for group in groups:
        for old in group.old:
            if old.id == at.fragment_id:
                if at.offset in old.deleted:
                    return None
                ((new_id, rows),) = group.forward(old.id, RowSet.of([at.offset])).items()
                return address(new_id, next(iter(rows)))
    return id


@pytest.mark.parametrize("seed", range(30))
def test_every_address_goes_where_its_group_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = random_groups(rng, 3, 100)
    known = [address(old.id, offset) for group in groups for old in group.old for offset in range(old.physical_rows)]
    ids = rng.permutation(np.array([*known, *known, address(0, 5), address(2000, 1)], np.uint64))
    assert applied(Translation((groups,)), *ids.tolist()) == [one_by_one(groups, id) for id in ids.tolist()]


def test_steps_are_applied_in_order_and_new_addresses_pass() -> None:
    first = AddressMap((OldRows(0, 3, RowSet.of([0])), OldRows(1, 2)), (NewRows(2, 4),))
    second = AddressMap((OldRows(2, 4, RowSet.of([1])), OldRows(3, 1)), (NewRows(4, 4),))
    translation = Translation.of([[first], [second]])
    assert applied(translation, address(0, 0), address(0, 2), address(1, 0)) == [None, None, address(4, 1)]
    assert applied(translation, address(2, 3), address(4, 3), address(3, 0)) == [
        address(4, 2),
        address(4, 3),
        address(4, 3),
    ]
    assert Translation.of([[first]]).then(Translation.of([[second]])) == translation


def test_it_travels_and_leaves_its_tables_behind() -> None:
    group = AddressMap((OldRows(0, 100_000, RowSet.of(range(0, 100_000, 2))),), (NewRows(1, 50_000),))
    translation = Translation.of([[group]])
    before = len(pickle.dumps(translation))
    assert applied(translation, address(0, 3)) == [address(1, 1)]
    again = pickle.loads(pickle.dumps(translation))
    assert len(pickle.dumps(translation)) < before + 1000
    assert applied(again, address(0, 99_999)) == [address(1, 49_999)]


def test_no_steps_no_ids_and_no_groups() -> None:
    assert applied(Translation(), 7) == [7]
    assert applied(Translation(((),)), 7) == [7]
    group = AddressMap((OldRows(0, 2, RowSet.of([0, 1])),), ())
    assert applied(Translation(((group,),)), 0, 1, address(1, 0)) == [None, None, address(1, 0)]
    assert applied(Translation(((group,),))) == []


def test_coverage_follows_whole_groups_only() -> None:
    first = AddressMap((OldRows(0, 1), OldRows(1, 1)), (NewRows(2, 2),))
    second = AddressMap((OldRows(2, 2), OldRows(3, 1)), (NewRows(4, 3),))
    translation = Translation.of([[first], [second]])
    assert sorted(translation.coverage([0, 1, 3, 9])) == [4, 9]
    assert sorted(translation.coverage([0, 1, 9])) == [9]
    assert sorted(translation.coverage([0, 3])) == []
    assert sorted(translation.coverage([2, 3])) == [4]


def test_what_can_not_be_followed_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="2 live rows, the new ones 3"):
        Translation(((AddressMap((OldRows(0, 2),), (NewRows(1, 3),)),),))
    group = AddressMap((OldRows(0, 2),), (NewRows(1, 2),))
    with pytest.raises(InvalidRequest, match="twice"):
        Translation(((group, group),))
    with pytest.raises(InvalidRequest, match="has 2 rows, and none at 2"):
        Translation(((group,),))(np.array([2], np.uint64))


def test_T16_entries_of_fragments_that_are_not_covered_are_dropped() -> None:
    group = AddressMap((OldRows(0, 2), OldRows(1, 2)), (NewRows(5, 4),))
    ids = np.array([address(0, 0), address(1, 1), address(2, 0), address(3, 7)], np.uint64)
    for within in (Within(Translation.of([[group]]), FrozenBitMap([3, 5])),):
        for each in (within, pickle.loads(pickle.dumps(within))):
            found, kept = each(ids)
            assert kept.tolist() == [True, True, False, True]
            assert found[kept].tolist() == [address(5, 0), address(5, 3), address(3, 7)]
    assert not Within(Translation(), FrozenBitMap())(ids)[1].any()
