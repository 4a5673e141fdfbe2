"""What is kept of an older segment."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.row_address import RowAddress
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.indices.live_rows import LiveRows, live_rows_of
from tablewright.indices.translation import Translation

FILE = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)


def fragment(id, rows, ids=None):
    return Fragment(id=id, files=(FILE,), physical_rows=rows, row_ids=None if ids is None else encode_row_ids(ids))


def addresses(*pairs):
    return np.array([fragment << 32 | offset for fragment, offset in pairs], np.uint64)


def test_addresses_of_live_rows_in_covered_fragments_are_kept():
    table = FragmentList.of([fragment(0, 3), fragment(2, 3), fragment(5, 2)])
    alive = live_rows_of(table, {0, 5}, lambda each: {5: RowSet.of([0])}.get(each.id), by_address=True)
    ids = addresses((0, 0), (0, 2), (0, 3), (2, 1), (5, 0), (5, 1), (9, 0))
    same, kept = alive(ids)
    assert (same == ids).all()
    assert kept.tolist() == [True, True, False, False, False, True, False]


def test_addresses_are_followed_first():
    group = AddressMap((OldRows(0, 3, RowSet.of([1])), OldRows(1, 2)), (NewRows(5, 4),))
    alive = LiveRows(FragmentList.of([fragment(5, 4)]), {5: RowSet.of([2])}, True, Translation.of([[group]]))
    ids, kept = alive(addresses((1, 1), (0, 1), (0, 2), (1, 0), (7, 0)))
    assert kept.tolist() == [True, False, True, False, False]
    assert [(RowAddress(id).fragment_id, RowAddress(id).offset) for id in ids[kept].tolist()] == [(5, 3), (5, 1)]


def test_row_ids_count_where_their_row_is_now():
    """Row 12 moved from the covered fragment to another one: its entry is stale."""
    gone = DeletionFile(file_type=DeletionFileType.ARROW_ARRAY, read_version=1, id=1, num_deleted_rows=1)
    table = FragmentList.of(
        [
            fragment(0, 5, RowIdSequence.from_range(10, 15)).with_deletion(gone),
            fragment(1, 1, RowIdSequence.from_values([12])),
            fragment(2, 2, RowIdSequence.from_range(20, 22)),
        ]
    )
    alive = live_rows_of(table, {0, 2}, lambda each: {0: RowSet.of([2])}.get(each.id), by_address=False)
    _, kept = alive(np.array([14, 12, 21, 99], np.uint64))
    assert kept.tolist() == [True, False, True, False]


@pytest.mark.parametrize("by_address", [True, False])
def test_nothing_is_covered(by_address):
    alive = LiveRows(FragmentList.of([]), {}, by_address)
    assert alive(addresses((0, 0)))[1].tolist() == [False]


def test_it_can_be_sent_to_a_worker():
    alive = LiveRows(FragmentList.of([fragment(0, 3)]), {0: RowSet.of([1])}, True, Translation())
    again = pickle.loads(pickle.dumps(alive))
    assert again(addresses((0, 0), (0, 1)))[1].tolist() == [True, False]
