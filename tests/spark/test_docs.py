"""The guide's page about Spark, and the README's ten lines, run."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_spark_page(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, object] = {"table_path": str(tmp_path / "frame.lance")}
    for block in blocks("docs/guide/spark.md"):
        exec(compile(block, "docs/guide/spark.md", "exec"), names)


def test_readme(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks("README.md"):
        exec(compile(block.replace("/tmp/", f"{tmp_path}/"), "README.md", "exec"), names)
    assert names["ds"].version == 3  # type: ignore[attr-defined]
