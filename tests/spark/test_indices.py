"""Indices on Spark: the content that the local engine writes; tasks that die or run twice spoil nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.unit.indices.btree.tables import tiny

import tablewright as tw
from tablewright.errors import WorkerLost
from tablewright.format.naming import index_part_name
from tablewright.indices.btree.sorting import run_sort
from tablewright.indices.files import open_index_file
from tablewright.indices.key_sets import build as key_sets
from tablewright.indices.zones import build as zones
from tablewright.operations.compact.indices import remap_index

QUESTIONS = {
    "BTREE": ("n", ["n = 7", "n > 40 and n < 60", "n is null", "n in (1, 2, 99)"]),
    "BITMAP": ("c", ["c = 'c3'", "c is null", "c in ('c1', 'x')"]),
    "LABEL_LIST": ("l", ["array_has(l, 'l1')", "array_has_any(l, ['l1', 'l2'])"]),
    "ZONEMAP": ("z", ["z = 7", "z > 40 and z < 60"]),
    "BLOOMFILTER": ("b", ["b = 7", "b in (1, 2, 99)"]),
    "NGRAM": ("s", ["contains(s, 'ord1')", "contains(s, 'word2')"]),
}
KIND = pytest.mark.parametrize("kind", QUESTIONS)
Task = Callable[[Any, Any], Any]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Budgets so small that each kind runs all its stages, with files between them, for some hundred rows."""
    for name, value in {"_TASK_BYTES_MIN": 400, "_RUN_BYTES": 400, "_PAIRS_MAX": 40, "_INLINE_BYTES": 0}.items():
        monkeypatch.setattr(key_sets, name, value)
    monkeypatch.setattr(zones, "_TASK_BYTES", 1)
    with tiny():
        yield


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    numbers = pa.array([None if i % 11 == 5 else (i * 37) % 100 for i in ids], pa.int64())
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            **dict.fromkeys("nzb", numbers),
            "c": pa.array([None if i % 13 == 5 else f"c{i % 7}" for i in ids]),
            "s": pa.array([None if i % 13 == 5 else f"some word{i % 20}" for i in ids]),
            "l": pa.array([None if i % 17 == 5 else [f"l{i % 4}", f"m{i % 3}"] for i in ids]),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Four fragments of sixty rows, some of them deleted."""
    made = tw.write_dataset(
        rows(0, 240), tmp_path / "t.lance", max_rows_per_file=60, enable_stable_row_ids=request.param, engine="local"
    )
    made.delete("id % 10 = 3")
    return str(made.uri)


def content(uri: str, name: str) -> list[Any]:
    """What the files of an index say."""
    dataset = tw.dataset(uri)
    (index,) = [index for index in dataset._snapshot.manifest.indices if index.name == name]
    store, directory = dataset._snapshot.index_place(index)
    found = []
    for file in sorted(index.files, key=lambda file: file.path):
        reader = open_index_file(store, directory, file.path)
        found.append((file.path, [batch.to_pydict() for batch in reader.read(0, reader.num_rows, 1 << 16)]))
    return found


def check(uri: str, kind: str, engine: Any = None) -> None:
    """The index answers as a flat scan does, to us and to pylance, here and as a DataFrame."""
    ours, theirs = tw.dataset(uri), lance.dataset(uri)
    for condition in QUESTIONS[kind][1]:
        flat = theirs.scanner(columns=["id"], filter=condition, use_scalar_index=False).to_table()["id"].to_pylist()
        assert sorted(ours.to_table(columns=["id"], filter=condition)["id"].to_pylist()) == sorted(flat), condition
        assert sorted(theirs.to_table(columns=["id"], filter=condition)["id"].to_pylist()) == sorted(flat), condition
        if engine is not None:
            frame = ours.to_spark(engine, columns=["id"], filter=condition)
            assert sorted(row.id for row in frame.collect()) == sorted(flat), condition


def spare(uri: str) -> set[str]:
    paths = [path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def dangling(uri: str) -> set[str]:
    """Directories of indices that no version names."""
    dataset = tw.dataset(uri)
    versions = [dataset.checkout_version(each["version"])._snapshot for each in dataset.versions()]
    named = {str(index.uuid) for snapshot in versions for index in snapshot.manifest.indices}
    return {path.name for path in Path(uri, "_indices").iterdir()} - named if Path(uri, "_indices").exists() else set()


@KIND
def test_spark_writes_the_index_that_the_local_engine_writes(spark: Any, uri: str, kind: str, small: Any) -> None:
    column, _ = QUESTIONS[kind]
    copy = shutil.copytree(uri, f"{uri}-copy")
    stages: list[str] = []
    tw.dataset(uri, engine=spark).create_scalar_index(
        column, kind, progress_callback=lambda progress: stages.append(progress.stage)
    )
    tw.dataset(copy, engine="local").create_scalar_index(column, kind)
    assert set(stages) >= ({"sort", "merge"} if kind == "BTREE" else set()) and len(set(stages)) > 1
    assert content(uri, f"{column}_idx") == content(copy, f"{column}_idx")
    check(uri, kind, spark if kind in ("BTREE", "ZONEMAP") else None)
    assert not spare(uri) and not dangling(uri)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
def test_indices_catch_up_and_pass_a_compaction_on_spark(spark: Any, uri: str, kind: str, small: Any) -> None:
    column, _ = QUESTIONS[kind]
    dataset = tw.dataset(uri, engine=spark)
    dataset.create_scalar_index(column, kind)
    dataset.insert(rows(240, 300))
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats(f"{column}_idx")["num_unindexed_rows"] == 0
    check(uri, kind)
    dataset.delete("id % 9 = 1")
    dataset.optimize.compact_files(target_rows_per_fragment=140)
    assert dataset.stats.index_stats(f"{column}_idx")["num_unindexed_rows"] == 0
    check(uri, kind)
    assert not spare(uri) and not dangling(uri)


# ----------------------------------------------------------------------------------------------- tasks that go wrong
def twice(task_function: Task) -> Task:
    def run(task: Any, world: Any) -> Any:
        task_function(task, world)
        return task_function(task, world)

    return run


def dying(task_function: Task, mark: Path) -> Task:
    """A task that writes its files; the first worker that does is killed."""
    place = str(mark)

    def run(task: Any, world: Any) -> Any:
        import os
        import signal

        result = task_function(task, world)
        try:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
        return result

    return run


def by_value(function: Task) -> Task:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return function


def test_tasks_of_a_build_that_run_twice(spark: Any, uri: str, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(uri, f"{uri}-copy")
    tw.dataset(copy, engine="local").create_scalar_index("n", "BTREE")
    monkeypatch.setattr(sys.modules["tablewright.indices.btree.build"], "run_sort", by_value(twice(run_sort)))
    tw.dataset(uri, engine=spark).create_scalar_index("n", "BTREE")
    assert content(uri, "n_idx") == content(copy, "n_idx")
    assert not spare(uri) and not dangling(uri)


def test_a_part_that_comes_after_the_commit_goes_with_cleanup(uri: str) -> None:
    dataset = tw.dataset(uri, engine="local")
    dataset.create_scalar_index("n", "BTREE")
    (index,) = dataset._snapshot.manifest.indices
    late = Path(uri, "_indices", str(index.uuid), index_part_name(index.uuid))
    late.write_bytes(b"late")
    dataset.cleanup_old_versions()
    assert late.exists(), "it may belong to a build that is under way"
    dataset.cleanup_old_versions(delete_unverified=True)
    assert not late.exists() and not spare(uri)
    check(uri, "BTREE")


def test_a_worker_of_a_build_that_is_killed(
    spark: Any, uri: str, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = tmp_path / "killed"
    module = sys.modules["tablewright.indices.btree.build"]
    monkeypatch.setattr(module, "run_sort", by_value(dying(run_sort, dead)))
    before = tw.dataset(uri).version
    with pytest.raises(WorkerLost, match="the Python worker of a task died"):
        tw.dataset(uri, engine=spark).create_scalar_index("n", "BTREE")
    assert dead.exists()
    assert tw.dataset(uri).version == before and not tw.dataset(uri).list_indices()
    assert not spare(uri) and not dangling(uri)
    tw.dataset(uri, engine=spark).create_scalar_index("n", "BTREE")
    check(uri, "BTREE")
    assert not spare(uri) and not dangling(uri)


@pytest.fixture
def indexed(tmp_path: Path) -> str:
    """Fragments with addresses in a BTREE, to be compacted."""
    made = tw.write_dataset(rows(0, 240), tmp_path / "i.lance", max_rows_per_file=60, engine="local")
    made.create_scalar_index("n", "BTREE")
    made.delete("id % 10 = 3")
    return str(made.uri)


def test_a_remap_that_runs_twice(spark: Any, indexed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run has a directory of its own; that of the one whose answer does not count is left to cleanup."""
    monkeypatch.setattr("tablewright.jobs.remap.remap_index", by_value(twice(remap_index)))
    dataset = tw.dataset(indexed, engine=spark)
    dataset.optimize.compact_files(target_rows_per_fragment=140)
    assert dataset.stats.index_stats("n_idx")["num_unindexed_rows"] == 0
    check(indexed, "BTREE")
    assert len(dangling(indexed)) == 1
    dataset.cleanup_old_versions(delete_unverified=True)
    assert not dangling(indexed) and not spare(indexed)
    check(indexed, "BTREE")


def test_a_worker_of_a_remap_that_is_killed(
    spark: Any, indexed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = tmp_path / "killed"
    monkeypatch.setattr("tablewright.jobs.remap.remap_index", by_value(dying(remap_index, dead)))
    before = lance.dataset(indexed).to_table(with_row_address=True)
    with pytest.raises(WorkerLost, match="the Python worker of a task died"):
        tw.dataset(indexed, engine=spark).optimize.compact_files(target_rows_per_fragment=140)
    assert dead.exists() and lance.dataset(indexed).to_table(with_row_address=True).equals(before)
    check(indexed, "BTREE")
    assert not spare(indexed) and not dangling(indexed)
    tw.dataset(indexed, engine=spark).optimize.compact_files(target_rows_per_fragment=140)
    check(indexed, "BTREE")
    assert not spare(indexed) and not dangling(indexed)
