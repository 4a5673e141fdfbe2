"""What becomes of every row, once the matches are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.operations.merge_insert.plans import columns, planned

from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.decide import check_no_match, decide_merge
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs
from tablewright.operations.merge_insert.source.kept import keep
from tablewright.operations.rewrite.costs import REWRITE_COLUMNS, REWRITE_ROWS


def _pairs(pairs: dict[int, int]) -> Pairs:
    return Pairs(np.array(list(pairs), np.uint32), np.array(list(pairs.values()), np.int64))


def _matches(
    fragment_id: int, pairs: dict[int, int], passed_over: dict[int, int] | None = None, unmatched: Any = None
) -> FragmentMatches:
    return FragmentMatches(
        fragment_id=fragment_id,
        pairs=_pairs(pairs),
        passed_over=_pairs(passed_over or {}),
        unmatched=None if unmatched is None else np.array(unmatched, np.uint32),
    )


FOUND = {0: _matches(0, {3: 1, 7: 0}), 4: _matches(4, {9: 4})}
"""Source rows 0, 1 and 4 of six meet rows of two fragments."""

SOME = {0: _matches(0, {3: 1}, passed_over={7: 0})}
"""One pair satisfies the condition, the other does not."""

REST = {0: _matches(0, {3: 1}, unmatched=[2, 5]), 1: _matches(1, {}, unmatched=[8])}
"""Rows of two fragments that no source row matches."""

ONLY_DELETES = {"upsert": False, "when_matched": "delete"}
ONLY_INSERTS = {"upsert": False, "insert": True}
ONLY_BY_SOURCE = {"upsert": False, "delete_by_source": True}


@pytest.mark.parametrize(
    ("given", "matches", "updated", "deleted", "found", "inserted"),
    [
        ({}, FOUND, {0: [3, 7], 4: [9]}, {}, {}, [2, 3, 5]),
        ({"insert": False}, FOUND, {0: [3, 7], 4: [9]}, {}, {}, []),
        (ONLY_INSERTS, FOUND, {}, {}, {0: [3, 7], 4: [9]}, [2, 3, 5]),
        (ONLY_DELETES, FOUND, {}, {0: [3, 7], 4: [9]}, {}, []),
        ({**ONLY_DELETES, "insert": True}, FOUND, {}, {0: [3, 7], 4: [9]}, {0: [3, 7], 4: [9]}, [2, 3, 5]),
        ({"condition": "source.x > target.x"}, SOME, {0: [3]}, {}, {0: [7]}, [2, 3, 4, 5]),
        ({"delete_by_source": True}, REST, {0: [3]}, {0: [2, 5], 1: [8]}, {}, [0, 2, 3, 4, 5]),
        (ONLY_BY_SOURCE, REST, {}, {0: [2, 5], 1: [8]}, {}, []),
        ({**ONLY_BY_SOURCE, "when_matched": "delete"}, REST, {}, {0: [2, 3, 5], 1: [8]}, {}, []),
        ({}, {}, {}, {}, {}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_every_row(given: dict[str, Any], matches: Any, updated: Any, deleted: Any, found: Any, inserted: Any) -> None:
    actions = decide_merge(planned(**given), matches, 6, np.zeros(0, np.int64))
    assert {id: pairs.offsets.tolist() for id, pairs in actions.updated.items()} == updated
    assert {id: offsets.tolist() for id, offsets in actions.deleted.items()} == deleted
    assert {id: offsets.tolist() for id, offsets in actions.found.items()} == found
    assert actions.inserted.tolist() == inserted
    assert actions.num_updated_rows == sum(map(len, updated.values()))
    assert actions.num_deleted_rows == sum(map(len, deleted.values()))
    assert actions.num_inserted_rows == len(inserted)
    assert actions.touched == sorted({*updated, *deleted})
    assert [choice.fragment_id for choice in actions.decision.choices] == sorted(updated)


def test_dropped_source_rows_are_not_inserted() -> None:
    actions = decide_merge(planned(), FOUND, 6, np.array([2, 5]))
    assert actions.inserted.tolist() == [3]


@pytest.mark.parametrize(
    ("given", "modes"),
    [
        ({"source": columns("id", "x")}, [REWRITE_ROWS, REWRITE_COLUMNS]),
        ({"source": columns("id", "x"), "write_mode": REWRITE_ROWS}, [REWRITE_ROWS, REWRITE_ROWS]),
        ({"source": columns("id", "x"), "write_mode": REWRITE_COLUMNS}, [REWRITE_COLUMNS, REWRITE_COLUMNS]),
        ({"source": columns("id")}, [REWRITE_ROWS, REWRITE_ROWS]),  # no column changes: there is none to write
    ],
)
def test_rows_or_columns_for_each_fragment(given: dict[str, Any], modes: list[str]) -> None:
    matches = {0: _matches(0, {3: 0}), 4: _matches(4, {row: row + 1 for row in range(50)})}
    decision = decide_merge(planned(**given), matches, 60, np.zeros(0, np.int64)).decision
    assert [choice.mode for choice in decision.choices] == modes


def test_a_match_may_be_an_error() -> None:
    source = keep(pa.schema({"id": pa.int64()}), [pa.record_batch({"id": range(10, 16)})])
    plan = planned(upsert=False, when_matched="fail", insert=True, source=columns("id", "x", "s"))
    check_no_match(plan, {0: _matches(0, {})}, source)
    check_no_match(planned(), FOUND, source)
    with pytest.raises(InvalidMerge, match="found matching row with key values: id = 11"):
        check_no_match(plan, FOUND, source)
