"""pylance changes, drops and makes tables again at the same path; we read what is there, whatever the cache holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from tests.caches import BUDGETS, cached

import tablewright as tw


@pytest.fixture(params=BUDGETS)
def budget(request: pytest.FixtureRequest) -> Iterator[str]:
    with cached(request.param):
        yield request.param


def _rows(start: int, count: int = 60) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"id": pa.array(numbers, pa.int64()), "text": [f"text {number}" for number in numbers]})


def _same(path: Path) -> None:
    theirs = lance.dataset(path).to_table()
    for columns in (None, ["id"], ["text", "id"]):
        assert tw.dataset(path).to_table(columns=columns) == (theirs if columns is None else theirs.select(columns))
    for predicate in ("id % 7 = 3", "text > 'text 2'"):
        assert tw.dataset(path).to_table(filter=predicate) == lance.dataset(path).to_table(filter=predicate)
        assert tw.dataset(path).count_rows(predicate) == lance.dataset(path).count_rows(predicate)


def test_pylance_changes_what_was_cached(tmp_path: Path, budget: str) -> None:
    path = tmp_path / "t"
    lance.write_dataset(_rows(0), path, max_rows_per_file=4, enable_stable_row_ids=True)
    _same(path)
    lance.dataset(path).delete("id in (3, 17, 18, 19, 40)")
    _same(path)
    lance.dataset(path).update({"text": "'new'"}, where="id % 9 = 1")
    _same(path)
    lance.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        _rows(50, 20)
    )
    _same(path)
    lance.dataset(path).add_columns({"more": "id * 2"})
    _same(path)
    lance.dataset(path).drop_columns(["more"])
    _same(path)
    lance.dataset(path).alter_columns({"path": "text", "data_type": pa.large_string()})
    _same(path)
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=16)
    _same(path)
    lance.write_dataset(_rows(500), path, mode="overwrite", max_rows_per_file=6)
    _same(path)
    lance.dataset(path, version=1).restore()
    _same(path)


def test_another_table_is_made_at_the_same_path(tmp_path: Path, budget: str) -> None:
    path, other, kept = tmp_path / "t", tmp_path / "u", tmp_path / "kept"
    lance.write_dataset(_rows(0), path, max_rows_per_file=4)
    _same(path)
    shutil.copytree(path, kept)
    shutil.rmtree(path)
    lance.write_dataset(_rows(100), path, max_rows_per_file=4)
    _same(path)
    lance.write_dataset(_rows(200), other, max_rows_per_file=4)
    for source in (kept, other, kept):
        shutil.rmtree(path)
        shutil.copytree(source, path)
        _same(path)


def test_the_same_names_hold_other_bytes(tmp_path: Path, budget: str) -> None:
    """Files change places under their names, which the manifest can't show: what is read is what is there."""
    path = tmp_path / "t"
    lance.write_dataset(_rows(100, 40), path, max_rows_per_file=10)
    _same(path)
    files = sorted((path / "data").iterdir())
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, [*contents[1:], contents[0]], strict=True):
        file.write_bytes(content)
    _same(path)


def test_upserts_and_deletes_beside_pylance(tmp_path: Path, budget: str) -> None:
    path = tmp_path / "t"
    lance.write_dataset(_rows(0), path, max_rows_per_file=1)
    for number in range(4):
        row = pa.table({"id": pa.array([number * 13], pa.int64()), "text": [f"ours {number}"]})
        tw.dataset(path).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)
        _same(path)
        lance.dataset(path).delete(f"id = {number * 13 + 1}")
        tw.dataset(path).delete(f"id = {number * 13 + 2}")
        _same(path)
    assert tw.dataset(path).count_rows() == lance.dataset(path).count_rows() == 52
