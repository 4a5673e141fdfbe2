"""Scans: batches, tasks, the printed plan, orders. The same scans beside pylance: tests/differential."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.operations.scan import (
    ScanOptions,
    plan_scan,
    run_scan_task,
    scan_batches,
    scan_table,
)
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


def _rows() -> pa.Table:
    return pa.table(
        {
            "a": pa.array(range(10)),
            "s": [None if i == 4 else f"r{i}" for i in range(10)],
            "st": pa.array([None if i == 3 else {"p": i, "q": {"z": str(i), "w": i}} for i in range(10)]),
            "l": pa.array([[{"x": i, "y": i}] for i in range(10)]),
        }
    )


@pytest.fixture(scope="module", params=["addresses", "stable"])
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path = tmp_path_factory.mktemp(request.param) / "t.lance"
    stable = request.param == "stable"
    dataset = tw.write_dataset(_rows(), path, max_rows_per_file=4, enable_stable_row_ids=stable)
    dataset.delete("a in (1, 5, 6)")
    dataset.update({"s": "'new'"}, where="a = 9", write_mode="rewrite_rows")
    return _snapshot(path)


def _snapshot(path: Path | str) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))))


def _table(snapshot: Snapshot, **options: Any) -> pa.Table:
    return scan_table(plan_scan(snapshot, ScanOptions(**options)), snapshot)


def test_refused_by_us(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidRequest, match="batch_size must be between 1 and 4294967295, got 0"):
        ScanOptions(batch_size=0)
    with pytest.raises(InvalidRequest, match="has no fragments"):
        _table(snapshot, fragments=[77])
    with pytest.raises(InvalidRequest, match="ordered by st"):
        _table(snapshot, order_by=["st"])


def _sizes(snapshot: Snapshot, **options: Any) -> list[int]:
    return [batch.num_rows for batch in scan_batches(plan_scan(snapshot, ScanOptions(**options)), snapshot)]


def test_batches(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sizes(snapshot) == [7]  # small fragments are read together
    assert max(_sizes(snapshot, batch_size=2)) == 2
    assert _sizes(snapshot, filter="a > 200") == []
    assert _sizes(snapshot, batch_size=2, filter="a > 2", strict_batch_size=True) == [2, 2, 1]
    assert _sizes(snapshot, batch_size=3, strict_batch_size=True) == [3, 3, 1]
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "1")
    assert _sizes(snapshot) == [1] * 7


def test_tasks_travel_and_add_up(snapshot: Snapshot) -> None:
    plan = plan_scan(snapshot, ScanOptions(columns={"z": "a + 1", "i": "_rowoffset"}, filter="a > 2 and s is not null"))
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan.tasks]
    rows = [row for task in tasks for batch in run_scan_task(task, snapshot.world) for row in batch.to_pylist()]
    assert rows == scan_table(plan, snapshot).to_pylist()
    assert all(task.schema == plan.schema for task in tasks)
    arrow = plan_scan(snapshot, ScanOptions(filter=pc.field("a") > 3))
    assert pickle.loads(pickle.dumps(arrow.tasks))[0].schema == arrow.schema


def test_large_scans_are_cut_into_tasks(snapshot: Snapshot) -> None:
    plan = plan_scan(snapshot, ScanOptions(columns=["a", "_rowoffset"]))
    tasks = list(plan.whole.split(1))
    assert len(tasks) == len(snapshot.fragments)
    rows = [row for task in tasks for batch in run_scan_task(task, snapshot.world) for row in batch.to_pylist()]
    assert rows == scan_table(plan, snapshot).to_pylist()


def test_a_plan_can_be_printed(snapshot: Snapshot) -> None:
    options = ScanOptions(columns=["s"], filter="a > 3", limit=2, offset=1, order_by=["a"], late_materialization=True)
    text = str(plan_scan(snapshot, options))
    assert text.splitlines()[:4] == [
        "Limit: limit=2, offset=1",
        "Sort: order_by=[a asc nulls last]",
        "Take: columns=[s] of matching rows",
        "Filter: a > 3",
    ]
    assert "projection=[a]" in text and "num_fragments=4" in text and "rows=7, deleted_rows=4" in text
    assert plan_scan(snapshot, options).estimated_bytes > 0


def test_early_stop_leaves_the_rest_unread(tmp_path: Path) -> None:
    tw.write_dataset(pa.table({"a": range(1000)}), tmp_path / "t", max_rows_per_file=10)
    snapshot = _snapshot(tmp_path / "t")
    for path in sorted((tmp_path / "t" / "data").iterdir()):
        if path.name not in {file.path for fragment in list(snapshot.fragments)[:40] for file in fragment.files}:
            path.unlink()
    assert _table(snapshot, limit=5, offset=300)["a"].to_pylist() == [300, 301, 302, 303, 304]
    assert _table(snapshot, limit=5, filter="a >= 7")["a"].to_pylist() == [7, 8, 9, 10, 11]
    batches = scan_batches(plan_scan(snapshot, ScanOptions()), snapshot)
    assert next(batches).num_rows == 80  # the first run of small fragments is short
    batches.close()
