"""Sets of rows behave as Python's sets of numbers do, at any size; their bytes are those of the bitmaps inside."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64, FrozenBitMap

from tablewright.errors import InvalidRequest
from tablewright.format.roaring import encode_bitmap
from tablewright.format.row_set import RowSet

LAST = 2**32 - 1
OFFSET = st.one_of(st.integers(0, 40), st.integers(0, LAST))
WIDE = st.one_of(OFFSET, st.integers(0, 2**63 - 1))
NARROW_SETS, SETS = st.sets(OFFSET, max_size=60), st.sets(WIDE, max_size=60)


@given(SETS, SETS)
def test_set_algebra(one: set[int], other: set[int]) -> None:
    ours, theirs = RowSet.of(one), RowSet.of(other)
    for made, expected in ((ours | theirs, one | other), (ours & theirs, one & other), (ours - theirs, one - other)):
        assert made == RowSet.of(expected) and hash(made) == hash(RowSet.of(expected))
        assert list(made) == sorted(expected) and len(made) == len(expected) and bool(made) == bool(expected)
    assert (ours <= theirs) == (one <= other) and (ours & theirs) <= ours
    assert ours.isdisjoint(theirs) == one.isdisjoint(other)
    assert (ours == theirs) == (one == other)


@given(SETS, st.lists(WIDE, max_size=20))
def test_questions(members: set[int], asked: list[int]) -> None:
    rows, ordered = RowSet.of(members), sorted(members)
    assert rows.to_numpy().tolist() == ordered and rows.to_numpy().dtype == np.int64
    assert rows.last == (ordered[-1] if ordered else None) and rows.first(3) == ordered[:3]
    assert [offset in rows for offset in asked] == [offset in members for offset in asked]
    assert rows.contains(np.array(asked, np.int64)).tolist() == [offset in members for offset in asked]
    assert [rows.rank(offset) for offset in asked] == [sum(each < offset for each in members) for offset in asked]
    assert pickle.loads(pickle.dumps(rows)) == rows


@given(st.sets(st.integers(0, 200)), st.integers(0, 150))
def test_the_complement(members: set[int], count: int) -> None:
    rows, others = RowSet.of(members), [offset for offset in range(count) if offset not in members]
    assert rows.absent(count).tolist() == list(rows.complement(count)) == others
    assert rows.absent_mask(count).tolist() == [offset not in members for offset in range(count)]
    assert rows.nth_absent(np.arange(len(others))).tolist() == others
    assert RowSet.full(count) - rows == RowSet.of(others)


@given(st.sets(st.integers(0, 30)), st.sets(st.one_of(st.integers(0, 30), st.just(2**40))))
def test_runs_of_others_beside_them(members: set[int], others: set[int]) -> None:
    expected, grown = set(members), None
    while grown != expected:
        grown = set(expected)
        expected |= {offset for offset in others if {offset - 1, offset + 1} & grown}
    assert RowSet.of(members).spread_over(RowSet.of(others - members)) == RowSet.of(expected)


@given(NARROW_SETS)
def test_bytes(members: set[int]) -> None:
    rows = RowSet.of(np.array(sorted(members), np.int64))
    assert rows.to_bytes() == encode_bitmap(FrozenBitMap(sorted(members))) == bytes(BitMap(members).serialize())
    assert RowSet.from_bytes(rows.to_bytes()) == rows
    assert RowSet.of(FrozenBitMap(members)) == RowSet.of(BitMap(members)) == rows


def test_what_is_no_bitmap_is_refused() -> None:
    with pytest.raises(ValueError, match="ends too early"):
        RowSet.from_bytes(RowSet.of([1, 2]).to_bytes()[:-1])
    with pytest.raises(ValueError, match="at most 5"):
        RowSet.from_bytes(RowSet.full(2**32).to_bytes(), 5)
    with pytest.raises(InvalidRequest, match="below"):
        RowSet.of([2**32]).to_bytes()


def test_a_large_set_is_a_small_message() -> None:
    rows = RowSet.full(10_000_000)
    assert len(pickle.dumps(rows)) < 3000 and len(rows) == 10_000_000
    assert repr(rows) == "RowSet([0, 1, 2, 3, 4, 5, 6, 7, …], 10000000 rows)"


def test_the_set() -> None:
    vector = RowSet.of([5, 1, 9, 5])
    assert len(vector) == 3 and 5 in vector and 6 not in vector and -1 not in vector and 2**40 not in vector
    assert vector == RowSet.of(np.array([9, 5, 1], np.int64)) == RowSet.of(BitMap([1, 5, 9]))
    assert vector.to_numpy().tolist() == [1, 5, 9] and vector.to_numpy().dtype == np.int64
    other = RowSet.of([5, 6])
    assert (vector | other).to_numpy().tolist() == [1, 5, 6, 9]
    assert (vector & other).to_numpy().tolist() == [5]
    assert (vector - other).to_numpy().tolist() == [1, 9]
    assert [vector.rank(offset) for offset in (0, 1, 2, 5, 6, 10, 2**33)] == [0, 0, 1, 1, 2, 3, 3]
    assert pickle.loads(pickle.dumps(vector)) == vector
    assert len({vector, RowSet.of([1, 5, 9])}) == 1
    assert RowSet.of([LAST]).rank(2**32) == 1


def test_offsets_beyond_32_bits() -> None:
    low, high = [3, LAST], [2**32, 2**40 + 1, 2**63 - 1]
    wide = RowSet.of([*high, *low])
    assert len(wide) == 5 and wide.last == 2**63 - 1 and wide.to_numpy().tolist() == low + high
    assert wide == RowSet.of(BitMap64(low + high)) == RowSet.of(np.array(high + low, np.uint64))
    assert all(offset in wide for offset in low + high)
    assert not any(offset in wide for offset in (-1, 2, 2**32 + 1, 2**63, 2**64 + 3))
    assert [wide.rank(offset) for offset in (-1, 3, 4, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**70)] == [
        0,
        0,
        1,
        2,
        3,
        4,
        5,
        5,
    ]
    assert pickle.loads(pickle.dumps(wide)) == wide and len({wide, RowSet.of(low + high)}) == 1

    narrow = RowSet.of(low)
    assert RowSet.of(BitMap64(low)) == narrow and narrow.beyond is None and narrow.last == LAST
    assert RowSet().last is None
    above = RowSet.of(high)
    assert (narrow | above) == (above | narrow) == (wide | narrow) == (wide | above) == wide
    assert (wide - above) == (wide & narrow) == (narrow & wide) == narrow
    assert (wide - narrow) == (wide & above) == above
    assert (narrow - wide) == (above - wide) == (above & narrow) == RowSet()
    other = RowSet.of([2**32 + 1])
    assert (above | other).to_numpy().tolist() == sorted([*high, 2**32 + 1])
    assert (above & other) == RowSet() and (above - other) == above

    assert wide.absent_mask(5).tolist() == [True, True, True, False, True]


def test_masks() -> None:
    vector = RowSet.of([0, 3, 4])
    assert vector.absent_mask(5).tolist() == [False, True, True, False, False]
    assert vector.absent(5).tolist() == [1, 2]
    assert RowSet().absent_mask(2).tolist() == [True, True]
    assert RowSet().absent(0).tolist() == []
    assert vector.absent_mask(2).tolist() == [False, True]


@pytest.mark.parametrize("bad", [[-1], [2**63], [-1, 2**63], [2**70], [0.5], ["a"]])
def test_what_is_no_offset_is_refused(bad: list[object]) -> None:
    with pytest.raises(InvalidRequest):
        RowSet.of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("deleted", [[], [0], [1, 2, 7], [0, 1, 2, 3], [9]])
def test_ranks_and_membership_agree_with_the_mask(deleted: list[int]) -> None:
    vector = RowSet.of(deleted)
    live = vector.absent(10)
    assert vector.nth_absent(np.arange(len(live))).tolist() == live.tolist()
    assert (~vector.contains(np.arange(10))).tolist() == vector.absent_mask(10).tolist()
