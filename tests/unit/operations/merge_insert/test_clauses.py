"""Clauses of a merge: which go together, and what they say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.errors import InvalidRequest
from tablewright.operations.merge_insert.clauses import Clauses


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "not configured to change the data in any way"),
        ({"when_matched": "upsert"}, "when_matched must be one of nothing, update, delete, fail"),
        ({"insert": True, "condition": "source.x > 1"}, "needs when_matched_update_all"),
        ({"insert": True, "by_source_condition": "x > 1"}, "needs when_not_matched_by_source_delete"),
        ({"insert": 1}, "insert"),
        ({"insert": True, "dedupe": "any"}, 'dedupe must be "first", "last" or None'),
        ({"insert": True, "write_mode": "rows"}, "Invalid write_mode: rows"),
        ({"insert": True, "data_storage_version": "9.9"}, "Unknown data_storage_version"),
    ],
    ids=str,
)
def test_what_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidRequest, TypeError), match=words):
        Clauses(**given)


@pytest.mark.parametrize(
    ("given", "text", "depends", "writes"),
    [
        (
            {"insert": True},
            "DoNothing, when_not_matched=InsertAll, when_not_matched_by_source=Keep",
            True,
            "source rows",
        ),
        ({"when_matched": "delete"}, "Delete, when_not_matched=DoNothing", True, "deletion files"),
        ({"when_matched": "fail"}, "Fail,", True, "nothing"),
        ({"delete_by_source": True}, "when_not_matched_by_source=Delete", False, "deletion files"),
        ({"delete_by_source": True, "by_source_condition": "x > 1"}, "DeleteIf(x > 1)", False, "deletion files"),
        ({"when_matched": "update", "condition": "source.x > 1"}, "UpdateIf(source.x > 1)", True, "decided after"),
        ({"when_matched": "update", "write_mode": "rewrite_rows"}, "UpdateAll", True, "move to new fragments"),
        ({"when_matched": "update", "write_mode": "rewrite_columns"}, "UpdateAll", True, "change in place"),
    ],
    ids=str,
)
def test_in_words(given: dict[str, Any], text: str, depends: bool, writes: str) -> None:
    clauses = Clauses(**given)
    assert text in str(clauses)
    assert clauses.depends_on_keys is depends
    assert writes in clauses.writes
    assert clauses.updates is (given.get("when_matched") == "update")
    assert clauses.wants_columns is (given.get("write_mode") == "rewrite_columns")
