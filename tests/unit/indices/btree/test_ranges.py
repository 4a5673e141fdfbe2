"""Ranges of a large build: of about equal size, also where most rows share a value, and each reads little of a run."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import plan_of, table_of

from tablewright.indices.btree import sorting
from tablewright.indices.btree.ranges import RangeTask, range_tasks, run_range
from tablewright.indices.btree.sorting import SortResult, run_sort, sort_tasks
from tablewright.indices.files import read_index_file
from tablewright.snapshot import Snapshot

VALUES = {
    "different": pa.array(np.random.default_rng(0).permutation(4000)),
    "one value": pa.array([7] * 4000),
    "nulls": pa.array([None] * 3000 + list(range(1000)), pa.int64()),
    "long text": pa.array(["x" * 300 + str(at % 50) for at in range(4000)]),
}


@pytest.fixture(params=VALUES)
def sorted_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Snapshot, list[SortResult]]:
    """Four fragments as runs of their own."""
    monkeypatch.setattr(sorting, "SAMPLE_ROWS", 16)
    snapshot = table_of(VALUES[request.param], 1000)
    tasks, _ = sort_tasks(plan_of(snapshot), 1)
    return snapshot, [run_sort(task, snapshot.world) for task in pickle.loads(pickle.dumps(tasks))]


def tasks_of(snapshot: Snapshot, results: list[SortResult]) -> list[RangeTask]:
    directory = results[0].paths[0].rpartition("/")[0]
    kind = snapshot.schema.to_arrow().field("c").type
    return range_tasks(directory, kind, [file for result in results for file in result.files], 5)


def test_ranges_are_about_equal_and_together_everything(sorted_runs: tuple[Snapshot, list[SortResult]]) -> None:
    snapshot, results = sorted_runs
    tasks = pickle.loads(pickle.dumps(tasks_of(snapshot, results)))
    found = [run_range(task, snapshot.world) for task in tasks]
    sizes = [result.rows_read for result in found]
    assert sum(sizes) == 4000
    assert max(sizes) <= 1000
    assert [result.file.rows for result in found if result.file] == sizes


def test_a_range_reads_few_rows_more_than_it_has(sorted_runs: tuple[Snapshot, list[SortResult]]) -> None:
    snapshot, results = sorted_runs
    for task in tasks_of(snapshot, results):
        assert sum(part.stop - part.start for part in task.slices) <= 800 + 4 * 3 * 16


def test_text_that_differs_after_what_samples_keep_is_still_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SAMPLE_ROWS", 16)
    monkeypatch.setattr(sorting, "SAMPLE_BYTES_MAX", 9)
    texts = [f"{'a' if at % 3 else 'b' * 9}{at % 7}" for at in range(900)]
    snapshot = table_of(pa.array(texts), 300)
    results = [run_sort(task, snapshot.world) for task in sort_tasks(plan_of(snapshot), 1)[0]]
    found = [run_range(task, snapshot.world) for task in tasks_of(snapshot, results)]
    store, directory = snapshot.world.store, results[0].paths[0].rpartition("/")[0]
    rows = [read_index_file(store, directory, result.file.name).rows for result in found if result.file]
    assert pa.concat_tables(rows)["values"].to_pylist() == sorted(texts)
    assert len(rows) > 2


def test_a_large_fragment_becomes_several_runs() -> None:
    snapshot = table_of(pa.array(range(5000)), 5000)
    (task,), nbytes = sort_tasks(plan_of(snapshot), 1 << 10)
    result = run_sort(task, snapshot.world)
    assert nbytes == 5000 * 16
    assert sum(file.rows for file in result.files) == result.rows_read == 5000
    assert len(set(result.paths)) == len(result.files)


def test_tasks_hold_neighbouring_fragments_of_about_the_same_bytes() -> None:
    snapshot = table_of(pa.array(range(100)), 10)
    tasks, nbytes = sort_tasks(plan_of(snapshot), 320)
    assert [[fragment.id for fragment in task.plan.fragments] for task in tasks] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
        [8, 9],
    ]
    assert nbytes == 1600
