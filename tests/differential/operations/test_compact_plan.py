"""The planner beside pylance's, on the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction as PylanceCompaction

import tablewright as tw
from tablewright.optimize import Compaction

OPTIONS: list[dict[str, Any]] = [
    {},
    {"target_rows_per_fragment": 25},
    {"target_rows_per_fragment": 60},
    {"target_rows_per_fragment": 60, "max_source_fragments": 5},
    {"target_rows_per_fragment": 60, "max_source_rows": 100},
    {"target_rows_per_fragment": 10, "materialize_deletions_threshold": 0.2},
    {"target_rows_per_fragment": 10, "materialize_deletions": False},
    {"target_rows_per_fragment": 60, "excluded_fragment_ids": [3]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[f"options-{n}" for n in range(len(OPTIONS))])
@pytest.mark.parametrize("indexed", [False, True])
def test_the_same_tasks(tmp_path: Path, options: dict[str, Any], indexed: bool) -> None:
    sizes = [10, 40, 25, 7, 7, 60, 61, 3, 30, 30, 12, 90, 5]
    for number, size in enumerate(sizes):
        first = sum(sizes[:number])
        lance.write_dataset(
            pa.table({"id": range(first, first + size)}), str(tmp_path), mode="append" if number else "create"
        )
        if indexed and number == 6:
            lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    dataset = lance.dataset(str(tmp_path))
    dataset.delete("id % 8 = 0 and id < 160")
    expected = PylanceCompaction.plan(lance.dataset(str(tmp_path)), options=options)
    found = Compaction.plan(tw.dataset(str(tmp_path)), options)
    assert [[f.id for f in task.fragments] for task in found.tasks] == [
        [f.id for f in task.fragments] for task in expected.tasks
    ]
