"""Compaction on Spark: the table that the local engine makes; tasks that fail, die or run twice spoil nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced

import tablewright as tw
from tablewright.errors import CompactionIncomplete, WorkerLost
from tablewright.operations.compact.task import rewrite_group

OPTIONS = {"target_rows_per_fragment": 18}
Run = Callable[[Any, Any], Any]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Eight fragments of ten rows: four groups."""
    data = pa.table({"id": range(80), "v": [f"x{n}" for n in range(80)]})
    made = tw.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=10, enable_stable_row_ids=True)
    made.delete("id % 20 = 7")
    return str(made.uri)


def rows(uri: str) -> pa.Table:
    """As both libraries read them."""
    columns = ["id", "v", "_row_created_at_version", "_row_last_updated_at_version"]
    ours = tw.dataset(uri).to_table(columns=columns, with_row_id=True)
    theirs = lance.dataset(uri)
    theirs.validate()
    assert theirs.to_table(columns=columns, with_row_id=True).equals(ours)
    return ours


def shape(uri: str) -> list[tuple[int, int, int]]:
    found = lance.dataset(uri).get_fragments()
    return [(each.fragment_id, each.physical_rows, each.num_deletions) for each in found]


def spare(uri: str) -> set[str]:
    paths = [path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def instead(monkeypatch: pytest.MonkeyPatch, function: Run) -> None:
    """Workers run this function; it must be made in a test, so that it travels by value."""
    monkeypatch.setattr("tablewright.jobs.compact.rewrite_group", function)


def test_spark_makes_the_table_that_the_local_engine_makes(spark: Any, uri: str) -> None:
    copy = shutil.copytree(uri, f"{uri}-copy")
    before = rows(uri)
    here = tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS)
    there = tw.dataset(copy, engine="local").optimize.compact_files(**OPTIONS)
    assert rows(uri).equals(before) and shape(uri) == shape(copy)
    costs = ("seconds", "bytes_read", "bytes_written")
    assert [(k, v) for k, v in here.to_dict().items() if k not in costs] == [
        (k, v) for k, v in there.to_dict().items() if k not in costs
    ]
    assert not spare(uri)


def test_what_others_did_meanwhile_is_carried_on_spark(spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablewright.jobs.compact import CompactJob

    rewritten, state = CompactJob._rewritten, []

    def then(self: Any, *given: Any) -> Any:
        results = rewritten(self, *given)
        tw.dataset(uri, engine="local").update({"v": "'new'"}, where="id in (1, 42)", write_mode="rewrite_columns")
        tw.dataset(uri, engine="local").delete("id = 43")
        state.append(rows(uri))
        return results

    monkeypatch.setattr(CompactJob, "_rewritten", then)
    metrics = tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS)
    assert metrics.bytes_carried and metrics.rows_hidden == 1
    assert rows(uri).equals(state[0]) and not spare(uri)


def test_a_group_that_fails_does_not_spoil_the_others(spark: Any, uri: str) -> None:
    broken = tw.dataset(uri).get_fragments()[2]
    path = Path(uri, "data", broken.data_files()[0].path)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(CompactionIncomplete, match="1 groups") as caught:
        tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS)
    assert "the data file is missing" in caught.value.errors[0]
    assert [fragment.fragment_id for fragment in tw.dataset(uri).get_fragments()][:3] == [2, 3, 8]
    assert not spare(uri)
    path.write_bytes(content)
    assert tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS).fragments_removed == 2
    assert sorted(rows(uri)["id"].to_pylist()) == [n for n in range(80) if n % 20 != 7]


def test_a_task_that_ran_twice(spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of one run counts; files of the other are in no version, and are left to cleanup."""

    def twice(task: Any, world: Any) -> Any:
        rewrite_group(task, world)
        return rewrite_group(task, world)

    before = rows(uri)
    instead(monkeypatch, twice)
    metrics = tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS)
    assert (metrics.fragments_removed, metrics.fragments_added) == (8, 4)
    assert rows(uri).equals(before)
    assert len(spare(uri)) == 4


def test_a_worker_that_is_killed(spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task dies after it wrote its file: nothing is committed, no file stays, and the next compaction works."""
    mark = str(tmp_path / "killed")

    def dies(task: Any, world: Any) -> Any:
        import os
        import signal

        result = rewrite_group(task, world)
        if task.task.fragments[0].id == 4 and not os.path.exists(mark):
            with open(mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return result

    before = rows(uri)
    instead(monkeypatch, dies)
    with pytest.raises(WorkerLost, match="the Python worker of a task died"):
        tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS)
    assert Path(mark).exists()
    assert rows(uri).equals(before) and tw.dataset(uri).version == 2
    assert not spare(uri)
    assert tw.dataset(uri, engine=spark).optimize.compact_files(**OPTIONS).fragments_added == 4
    assert rows(uri).equals(before) and not spare(uri)
