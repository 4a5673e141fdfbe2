"""The guide's pages about Spark, and the README's ten lines, run."""

from __future__ import annotations

import re
from pathlib import Path

import lancedb
import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python[^\n]*\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["spark.md", "paimon-buckets.md", "sql.md"])
def test_a_page_runs_from_top_to_bottom(spark: SparkSession, page: str) -> None:
    """Nothing is defined beforehand: a reader copies the page and nothing else."""
    names: dict[str, object] = {}
    for block in blocks(f"docs/guide/{page}"):
        exec(compile(block, page, "exec"), names)


def test_readme(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks("README.md"):
        exec(compile(block.replace("/tmp/", f"{tmp_path}/"), "README.md", "exec"), names)
    assert names["ds"].version == 3  # type: ignore[attr-defined]
    table = lancedb.connect(tmp_path).open_table("documents")
    assert [row["id"] for row in table.search([0.7, 0.3]).limit(1).to_list()] == [2]
