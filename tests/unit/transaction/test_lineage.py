"""Row ids and row versions of new fragments."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.format.samples import fragment, stable_fragment

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import (
    RowIdSequence,
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from tablewright.format.row_set import RowSet
from tablewright.transaction.lineage import (
    created_versions,
    moved_rows,
    with_lineage,
    with_updated_rows,
    without_lineage,
)


def ids_of(given: Fragment) -> list[int]:
    return decode_row_ids(given.row_ids or b"", "x").to_numpy().tolist()


def versions_of(data: bytes | None) -> list[int]:
    return decode_versions(data or b"", "x").to_numpy().tolist()


def moving(ids: list[int], rows: int) -> Fragment:
    return fragment(physical_rows=rows, row_ids=encode_row_ids(RowIdSequence.from_values(ids)))


def test_new_rows_take_the_next_ids() -> None:
    found, free = with_lineage([fragment(), fragment(physical_rows=3)], 100, 7)
    assert free == 113
    assert [ids_of(each) for each in found] == [list(range(100, 110)), [110, 111, 112]]
    assert versions_of(found[1].created_at) == versions_of(found[1].last_updated_at) == [7] * 3


def test_moved_rows_come_first_and_keep_their_creation() -> None:
    old = stable_fragment(2, created_at=encode_versions(VersionSequence.from_values(np.arange(1, 11, dtype=np.uint64))))
    (found,), free = with_lineage([moving([25, 21], 4)], 100, 11, [stable_fragment(0), old])
    assert (ids_of(found), free) == ([25, 21, 100, 101], 102)
    assert versions_of(found.created_at) == [6, 2, 11, 11]
    assert versions_of(found.last_updated_at) == [11] * 4
    assert moved_rows(moving([25, 21], 4)) == 2 and moved_rows(fragment()) == 0


def test_creation_that_nobody_stored_is_version_one() -> None:
    found = created_versions(np.array([7, 3], np.uint64), [fragment(9), stable_fragment(0, created_at=None)])
    assert found.tolist() == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Row id 55 of an updated row is in none of the touched fragments"):
        created_versions(np.array([3, 55], np.uint64), [stable_fragment(0)])
    with pytest.raises(InvalidRequest, match="fragment of 1 rows carries 2 row ids"):
        with_lineage([moving([1, 2], 1)], 0, 1)
    with pytest.raises(UnsupportedFeature, match="row id"):
        with_lineage([fragment()], 2**64 - 5, 1)


def test_values_changed_in_place() -> None:
    some = with_updated_rows(stable_fragment(), RowSet.of([2, 5]), 8)
    assert versions_of(some.last_updated_at) == [1, 1, 8, 1, 1, 8, 1, 1, 1, 1]
    assert versions_of(with_updated_rows(stable_fragment(), None, 8).last_updated_at) == [8] * 10
    assert some.created_at == stable_fragment().created_at


def test_a_table_without_row_ids_has_none_of_it() -> None:
    assert without_lineage(stable_fragment()) == fragment()
