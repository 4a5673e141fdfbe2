"""Compactions that others overtake: what was committed meanwhile is in the compacted table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.optimize import Compaction

CHANGES: dict[str, Callable[[tw.LanceDataset], object]] = {
    "delete": lambda ds: ds.delete("id < 25 or id = 50"),
    "delete a whole fragment": lambda ds: ds.delete("id >= 20 and id < 30"),
    "move rows": lambda ds: ds.update({"v": "'moved'"}, where="id > 90", write_mode="rewrite_rows"),
    "columns in place": lambda ds: ds.update({"v": "'patched'"}, where="id % 2 = 0", write_mode="rewrite_columns"),
    "add columns": lambda ds: ds.add_columns({"w": "id * 2"}),
    "drop a column": lambda ds: ds.drop_columns(["v"]),
    "rename a column": lambda ds: ds.alter_columns({"path": "v", "name": "renamed"}),
    "cast a column": lambda ds: ds.alter_columns({"path": "n", "data_type": pa.int64()}),
    "append": lambda ds: ds.insert({"id": [1000], "v": ["new"], "n": [1]}),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_changes_meanwhile_are_taken_over(tmp_path: Path, stable: bool, change: str) -> None:
    data = pa.table({"id": range(100), "v": [f"x{n}" for n in range(100)], "n": pa.array(range(100), pa.int32())})
    dataset = tw.write_dataset(data, str(tmp_path), max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.delete("id % 7 = 0")
    stale = tw.dataset(str(tmp_path))
    results = [task.execute(stale) for task in Compaction.plan(stale, {"target_rows_per_fragment": 40}).tasks]
    CHANGES[change](dataset)
    expected = tw.dataset(str(tmp_path)).to_table(with_row_id=stable).sort_by("id")
    metrics = Compaction.commit(stale, results)
    assert metrics.fragments_removed == 10 and metrics.groups_dropped == 0
    assert stale.to_table(with_row_id=stable).sort_by("id").equals(expected)
