"""Which fragments an index covers after a change."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.unit.format.samples import SCHEMA, fragment, index

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import stores_row_ids
from tablewright.format.transaction import Rewrite, RewriteGroup, RewrittenIndex
from tablewright.transaction.coverage import (
    extended_to_moved_rows,
    of_schema,
    past_rewrite,
    without_rewritten_columns,
)

BTREE, ZONES = "/lance.table.BTreeIndexDetails", "/lance.table.ZoneMapIndexDetails"


def made(covered: set[int] | None = None, **changes: Any) -> IndexMetadata:
    entry = index(details_type_url=BTREE, **changes)
    return entry if covered is None else entry.with_coverage(covered)


def covered(indices: tuple[IndexMetadata, ...]) -> list[set[int] | None]:
    return [None if each.coverage is None else set(each.coverage) for each in indices]


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("BTree", None, True),
        ("BTree", 0, True),
        ("BTree", 1, False),
        ("Bitmap", 3, True),
        ("ZoneMap", 0, False),
        ("", 0, False),
    ],
)
def test_kinds_that_name_rows_by_id(kind: str, version: int | None, expected: bool) -> None:
    entry = index(details_type_url=f"/lance.table.{kind}IndexDetails" if kind else None, index_version=version)
    assert stores_row_ids(entry) is expected


def test_indices_of_dropped_columns_go() -> None:
    assert of_schema((made(fields=(0,)), made(fields=(0, 9))), SCHEMA) == (made(fields=(0,)),)


def test_values_that_changed_in_place_are_not_covered() -> None:
    indices = (made({0, 1, 2}), made({0, 1, 2}, fields=(1,)), made(fragment_bitmap=None))
    shrunk = without_rewritten_columns(indices, {0}, [1, 2, 7])
    assert covered(shrunk) == [{0}, {0, 1, 2}, None]
    assert shrunk[1] is indices[1], "the bytes of a bitmap that stays are not written again"


def test_rows_that_moved_stay_covered_where_nothing_else_can_be() -> None:
    indices = (
        made({0, 1}),
        made({0}),
        made({0, 1}, fields=(1,)),
        made({0, 1}, index_version=1),
    )
    found = extended_to_moved_rows(indices, {1}, [0, 1], [fragment(5)])
    assert covered(found) == [{0, 1, 5}, {0}, {0, 1}, {0, 1}]


GROUP = RewriteGroup(old_fragments=(fragment(0), fragment(1)), new_fragments=(fragment(8),))


@pytest.mark.parametrize(
    ("entry", "stable", "expected"),
    [
        (made({0, 1, 2}), True, {2, 8}),
        (made({0, 1, 2}), False, {0, 1, 2}),
        (made({2}), True, {2}),
        (index(details_type_url=ZONES).with_coverage({0, 1, 2}), True, {2}),
        (index(details_type_url=ZONES).with_coverage({0}), True, set()),
    ],
    ids=["follows", "addresses", "elsewhere", "zones", "zones in part"],
)
def test_past_a_rewrite(entry: IndexMetadata, stable: bool, expected: set[int]) -> None:
    assert covered(past_rewrite((entry,), Rewrite(groups=(GROUP,)), stable_row_ids=stable)) == [expected]


def test_a_rewritten_index_takes_its_new_files() -> None:
    new = RewrittenIndex(old_id=made().uuid, new_id=UUID(int=99), details_type_url=ZONES, new_index_version=2)
    (found,) = past_rewrite((made({0, 1}),), Rewrite(groups=(GROUP,), rewritten_indices=(new,)), stable_row_ids=False)
    assert (found.uuid, found.details_type_url, found.index_version) == (UUID(int=99), ZONES, 2)
    assert covered((found,)) == [{8}]


def test_a_group_that_is_covered_in_part_leaves_the_coverage() -> None:
    (after,) = past_rewrite((made({0}),), Rewrite(groups=(GROUP,)), stable_row_ids=True)
    assert after.coverage is not None and not after.coverage
