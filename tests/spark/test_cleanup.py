"""Cleanup on Spark: executors read the manifests and delete the files, and the same is left as by threads."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import tablewright as tw


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_spark_leaves_what_threads_leave(spark: Any, tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": list(range(40))}, tmp_path / "t", max_rows_per_file=10)
    for number in range(4):
        ds.delete(f"id % 10 = {number}")
    ds.tags.create("two", 2)
    ds.create_branch("b", 3).insert({"id": [100]})
    ds = tw.write_dataset({"id": [1, 2]}, tmp_path / "t", mode="overwrite")
    shutil.copytree(tmp_path / "t", tmp_path / "local")
    options: dict[str, Any] = {"older_than": timedelta(0), "error_if_tagged_old_versions": False}
    here = tw.dataset(tmp_path / "local", engine="local").cleanup_old_versions(**options)
    on_spark = tw.dataset(tmp_path / "t", engine=spark)
    assert on_spark.explain_cleanup_old_versions(**options).stats == here
    assert on_spark.cleanup_old_versions(**options) == here
    assert files(tmp_path / "t") == files(tmp_path / "local")
    assert here.old_versions == 3
    for entry in on_spark.versions():
        on_spark.checkout_version(entry["version"]).validate()


def test_auto_cleanup_stays_here(spark: Any, tmp_path: Path) -> None:
    """A commit does not wait for a Spark job to clean up a few files."""
    ds = tw.write_dataset(
        spark.range(10), tmp_path / "t", auto_cleanup_options={"interval": 2, "older_than_seconds": 0}
    )
    for _ in range(3):
        ds = tw.write_dataset(spark.range(10), ds, mode="overwrite")
    assert [entry["version"] for entry in ds.versions()] == [3, 4]
    assert ds.count_rows() == 10
