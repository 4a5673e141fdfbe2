"""What an operation touches, for every kind that touches anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.format.samples import FILE, SCHEMA, fragment, index

from tablewright.format.fragment import TOMBSTONE, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import (
    Append,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
    UpdateMode,
)
from tablewright.transaction.touched import (
    changed_config_keys,
    changed_fragments,
    covered_fragments,
    dropped_fields,
    patched_offsets,
    removed_fragments,
    replaced_fields,
    updated_by_id,
)

SOME = RowSet.of([1, 3])
REPLACED = (
    DataReplacementGroup(fragment_id=4, new_file=replace(FILE, fields=(0, TOMBSTONE))),
    DataReplacementGroup(fragment_id=4, new_file=replace(FILE, fields=(1, TOMBSTONE))),
    DataReplacementGroup(fragment_id=5, new_file=FILE),
)
GROUPS = (
    RewriteGroup(old_fragments=(fragment(1), fragment(2)), new_fragments=(fragment(8),)),
    RewriteGroup(old_fragments=(fragment(3),), new_fragments=(fragment(9),)),
)
CASES: list[tuple[Operation, set[int], set[int], set[int]]] = [
    # operation, removed, updated, changed
    (Append(fragments=(fragment(),)), set(), set(), set()),
    (Delete(updated_fragments=(fragment(1),), deleted_fragment_ids=(2,)), {2}, {1}, {1, 2}),
    (
        Update(updated_fragments=(fragment(1),), removed_fragment_ids=(2,), new_fragments=(fragment(),)),
        {2},
        {1},
        {1, 2},
    ),
    (Rewrite(groups=GROUPS), {1, 2, 3}, set(), {1, 2, 3}),
    (Rewrite(groups=()), set(), set(), set()),
    (Merge(fragments=FragmentList.of([fragment(1), fragment(7)]), schema=SCHEMA), set(), set(), {1, 7}),
    (Merge(fragments=(fragment(3),), schema=SCHEMA), set(), set(), {3}),
    (DataReplacement(replacements=REPLACED), set(), set(), {4, 5}),
    (UpdateConfig(config_updates=MapUpdate(entries={"a": "b"})), set(), set(), set()),
]


@pytest.mark.parametrize(
    ("operation", "removed", "updated", "changed"), CASES, ids=lambda each: getattr(each, "name", "")
)
def test_fragments(operation: Operation, removed: set[int], updated: set[int], changed: set[int]) -> None:
    assert removed_fragments(operation) == removed
    assert set(updated_by_id(operation)) == updated
    assert changed_fragments(operation) == changed


def test_rows_whose_columns_changed_in_place() -> None:
    both = (fragment(1), fragment(2))
    columns = Update(updated_fragments=both, update_mode=UpdateMode.REWRITE_COLUMNS, updated_fragment_offsets={1: SOME})
    assert patched_offsets(columns) == {1: RowSet.of([1, 3]), 2: None}
    assert patched_offsets(replace(columns, update_mode=UpdateMode.REWRITE_ROWS)) == {}
    assert patched_offsets(DataReplacement(replacements=REPLACED)) == {4: None, 5: None}
    assert patched_offsets(Delete(updated_fragments=both)) == {}


def test_fields() -> None:
    assert replaced_fields(DataReplacement(replacements=REPLACED)) == {4: {0, 1}, 5: {0, 1}}
    assert dropped_fields([0, 1, 7], SCHEMA) == {7}


def test_coverage_that_an_index_does_not_say() -> None:
    assert covered_fragments(index()) == {0, 1}
    assert covered_fragments(index(fragment_bitmap=None)) is None


def test_keys_of_settings() -> None:
    update = UpdateConfig(
        config_updates=MapUpdate(entries={"a": "1", "b": None}),
        table_metadata_updates=MapUpdate(entries={"a": "2"}, replace=True),
        schema_metadata_updates=MapUpdate(entries={"c": "3"}),
    )
    assert changed_config_keys(update) == {("config", "a"), ("config", "b"), ("table", "a"), ("table", "*")}
    assert changed_config_keys(UpdateConfig()) == frozenset()
