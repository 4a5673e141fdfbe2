"""Versions: what each added, what is dead of it, and what a cleanup would free."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import tablewright as tw
from tablewright.format.naming import manifest_path
from tablewright.operations.health import TableHealth
from tablewright.storage import open_store


def _bytes(path: Path, *names: str) -> int:
    return sum((path / name).stat().st_size for name in names)


def _files(path: Path, directory: str) -> set[str]:
    return {str(file.relative_to(path)) for file in (path / directory).rglob("*") if file.is_file()}


def _kinds(health: TableHealth) -> dict[str, tuple[int, int]]:
    return {files.kind: (files.files, files.bytes) for files in health.versions.reclaimable}


def test_growth_of_each_version(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(1000)}, tmp_path)
    ds.insert({"id": np.arange(1000, 1400)})
    ds.delete("id < 100")
    ds.delete("id >= 1000")
    growth = ds.health(sample=False).growth
    assert [each.version for each in growth] == [1, 2, 3, 4]
    assert [each.operation for each in growth] == ["Overwrite", "Append", "Delete", "Delete"]
    assert [each.rows_added for each in growth] == [1000, 400, 0, 0]
    assert [each.rows_removed for each in growth] == [0, 0, 100, 400]
    assert [each.rows_dead for each in growth] == [100, 400, 0, 0]
    first, second, third, _ = growth
    assert first.bytes_dead == pytest.approx(first.bytes_added / 10, abs=1)
    assert second.bytes_dead == second.bytes_added > 0
    assert third.bytes_added == _bytes(tmp_path, *_files(tmp_path, "_deletions"))
    assert third.bytes_dead == 0
    assert sum(each.manifest_bytes for each in growth) == ds.health(sample=False).versions.manifest_bytes


def test_growth_of_columns_in_place(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(1000), "x": np.arange(1000) * 0.5}, tmp_path)
    ds.update({"x": "x + 1"}, write_mode="rewrite_columns")
    first, second = ds.health(sample=False).growth
    assert (second.rows_added, second.rows_removed, second.bytes_dead) == (0, 0, 0)
    assert second.bytes_added > 0
    assert 0 < first.bytes_dead < first.bytes_added


@pytest.mark.parametrize(("versions", "expected"), [(0, []), (1, [6]), (3, [4, 5, 6]), (10, [1, 2, 3, 4, 5, 6])])
def test_growth_is_bounded(versions: int, expected: list[int]) -> None:
    uri = f"memory://health-bounded-{versions}"
    ds = tw.write_dataset({"id": [0]}, uri)
    for number in range(1, 6):
        ds.insert({"id": [number]})
    growth = ds.health(sample=False, versions=versions).growth
    assert [each.version for each in growth] == expected
    assert all(each.rows_added == 1 for each in growth)


def test_a_first_version_that_was_cleaned_up_is_not_counted_as_growth(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1]}, tmp_path)
    for number in range(3):
        ds.insert({"id": [number]})
    store = open_store(str(tmp_path))
    for version in (1, 2):
        store.delete(manifest_path(version))
    assert [each.version for each in tw.dataset(tmp_path).health(sample=False).growth] == [4]


def test_reclaimable_files_are_those_of_old_versions(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path)
    old = _files(tmp_path, "data")
    ds = tw.write_dataset({"id": np.arange(7)}, tmp_path, mode="overwrite")
    health = ds.health(sample=False)
    assert _kinds(health)["data files"] == (1, _bytes(tmp_path, *old))
    assert _kinds(health)["manifests"][0] == 1
    assert _kinds(health)["transaction files"][0] == 1
    assert (health.versions.count, health.versions.kept, health.versions.is_verified) == (2, 1, True)
    assert health.versions.unverified_bytes == 0
    assert health.actions() == ("cleanup",)
    assert ds.health(sample=False).versions.reclaimable_bytes == sum(size for _, size in _kinds(health).values())


def test_a_tag_keeps_its_version(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path)
    ds.tags.create("first", 1)
    ds = tw.write_dataset({"id": np.arange(7)}, tmp_path, mode="overwrite")
    health = ds.health(sample=False)
    assert (health.versions.tagged, health.versions.kept, _kinds(health)) == (1, 2, {})
    ds.tags.delete("first")
    assert ds.health(sample=False).versions.reclaimable_bytes > 0


def test_a_branch_keeps_what_it_began_with(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path)
    ds.delete("id < 10")
    branch = ds.create_branch("dev")
    ds = tw.write_dataset({"id": np.arange(7)}, tmp_path, mode="overwrite")
    kinds = _kinds(ds.health(sample=False))
    assert set(kinds) == {"manifests", "transaction files"}
    branch.insert({"id": np.arange(5)})
    health = branch.health()
    assert (health.branch, health.rows.live, health.rows.deleted) == ("dev", 95, 10)
    assert health.bytes.deletion_files > 0
    assert health.bytes.missing_files == 0
    assert "branch dev" in str(health)


def test_a_branch_of_a_branch_keeps_its_files(tmp_path: Path) -> None:
    first = tw.write_dataset({"id": np.arange(10)}, tmp_path).create_branch("a")
    first.insert({"id": np.arange(5)})
    first.create_branch("b")
    first = tw.write_dataset({"id": np.arange(3)}, first, mode="overwrite")
    assert "data files" not in _kinds(first.health(sample=False))


def test_files_that_no_version_names(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path)
    orphan = tmp_path / "data" / "orphan.lance"
    orphan.write_bytes(b"x" * 1000)
    versions = ds.health(sample=False).versions
    assert (versions.unverified_bytes, versions.reclaimable_bytes) == (1000, 0)
    os.utime(orphan, (1, 1))
    versions = ds.health(sample=False).versions
    assert (versions.unverified_bytes, versions.reclaimable_bytes) == (0, 1000)


def test_not_all_manifests_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.operations.health.measure.BUDGET_BYTES", 1)
    ds = tw.write_dataset({"id": [1]}, tmp_path)
    for number in range(4):
        ds.insert({"id": [number]})
    (tmp_path / "data" / "orphan.lance").write_bytes(b"x" * 1000)
    health = ds.health(sample=False, versions=1)
    assert not health.versions.is_verified
    assert health.versions.unverified_bytes == 0
    assert _kinds(health)["data files"] == (1, 1000)
    assert [each.version for each in health.growth] == [5]
    assert health.versions.oldest_ns > 0
    assert ds.health(sample=False, versions=4).versions.is_verified


def test_blobs_beside_a_data_file_belong_to_it(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path)
    (file,) = (tmp_path / "data").iterdir()
    beside = tmp_path / "data" / file.stem / "1.blob"
    beside.parent.mkdir()
    beside.write_bytes(b"x" * 5000)
    health = ds.health(sample=False)
    assert health.bytes.data == file.stat().st_size + 5000
    assert health.versions.unverified_bytes == 0
    assert _kinds(health) == {}


def test_cleanup_agrees_on_what_is_reclaimable(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(100)}, tmp_path, max_rows_per_file=20)
    ds.delete("id < 30")
    ds.tags.create("deleted", ds.version)
    ds.update({"id": "id + 1"}, where="id > 50")
    ds.create_branch("dev").insert({"id": [5]})
    ds.optimize.compact_files()
    ds = tw.write_dataset({"id": np.arange(7)}, ds, mode="overwrite")
    ds.insert({"id": [9]})
    (tmp_path / "data" / "orphan.lance").write_bytes(b"x" * 1000)
    everything = timedelta(0)
    for branch in (None, "dev"):
        each = ds.checkout_version((branch, None))
        explained = each.explain_cleanup_old_versions(older_than=everything, error_if_tagged_old_versions=False)
        versions = each.health(sample=False).versions
        assert versions.reclaimable_bytes == explained.stats.bytes_removed
        assert versions.unverified_bytes == explained.waiting_bytes
        assert versions.kept == len(explained.kept_versions)
    ds.cleanup_old_versions(older_than=everything, error_if_tagged_old_versions=False)
    assert ds.health(sample=False).versions.reclaimable_bytes == 0
