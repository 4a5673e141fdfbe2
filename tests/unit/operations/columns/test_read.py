"""Windows of live rows begin at multiples of their size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tablewright as tw
from tablewright.data.task_context import TaskContext
from tablewright.operations.columns.add import BySql
from tablewright.operations.columns.read import live_windows


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_windows_begin_at_multiples_of_their_size(tmp_path: Path, size: int) -> None:
    ds = tw.write_dataset({"id": range(10)}, str(tmp_path / "t"))
    ds.delete("id in (0, 4, 5, 9)")
    snapshot = ds._snapshot
    plan = BySql({"double": "id * 2"}, now_ns=0, batch_size=size).plan(snapshot)
    assert plan.work is not None
    fragment = snapshot.fragments[0]
    windows = list(live_windows(TaskContext(snapshot.world), plan.work, fragment))
    assert [(w.start, w.stop) for w in windows] == [(at, min(10, at + size)) for at in range(0, 10, size)]
    offsets = np.concatenate([window.rows.offsets for window in windows])
    assert offsets.tolist() == [1, 2, 3, 6, 7, 8]
    assert [v for w in windows if len(w.rows) for v in w.rows.batch["id"].to_pylist()] == offsets.tolist()
