"""Small partitions share files, and large ones keep theirs; one version, the same order, no file left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest
from tests.concurrency.compacting import paths_in
from tests.concurrency.leftovers import unreferenced

import tablewright as tw
from tablewright.jobs import small_files as jobs
from tablewright.operations import small_files


def numbers(uri: Path) -> list[int]:
    """The rows in their order, which pylance reads as we do."""
    found: list[int] = lance.dataset(uri).to_table()["id"].to_pylist()
    assert tw.dataset(uri).to_table()["id"].to_pylist() == found
    return found


def test_fifty_rows_in_fifty_partitions_are_one_fragment(spark: Any, tmp_path: Path) -> None:
    uri = tmp_path / "table"
    ds = tw.write_dataset(spark.range(0, 50, 1, 50), uri, engine="spark")
    assert (ds.version, len(ds.get_fragments()), numbers(uri)) == (1, 1, list(range(50)))
    ds = tw.write_dataset(spark.range(50, 80, 1, 10), uri, mode="append", engine="spark")
    assert (ds.version, len(ds.get_fragments()), numbers(uri)) == (2, 2, list(range(80)))
    assert unreferenced(ds, paths_in(uri)) == set()


@pytest.mark.parametrize("here", [0, 2])
def test_large_partitions_stay_and_many_files_are_joined_on_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: int
) -> None:
    """Partitions of 1, 1, 5000, 1, 1 rows, if those of 5000 count as large."""
    monkeypatch.setattr(small_files, "SMALL_ROWS", 5000)
    monkeypatch.setattr(jobs, "HERE_MAX", here)
    uri = tmp_path / "table"
    sizes = [1, 1, 5000, 1, 1]
    frame = spark.range(0, 5, 1, 5).selectExpr("explode(sequence(0, if(id = 2, 4999, 0))) as n", "id as part")
    ds = tw.write_dataset(frame.selectExpr("part * 10000 + n as id"), uri, engine="spark")
    assert [fragment.count_rows() for fragment in ds.get_fragments()] == [2, 5000, 2]
    assert numbers(uri) == [part * 10000 + n for part, rows in enumerate(sizes) for n in range(rows)]
    assert unreferenced(ds, paths_in(uri)) == set()


def test_rows_per_file_are_respected(spark: Any, tmp_path: Path) -> None:
    ds = tw.write_dataset(spark.range(0, 60, 1, 6), tmp_path / "table", max_rows_per_file=25, engine="spark")
    assert [fragment.count_rows() for fragment in ds.get_fragments()] == [20, 20, 20]
