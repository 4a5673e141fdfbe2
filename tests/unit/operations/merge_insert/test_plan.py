"""A merge as it is planned: which columns change, what is read, what it prints."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.operations.merge_insert.clauses import Clauses, InvalidMerge
from tablewright.operations.merge_insert.plan import MergePlan, plan_merge
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"k": pa.int64(), "x": pa.int32(), "st": pa.struct({"a": pa.int8(), "b": pa.string()})})
K, X, ST, A, B = range(5)


@pytest.fixture(scope="module")
def uri() -> str:
    tw.write_dataset(SCHEMA.empty_table(), "memory://merge-plan")
    tw.dataset("memory://merge-plan").insert({"k": [1], "x": [2], "st": [{"a": 3, "b": "c"}]})
    return "memory://merge-plan"


def planned(uri: str, *columns: str, on: Any = "k", **clauses: Any) -> MergePlan:
    incoming = pa.schema([SCHEMA.field(name) for name in columns or SCHEMA.names])
    return plan_merge(open_snapshot(World(open_store(uri))), Clauses(**clauses), on, incoming, 0)


@pytest.mark.parametrize(
    ("columns", "clauses", "changed", "ids"),
    [
        ((), {"when_matched": "update"}, ("x", "st"), (X, ST, A, B)),
        (("k", "st"), {"when_matched": "update"}, ("st",), (ST, A, B)),
        (("k",), {"when_matched": "update"}, (), ()),
        ((), {"insert": True}, (), ()),
        ((), {"when_matched": "delete"}, (), ()),
    ],
    ids=str,
)
def test_columns_that_change(
    uri: str, columns: tuple[str, ...], clauses: dict[str, Any], changed: tuple[str, ...], ids: tuple[int, ...]
) -> None:
    plan = planned(uri, *columns, **clauses)
    assert (plan.changed_columns, plan.changed_ids) == (changed, ids)
    assert plan.version == 2


@pytest.mark.parametrize(
    ("clauses", "first", "rest", "reads"),
    [
        ({"insert": True}, ["k"], [], {K}),
        ({"when_matched": "update", "condition": "source.x > target.x"}, ["k"], ["x"], {K, X}),
        ({"when_matched": "update", "condition": "target.st.a > 1"}, ["k"], ["st"], {K, ST, A, B}),
        ({"delete_by_source": True}, ["k"], [], None),
        ({"delete_by_source": True, "by_source_condition": "x > 1"}, ["k", "x"], [], None),
    ],
    ids=str,
)
def test_keys_are_read_first(
    uri: str, clauses: dict[str, Any], first: list[str], rest: list[str], reads: set[int] | None
) -> None:
    plan = planned(uri, **clauses)
    assert [list(layout.names) for layout in (plan.scan.reads.first, plan.scan.reads.rest)] == [first, rest]
    assert plan.reads == reads
    assert not plan.looks_at_place


def test_a_condition_on_the_place(uri: str) -> None:
    assert planned(uri, when_matched="update", condition="target._rowoffset > 1").looks_at_place
    assert planned(uri, delete_by_source=True, by_source_condition="_rowoffset > 1").looks_at_place


def test_it_prints(uri: str) -> None:
    text = str(planned(uri, "k", "x", when_matched="update", condition="source.x > target.x", dedupe="last"))
    assert text.splitlines() == [
        "MergeInsert: on=[k], when_matched=UpdateIf(source.x > target.x), when_not_matched=DoNothing, "
        "when_not_matched_by_source=Keep, write_mode=auto",
        "  source: partial, columns=[k, x], dedupe=last",
        "  condition: source.x > target.x; reads target [x] of matched rows only",
        "  LanceRead: uri=memory://merge-plan, version=2, projection=[k], num_fragments=1, rows=1",
    ]


def test_columns_in_place_need_a_column(uri: str) -> None:
    with pytest.raises(InvalidMerge, match="no column besides the join key"):
        planned(uri, "k", when_matched="update", write_mode="rewrite_columns")
