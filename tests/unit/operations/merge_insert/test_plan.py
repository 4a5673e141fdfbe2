"""What the clauses and schemas of a merge decide, before a row is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.operations.merge_insert.plans import TABLE, columns, planned
from tests.unit.operations.tables import COLUMNS

from tablewright.errors import InvalidRequest, SchemaMismatch, UnsupportedFeature
from tablewright.operations.merge_insert.clauses import InvalidMerge

DELETES = {"upsert": False, "when_matched": "delete"}


@pytest.mark.parametrize(
    ("given", "first", "rest", "changed", "reads"),
    [
        ({}, ("id",), (), ("x", "s"), {0}),
        ({"on": ["id", "s"]}, ("id", "s"), (), ("x",), {0, 2}),
        ({"source": columns("x", "id")}, ("id",), (), ("x",), {0}),
        ({"source": columns("id"), "upsert": False, "insert": True}, ("id",), (), (), {0}),
        ({"condition": "source.x > target.x"}, ("id",), ("x",), ("x", "s"), {0, 1}),
        ({"condition": "source.x > 3"}, ("id",), (), ("x", "s"), {0}),
        ({"condition": "target._rowid > 3"}, ("id",), ("_rowid",), ("x", "s"), {0}),
        ({"condition": "target._rowoffset > 3"}, ("id",), ("_rowoffset",), ("x", "s"), None),
        ({"delete_by_source": True}, ("id",), (), ("x", "s"), None),
        ({"delete_by_source": True, "by_source_condition": "s = 'a'"}, ("id", "s"), (), ("x", "s"), None),
        ({**DELETES, "source": columns("id")}, ("id",), (), (), {0}),
    ],
)
def test_what_is_read_and_what_changes(
    given: dict[str, Any], first: tuple[str, ...], rest: tuple[str, ...], changed: tuple[str, ...], reads: Any
) -> None:
    plan = planned(**given)
    assert plan.scan.reads.first.names == first and plan.scan.reads.rest.names == rest
    assert plan.changed_columns == changed
    assert plan.reads == reads
    assert plan.scan.fragments is TABLE.fragments and plan.scan.first_rows == (0, 100, 200)
    assert (plan.version, plan.file_version) == (5, "2.2")


def test_ids_of_what_changes_include_all_below() -> None:
    assert planned().changed_ids == (1, 2)
    assert planned(source=columns("id", "s")).changed_ids == (2,)


@pytest.mark.parametrize(("condition", "looks"), [("target._rowoffset > 3", True), ("target.x > 3", False)])
def test_whether_it_looks_at_places(condition: str, looks: bool) -> None:
    assert planned(condition=condition).looks_at_place == looks


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"on": "no"}, InvalidRequest, "'no' does not exist"),
        ({"on": []}, InvalidRequest, "requires join keys"),
        ({"source": columns("x")}, InvalidMerge, "No field named id"),
        ({"source": COLUMNS.append(pa.field("y", pa.int8()))}, SchemaMismatch, r"unexpected=\[y\]"),
        ({"source": pa.schema({"id": pa.int64(), "x": pa.int64()})}, SchemaMismatch, "`x` should have type int32"),
        ({"condition": "source.y > 1"}, InvalidRequest, "y"),
        ({"delete_by_source": True, "by_source_condition": "y > 1"}, InvalidRequest, "y"),
        ({"source": columns("id"), "write_mode": "rewrite_columns"}, InvalidMerge, "no column besides the join key"),
        ({"data_storage_version": "2.1"}, UnsupportedFeature, "does not begin to mix versions"),
        ({"upsert": False}, InvalidRequest, "not configured to change the data"),
    ],
)
def test_what_can_not_work_fails_here(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        planned(**given)


def test_it_explains_itself() -> None:
    lines = str(planned(source=columns("id", "x"), condition="source.x > target.x", dedupe="last")).splitlines()
    assert lines == [
        "MergeInsert: on=[id], when_matched=UpdateIf(source.x > target.x), when_not_matched=InsertAll, "
        "when_not_matched_by_source=Keep, write_mode=auto",
        "  source: partial, columns=[id, x], dedupe=last",
        "  condition: source.x > target.x; reads target [x] of matched rows only",
        f"  LanceRead: uri={TABLE.location.uri}, version=5, projection=[id], num_fragments=3, rows=250",
    ]
