"""What becomes of every row, for each combination of clauses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.decide import decide_merge
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs
from tablewright.operations.merge_insert.plan import plan_merge
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"k": pa.int64(), "x": pa.int64()})
SOURCE_ROWS = 6


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    tw.write_dataset({"k": range(20), "x": range(20)}, "memory://decide-merge", max_rows_per_file=10)
    return open_snapshot(World(open_store("memory://decide-merge")))


def pairs(*given: tuple[int, int]) -> Pairs:
    return Pairs(np.array([each[0] for each in given], np.uint32), np.array([each[1] for each in given], np.int64))


MATCHES = {
    0: FragmentMatches(
        fragment_id=0, pairs=pairs((2, 0), (5, 3)), passed_over=pairs((7, 1)), unmatched=(RowSet.of([0, 9]),)
    ),
    1: FragmentMatches(fragment_id=1, pairs=Pairs(), unmatched=(RowSet.of([]),)),
}
"""Source rows 0 and 3 match, row 1 matches without satisfying the condition, rows 2, 4 and 5 match nothing."""


@pytest.mark.parametrize(
    ("given", "updated", "deleted", "found", "inserted"),
    [
        ({"when_matched": "update"}, {0: [2, 5]}, {0: [0, 9]}, {}, []),
        ({"when_matched": "update", "insert": True}, {0: [2, 5]}, {0: [0, 9]}, {0: [7]}, [2, 4]),
        ({"insert": True}, {}, {0: [0, 9]}, {0: [2, 5]}, [2, 4]),
        ({"when_matched": "delete"}, {}, {0: [0, 2, 5, 9]}, {}, []),
        ({"when_matched": "delete", "insert": True}, {}, {0: [0, 2, 5, 9]}, {0: [2, 5]}, [2, 4]),
        ({"delete_by_source": True}, {}, {0: [0, 9]}, {}, []),
    ],
    ids=str,
)
def test_every_row(
    snapshot: Snapshot,
    given: dict[str, Any],
    updated: dict[int, list[int]],
    deleted: dict[int, list[int]],
    found: dict[int, list[int]],
    inserted: list[int],
) -> None:
    plan = plan_merge(snapshot, Clauses(**given), "k", SCHEMA, 0)
    actions = decide_merge(plan, MATCHES, SOURCE_ROWS, np.array([5]))
    assert {id: each.offsets.tolist() for id, each in actions.updated.items()} == updated
    assert {id: list(each) for id, each in actions.deleted.items()} == deleted
    assert {id: list(each) for id, each in actions.found.items()} == found
    assert actions.inserted.tolist() == inserted
    assert actions.num_updated_rows == sum(map(len, updated.values()))
    assert actions.num_deleted_rows == sum(map(len, deleted.values()))
    assert actions.num_inserted_rows == len(inserted)
    assert actions.touched == sorted({*updated, *deleted})
    assert [choice.fragment_id for choice in actions.decision.choices] == list(updated)


def test_nobody_asked_for_rows_without_a_source_row(snapshot: Snapshot) -> None:
    plan = plan_merge(snapshot, Clauses(when_matched="delete"), "k", SCHEMA, 0)
    matches = {1: FragmentMatches(fragment_id=1, pairs=pairs((4, 0)))}
    assert decide_merge(plan, matches, 1, np.array([], np.int64)).deleted == {1: RowSet.of([4])}


@pytest.mark.parametrize(("columns", "mode"), [(["k", "x"], "rewrite_columns"), (["k"], "rewrite_rows")])
def test_without_a_column_that_changes_rows_move(snapshot: Snapshot, columns: list[str], mode: str) -> None:
    incoming = pa.schema([SCHEMA.field(name) for name in columns])
    plan = plan_merge(snapshot, Clauses(when_matched="update"), "k", incoming, 0)
    many = {0: FragmentMatches(fragment_id=0, pairs=pairs(*((n, n) for n in range(9))))}
    (choice,) = decide_merge(plan, many, 9, np.array([], np.int64)).decision.choices
    assert (choice.mode, choice.matched_rows) == (mode, 9)
