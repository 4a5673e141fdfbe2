"""An operation that runs again finds the newest version of its own table, and of no other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, VersionNotFound
from tablewright.snapshot.standing import open_newest


def _cleaned_up(dataset: tw.LanceDataset) -> None:
    """Remove a version as cleanup does: its manifest, and the file of its transaction."""
    root, snapshot = Path(dataset.uri), dataset._snapshot
    (root / snapshot.entry.path).unlink()
    (root / "_transactions" / str(snapshot.manifest.transaction_file)).unlink()


def test_the_newest_version_of_the_same_table(tmp_path: Path) -> None:
    old = tw.write_dataset({"id": [1]}, tmp_path / "t")
    tw.dataset(old.uri).insert({"id": [2]})
    assert open_newest(old._snapshot).version == 2


def test_a_shared_file_shows_that_a_version_was_cleaned_up(tmp_path: Path) -> None:
    old = tw.write_dataset({"id": [1]}, tmp_path / "t")
    tw.dataset(old.uri).insert({"id": [2]})
    _cleaned_up(old)
    assert open_newest(old._snapshot).version == 2


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_another_table_in_its_place(tmp_path: Path, versions: int) -> None:
    old = tw.write_dataset({"id": [1]}, tmp_path / "t")
    old.insert({"id": [2]})
    shutil.rmtree(tmp_path / "t")
    new = tw.write_dataset({"id": [1]}, tmp_path / "t")
    for _ in range(versions - 1):
        new.insert({"id": [2]})
    with pytest.raises(VersionNotFound, match="The table was dropped or replaced"):
        open_newest(old._snapshot)


def test_another_table_without_the_old_number(tmp_path: Path) -> None:
    old = tw.write_dataset({"id": [1]}, tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    new = tw.write_dataset({"id": [1]}, tmp_path / "t")
    tw.dataset(new.uri).insert({"id": [2]})
    _cleaned_up(new)
    with pytest.raises(VersionNotFound, match="The table was dropped or replaced"):
        open_newest(old._snapshot)


def test_another_branch_of_the_same_name(tmp_path: Path) -> None:
    """Both branches refer to files of the table, which prove nothing."""
    table = tw.write_dataset({"id": [1]}, tmp_path / "t")
    old = table.create_branch("work")
    old.insert({"id": [2]})
    table.branches.delete("work")
    table.create_branch("work").insert({"id": [3]})
    with pytest.raises(VersionNotFound, match="Branch work was dropped or replaced"):
        open_newest(old._snapshot)


READS: dict[str, Callable[[tw.LanceDataset], object]] = {
    "to_table": lambda ds: ds.to_table(),
    "batches": lambda ds: list(ds.to_batches()),
    "count": lambda ds: ds.count_rows("id > 0"),
    "take": lambda ds: ds.take([0]),
    "head": lambda ds: ds.head(1),
    "fragment": lambda ds: ds.get_fragments()[0].to_table(),
    "validate": lambda ds: ds.validate(),
}


@pytest.mark.parametrize("name", list(READS))
def test_a_version_that_was_cleaned_up_says_so_when_it_is_read(tmp_path: Path, name: str) -> None:
    old = tw.write_dataset({"id": [1, 2]}, tmp_path / "t")
    new = tw.write_dataset({"id": [3]}, tmp_path / "t", mode="overwrite")
    new.cleanup_old_versions(retain_versions=1)
    with pytest.raises(VersionNotFound, match=r"Version 1 .* cleaned up since it was opened"):
        READS[name](old)


@pytest.mark.parametrize("name", list(READS))
def test_a_file_that_is_missing_otherwise_is_damage(tmp_path: Path, name: str) -> None:
    ds = tw.write_dataset({"id": [1, 2]}, tmp_path / "t")
    shutil.rmtree(tmp_path / "t" / "data")
    with pytest.raises(CorruptTable, match="missing"):
        READS[name](ds)


def test_a_change_of_a_version_that_was_cleaned_up_runs_on_the_newest(tmp_path: Path) -> None:
    old = tw.write_dataset({"id": list(range(8))}, tmp_path / "t", max_rows_per_file=4)
    new = tw.dataset(tmp_path / "t")
    new.delete("id = 1")
    new.update({"id": "id + 100"}, where="id < 4", write_mode="rewrite_rows")  # fragment 0 is gone
    new.cleanup_old_versions(retain_versions=1)
    assert old.delete("id = 102") == {"num_deleted_rows": 1}
    assert sorted(old.to_table()["id"].to_pylist()) == [4, 5, 6, 7, 100, 103]
