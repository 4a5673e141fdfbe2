"""An operation that runs again finds the newest version of its own table, and of no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tablewright as tw
from tablewright.errors import VersionNotFound
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
