"""Pairs of rows and source rows: joined, split by fragment, and small on their way."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs, by_fragment, united


def pairs(*given: tuple[int, int]) -> Pairs:
    return Pairs(np.array([each[0] for each in given], np.uint32), np.array([each[1] for each in given], np.int64))


def shown(found: Pairs) -> list[tuple[int, int]]:
    return list(zip(found.offsets.tolist(), found.positions.tolist(), strict=True))


def test_joined_in_the_order_of_offsets() -> None:
    assert shown(Pairs.joined([pairs((4, 0), (9, 1)), Pairs(), pairs((5, 2))])) == [(4, 0), (5, 2), (9, 1)]
    assert shown(Pairs.joined([])) == []
    one = pairs((1, 1))
    assert Pairs.joined([Pairs(), one]) is one
    assert shown(pairs((1, 5), (2, 6)).where(np.array([False, True]))) == [(2, 6)]


@pytest.mark.parametrize(
    "given", [[], [(7, 3)], [(n, n) for n in range(1000)], [(5, 2**40)], [(0, 1), (2**32 - 1, 0)]], ids=len
)
def test_they_travel(given: list[tuple[int, int]]) -> None:
    data = pickle.dumps(pairs(*given))
    again = pickle.loads(data)
    assert shown(again) == given
    assert (again.offsets.dtype, again.positions.dtype) == (np.uint32, np.int64)
    assert len(data) < 600 + 4 * len(given)


def test_clauses_travel_and_stay_with_their_rows() -> None:
    numbered = Pairs(np.array([2, 9], np.uint32), np.array([-1, 4]), np.array([3, 1], np.int8))
    again = pickle.loads(pickle.dumps(Pairs.joined((pairs((5, 0)), numbered))))
    assert (shown(again), again.numbers.tolist()) == ([(2, -1), (5, 0), (9, 4)], [3, 0, 1])
    assert again.where(again.positions < 0).numbers.tolist() == [3]


def test_addresses_by_fragment() -> None:
    addresses = np.array([RowAddress.of(2, 1), 7, RowAddress.of(2, 0), 3], np.uint64)
    assert [(id, shown(each)) for id, each in by_fragment(addresses, np.arange(4))] == [
        (0, [(3, 3), (7, 1)]),
        (2, [(0, 2), (1, 0)]),
    ]


def test_passes_over_one_fragment_are_united() -> None:
    def found(pair: tuple[int, int], unmatched: list[int] | None) -> FragmentMatches:
        left = None if unmatched is None else (RowSet.of(unmatched), RowSet.of([7]))
        return FragmentMatches(fragment_id=1, pairs=pairs(pair), unmatched=left)

    both = united([found((4, 0), [1, 2, 3]), FragmentMatches(fragment_id=0, pairs=Pairs()), found((2, 9), [1, 3, 4])])
    assert list(both) == [0, 1]
    assert shown(both[1].pairs) == [(2, 9), (4, 0)]
    assert both[1].unmatched == (RowSet.of([1, 3]), RowSet.of([7]))
    assert united([found((4, 0), None), found((2, 9), None)])[1].unmatched is None


def test_each_row_has_a_source_row() -> None:
    with pytest.raises(AssertionError, match="one source row"):
        Pairs(np.zeros(2, np.uint32), np.zeros(1, np.int64))
