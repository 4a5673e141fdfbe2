"""``optimize.auto`` on tables of pylance: the same rows before and after, read by both, and indices stay right."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.differential.referee import UNDER_TEST, assert_same_rows, lance, numbers, ours

GOLDEN = Path(__file__).parents[1] / "golden" / "lance-blob"

pytestmark = pytest.mark.skipif(UNDER_TEST == "lance", reason="auto is ours alone")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_and_indices_stay_right(stable: bool, tmp_path: Path) -> None:
    uri = str(tmp_path)
    lance.write_dataset(numbers(0, 20_000), uri, enable_stable_row_ids=stable)
    ds = lance.write_dataset(numbers(0, 400), uri, mode="overwrite", max_rows_per_file=20)
    ds.create_scalar_index("id", "BTREE")
    lance.write_dataset(numbers(400, 600), uri, mode="append", max_rows_per_file=20)
    lance.dataset(uri).delete("id % 5 = 0")
    lance.dataset(uri).tags.create("before", lance.dataset(uri).version)
    expected = lance.dataset(uri).to_table()
    mine = ours.dataset(uri)
    with warnings.catch_warnings(action="ignore"):
        mine.update_config({"lance.auto_cleanup.older_than": "0s"})
    report = mine.optimize.auto()
    outcomes = {step.action: step.outcome for step in report.steps}
    assert outcomes["compact"] == "done"
    assert outcomes["optimize_indices"] == "done"
    assert outcomes["cleanup"] == "done"
    step: Any = report.step("optimize_indices")
    assert step.figures["indices"] == 1 and step.figures["bytes_written"] > 0
    assert mine.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    theirs = lance.dataset(uri)
    theirs.validate()
    mine.validate()
    assert_same_rows(theirs.to_table(), expected)
    assert_same_rows(mine.to_table(), expected)
    for key in (3, 401, 5):
        assert theirs.count_rows(f"id = {key}") == mine.count_rows(f"id = {key}") == int(key % 5 != 0)
    assert_same_rows(lance.dataset(uri, version="before").to_table(), expected)
    assert mine.health(sample=False).versions.reclaimable_bytes == 0


def test_what_compaction_does_not_support_is_skipped(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "v2_2.2" / "table", tmp_path / "table")
    mine = ours.dataset(str(tmp_path / "table"))
    version = mine.version
    step = mine.optimize.auto().step("compact")
    assert step is None or step.outcome in ("skipped", "done")
    if step is not None and step.outcome == "skipped":
        assert "blob" in step.note
        assert mine.version == version
    lance.dataset(str(tmp_path / "table")).validate()
