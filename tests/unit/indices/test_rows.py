from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pyroaring import FrozenBitMap
from tests.unit.reading.indexed import indexed_table, snapshot_of

from tablewright.errors import CorruptTable
from tablewright.format.row_set import RowSet
from tablewright.indices.query import RowRanges
from tablewright.indices.rows import all_live_rows, covered_fragments, rows_at, rows_in_ranges


@pytest.fixture(scope="module")
def table() -> Any:
    return indexed_table()


def index_on(snapshot: Any, name: str) -> Any:
    return next(index for index in snapshot.manifest.indices if index.name == f"{name}_idx")


def test_hits_count_where_they_are_alive_and_covered(table: Any) -> None:
    snapshot = snapshot_of(table)
    index = index_on(snapshot, "id")
    covered = covered_fragments(snapshot, [index])
    assert covered == FrozenBitMap([0, 1, 2, 3])
    hits = np.array([0, 1, 2, 4 << 32, 2 << 32 | 1, 99 << 32], np.uint64)
    assert rows_at(snapshot, index, covered, hits) == {0: RowSet.of([1, 2]), 2: RowSet.of([1])}
    assert rows_at(snapshot, index, FrozenBitMap([2]), hits) == {2: RowSet.of([1])}


def test_ranges_count_where_they_are_alive_and_covered(table: Any) -> None:
    snapshot = snapshot_of(table)
    index = index_on(snapshot, "zone")
    ranges = RowRanges.of([0, 0, 4], [0, 12, 0], [3, 15, 9])
    assert rows_in_ranges(snapshot, index, FrozenBitMap([0, 1]), ranges) == {0: RowSet.of([1, 2, 12, 14])}


def test_all_live_rows(table: Any) -> None:
    (rows,) = all_live_rows(snapshot_of(table), [0]).values()
    assert 0 not in rows and 13 not in rows and 1 in rows


def test_rows_beyond_a_fragment_are_damage(table: Any) -> None:
    snapshot = snapshot_of(table)
    index = index_on(snapshot, "id")
    with pytest.raises(CorruptTable, match=r"beyond the 50 of fragment 1.*use_scalar_index=False"):
        rows_at(snapshot, index, FrozenBitMap([1]), np.array([1 << 32 | 50], np.uint64))
    with pytest.raises(CorruptTable, match="beyond the 50 of fragment 1"):
        rows_in_ranges(snapshot, index, FrozenBitMap([1]), RowRanges.of([1], [40], [51]))


def test_an_entry_without_a_bitmap_covers_nothing(table: Any) -> None:
    snapshot = snapshot_of(table)
    index = replace(index_on(snapshot, "id"), fragment_bitmap=None)
    assert not covered_fragments(snapshot, [index])
