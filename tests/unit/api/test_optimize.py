"""``ds.optimize`` and ``tablewright.optimize``."""

from __future__ import annotations

import pickle

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult


def table(name: str, **options: object) -> tw.LanceDataset:
    return tw.write_dataset({"id": range(40)}, f"memory://optimize-{name}", max_rows_per_file=10, **options)  # type: ignore[arg-type]


def test_compact_files_moves_the_dataset() -> None:
    dataset = table("moves")
    metrics = dataset.optimize.compact_files()
    assert (metrics.fragments_removed, metrics.fragments_added) == (4, 1)
    assert (metrics.files_removed, metrics.files_added, metrics.rows) == (4, 1, 40)
    assert metrics.bytes_read > 0 and metrics.bytes_written > 0 and metrics.seconds > 0
    assert (dataset.version, dataset.to_table()["id"].to_pylist()) == (3, list(range(40)))


def test_defaults_come_from_the_table_config() -> None:
    dataset = table("config")
    dataset.update_config({"lance.compaction.target_rows_per_fragment": "20"})
    assert dataset.optimize.compact_files().fragments_added == 2


@pytest.mark.parametrize("stable", [False, True])
def test_steps_survive_pickle_and_json(stable: bool) -> None:
    dataset = table(f"steps-{stable}", enable_stable_row_ids=stable)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    assert CompactionPlan.from_json(plan.json()) == pickle.loads(pickle.dumps(plan)) == plan
    tasks = [CompactionTask.from_json(task.json()) for task in plan.tasks]
    assert tasks == plan.tasks and plan.num_tasks() == 2
    results = [task.execute(dataset) for task in tasks]
    assert [RewriteResult.from_json(result.json()) for result in results] == results
    assert pickle.loads(pickle.dumps(results)) == results
    assert dataset.version == 1
    assert Compaction.commit(dataset, results).fragments_added == 2
    assert dataset.to_table()["id"].to_pylist() == list(range(40))
    assert "fragments=[0, 1]" in repr(tasks[0]) and "rows_of_new_fragments=[20]" in repr(results[0])


def test_execute_is_compact_files() -> None:
    assert Compaction.execute(table("execute"), {}).fragments_added == 1


def test_bad_requests_change_nothing() -> None:
    dataset = table("bad")
    with pytest.raises(InvalidRequest, match="Invalid compaction option"):
        Compaction.plan(dataset, {"nope": 1})
    with pytest.raises(InvalidRequest, match="a dict"):
        Compaction.plan(dataset, [1])  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeature, match="does not begin to mix versions"):
        dataset.optimize.compact_files(data_storage_version="2.0")
    with pytest.raises(InvalidRequest, match="takes results"):
        Compaction.commit(dataset, [1])  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match="no JSON text"):
        CompactionTask.from_json("{")
    with pytest.raises(InvalidRequest, match="no JSON text"):
        RewriteResult.from_json("{}")
    assert dataset.version == 1


def test_explain_and_analyze() -> None:
    dataset = table("words")
    prepared = dataset.optimize.prepare_compact_files()
    assert "engine=" in prepared.explain_plan() and dataset.version == 1
    assert "fragments_removed=4" in prepared.analyze_plan() and dataset.version == 3
    assert "nothing to do" in prepared.explain_plan()
