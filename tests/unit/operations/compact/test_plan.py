"""Which fragments are rewritten together."""

from __future__ import annotations

from typing import Any

import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import plan_compaction


def planned(dataset: tw.LanceDataset, **options: Any) -> list[list[int]]:
    plan = plan_compaction(table_of(dataset).snapshot, CompactionOptions(**options))
    return [[fragment.id for fragment in task.fragments] for task in plan.tasks]


def table(fragments: int, rows: int, name: str) -> tw.LanceDataset:
    return tw.write_dataset({"id": range(fragments * rows)}, f"memory://{name}", max_rows_per_file=rows)


def test_a_run_is_cut_where_the_rest_reaches_the_target_too() -> None:
    dataset = table(5, 60, "plan-cut")
    assert planned(dataset, target_rows_per_fragment=100) == [[0, 1], [2, 3, 4]]
    assert planned(dataset, target_rows_per_fragment=120) == [[0, 1], [2, 3, 4]]
    assert planned(dataset, target_rows_per_fragment=60) == []
    assert planned(dataset) == [[0, 1, 2, 3, 4]]


def test_deletions_above_the_threshold_are_materialized_and_exactly_at_it_not() -> None:
    dataset = table(3, 100, "plan-deletions")
    dataset.delete("id < 10 or (id >= 100 and id < 111)")
    assert planned(dataset, target_rows_per_fragment=50) == [[1]]
    assert planned(dataset, target_rows_per_fragment=50, materialize_deletions=False) == []
    assert planned(dataset, target_rows_per_fragment=50, materialize_deletions_threshold=0) == [[0], [1]]


def test_an_excluded_fragment_ends_a_run() -> None:
    dataset = table(6, 10, "plan-excluded")
    assert planned(dataset, target_rows_per_fragment=20, excluded_fragment_ids=(2, 99)) == [[0, 1], [3, 4, 5]]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_source_fragments": 3}, [[0, 1]]),
        ({"max_source_fragments": 1}, []),
        ({"max_source_rows": 40}, [[0, 1], [2, 3]]),
        ({"max_source_bytes": 1}, []),
    ],
    ids=["fragments", "too few fragments", "rows", "bytes"],
)
def test_a_run_takes_whole_tasks_within_its_limits(limits: dict[str, int], expected: list[list[int]]) -> None:
    assert (
        planned(table(6, 10, f"plan-limit-{sorted(limits.items())}"), target_rows_per_fragment=20, **limits) == expected
    )


def test_columns_rewritten_in_place_are_reclaimed() -> None:
    values = [n / 7 for n in range(10_000)]
    dataset = tw.write_dataset({"id": range(10_000), "wide": values, "wider": values}, "memory://plan-columns")
    assert planned(dataset, target_rows_per_fragment=10) == []
    dataset.update({"wide": "wide + 0.5", "wider": "wide"}, write_mode="rewrite_columns")
    assert planned(dataset, target_rows_per_fragment=10) == [[0]]
    assert planned(dataset, target_rows_per_fragment=10, materialize_columns_threshold=1) == []


def test_a_single_small_fragment_and_an_empty_table_stay() -> None:
    assert planned(table(1, 10, "plan-single")) == []
    dataset = table(2, 10, "plan-empty")
    dataset.delete("true")
    assert planned(dataset) == []


def test_the_plan_explains_itself() -> None:
    dataset = table(2, 10, "plan-words")
    plan = plan_compaction(table_of(dataset).snapshot, CompactionOptions())
    assert "fragments=2 of 2" in str(plan) and "because=small fragments" in str(plan)
    assert "nothing to do" in str(
        plan_compaction(table_of(dataset).snapshot, CompactionOptions(target_rows_per_fragment=5))
    )
