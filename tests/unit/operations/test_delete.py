"""Delete: the plan, its tasks, and what a refused one leaves."""

from __future__ import annotations

import pickle
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.soon import assert_soon

import tablewright as tw
from tablewright.errors import InvalidRequest, StorageError
from tablewright.format.row_set import RowSet
from tablewright.operations.delete import finish_delete, matching_offsets, plan_delete, run_delete_task
from tablewright.reading.match import live_rows
from tablewright.testing.faulty_store import FailBefore, Fault, FaultyStore, LoseReply, on_call
from tablewright.testing.worlds import seeded_world


def numbers(rows: int, start: int = 0) -> pa.Table:
    ids = range(start, start + rows)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [None if i % 5 == 2 else f"row {i}" for i in ids]})


@pytest.fixture(params=["addresses", "stable"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tw.LanceDataset:
    return tw.write_dataset(
        numbers(40), tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=request.param == "stable"
    )


def ids(dataset: Any) -> list[int]:
    return list(dataset.to_table(columns=["id"]).column("id").to_pylist())


@pytest.mark.slow
def test_thousands_of_fragments_are_quick(tmp_path: Path) -> None:
    dataset = tw.write_dataset(numbers(3000), tmp_path / "t", max_rows_per_file=2)
    started = time.process_time()
    assert dataset.delete("id % 6 = 0") == {"num_deleted_rows": 500}
    assert time.process_time() - started < 10
    assert ids(dataset) == [i for i in range(3000) if i % 6]


class TestSteps:
    def test_the_plan_prints_and_reads_the_predicates_columns_only(self, table: tw.LanceDataset) -> None:
        plan = plan_delete(table._snapshot, "id > 5")
        assert "predicate=id > 5" in str(plan)
        assert "projection=[id]" in str(plan)
        assert plan.reads == frozenset([0])

    def test_tasks_travel_and_results_are_small(self, table: tw.LanceDataset) -> None:
        plan = plan_delete(table._snapshot, "id in (3, 17, 18)")
        tasks = pickle.loads(pickle.dumps(plan.tasks))
        results = pickle.loads(pickle.dumps([run_delete_task(task, table._world) for task in tasks]))
        transaction, affected = finish_delete(plan, results, {}, table._world.ids.uuid())
        assert affected.offsets == {0: RowSet.of([3]), 1: RowSet.of([7, 8])}
        assert transaction.read_version == table.version
        assert all((Path(table.uri) / path).exists() for result in results for path in result.paths)

    def test_everything_needs_no_tasks(self, table: tw.LanceDataset) -> None:
        table.delete("id = 12")
        plan = plan_delete(table._snapshot, "true")
        assert plan.tasks == ()
        everything = live_rows(table._snapshot, plan.fragments)
        _, affected = finish_delete(plan, [], everything, table._world.ids.uuid())
        assert len(affected) == 39
        assert 2 not in affected.offsets[1]

    @pytest.mark.parametrize(
        ("predicate", "reads"),
        [("s = 'a'", {1}), ("_rowid = 1", set()), ("_rowid = id", {0}), ("_row_created_at_version = 1", None)],
    )
    def test_what_the_predicate_depends_on(
        self, table: tw.LanceDataset, predicate: str, reads: set[int] | None
    ) -> None:
        assert plan_delete(table._snapshot, predicate).reads == (None if reads is None else frozenset(reads))

    def test_offsets_of_one_fragment(self, table: tw.LanceDataset) -> None:
        table.delete("id = 12")
        fragment = table._snapshot.fragments[1]
        assert matching_offsets(table._snapshot, fragment, "id < 15").tolist() == [0, 1, 3, 4]
        assert matching_offsets(table._snapshot, fragment, "_rowoffset = 11").tolist() == [1]
        assert matching_offsets(table._snapshot, fragment, "id > 99").tolist() == []
        assert matching_offsets(table._snapshot, fragment, "true").tolist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]

    @pytest.mark.parametrize("fault", [FailBefore(), LoseReply()])
    def test_a_task_that_fails_leaves_no_file(self, fault: Fault) -> None:
        dataset = tw.write_dataset(numbers(40), f"memory://{uuid.uuid4()}", max_rows_per_file=10)
        store = dataset._world.store
        before = {found.path for found in store.list("")}
        faulty = FaultyStore(store, on_call(fault, method="put", path="_deletions/*", nth=2))
        (task,) = plan_delete(dataset._snapshot, "id % 2 = 0").tasks
        with pytest.raises(StorageError):
            run_delete_task(task, seeded_world(faulty))
        assert_soon(lambda: {found.path for found in store.list("")} == before)  # whoever wrote a file removes it


@pytest.mark.parametrize("wrong", ["id", "nope = 1", "", "id = 'abc'", "sum(id) > 1", "null", "id = 1, 2"])
def test_a_bad_predicate_changes_nothing(table: tw.LanceDataset, wrong: str) -> None:
    before = sorted(Path(table.uri).rglob("*"))
    with pytest.raises(InvalidRequest):
        table.delete(wrong)
    assert sorted(Path(table.uri).rglob("*")) == before


def test_a_predicate_that_fails_on_a_row_changes_nothing(table: tw.LanceDataset) -> None:
    before = sorted(Path(table.uri).rglob("*"))
    with pytest.raises(InvalidRequest, match="Divide by zero"):
        table.delete("10 / (id - 3) > 1")
    assert sorted(Path(table.uri).rglob("*")) == before
