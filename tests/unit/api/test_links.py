"""Links, pipes and directories where files of a table are expected: never followed when deleting, ignored when read."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, StorageError, TablewrightError
from tablewright.format.naming import manifest_path
from tablewright.storage import MemoryStore

ROWS = pa.table({"a": [1, 2, 3]})
DIRECTORIES = ["", "_versions", "data", "_transactions", "_deletions", "_refs", "_refs/tags", "tree", "tree/b"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    ds = tw.write_dataset(ROWS, tmp_path / "t")
    ds.delete("a = 1")
    ds.tags.create("v1", 1)
    ds.create_branch("b").insert(ROWS)
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "precious").write_text("x")
    (outside / "deep" / "precious").write_text("x")
    return tmp_path / "t"


def nothing_lost(table: Path) -> bool:
    outside = table.parent / "outside"
    return (outside / "precious").exists() and (outside / "deep" / "precious").exists()


def plant(table: Path, directory: str) -> None:
    """Links to a directory, to a file, to nothing, to themselves and to what is above."""
    outside, where = table.parent / "outside", table / directory
    (where / "directory").symlink_to(outside)
    (where / "file").symlink_to(outside / "precious")
    (where / "nothing").symlink_to(outside / "not there")
    (where / "self").symlink_to("self")
    (where / "loop").symlink_to(table)
    os.mkfifo(where / "pipe")


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_drop_follows_no_link(table: Path, directory: str) -> None:
    plant(table, directory)
    tw.LanceDataset.drop(table)
    assert nothing_lost(table)
    assert not os.path.lexists(table)


@pytest.mark.parametrize("directory", ["tree/b", "tree/b/data", "tree/b/_versions"])
def test_deleting_a_branch_follows_no_link(table: Path, directory: str) -> None:
    plant(table, directory)
    ds = tw.dataset(table)
    ds.branches.delete("b")
    assert nothing_lost(table)
    assert not os.path.lexists(table / "tree" / "b")
    assert ds.to_table().num_rows == 2


def test_a_branch_that_is_a_link(table: Path) -> None:
    shutil.rmtree(table / "tree" / "b")
    (table / "tree" / "b").symlink_to(table.parent / "outside")
    tw.dataset(table).branches.delete("b")
    assert nothing_lost(table)
    assert not os.path.lexists(table / "tree" / "b")


def test_branches_inside_a_branch_stay(table: Path) -> None:
    inner = tw.dataset(table).create_branch("b/c")
    tw.dataset(table).branches.delete("b")
    assert inner.count_rows() == tw.dataset(table).checkout_version(("b/c", None)).count_rows() == 2
    assert sorted(os.listdir(table / "tree" / "b")) == ["c"]


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_reading_ignores_what_is_no_file(table: Path, directory: str) -> None:
    plant(table, directory)
    ds = tw.dataset(table)
    assert ds.to_table().column("a").to_pylist() == [2, 3]
    assert [version["version"] for version in ds.versions()] == [1, 2]
    assert list(ds.tags.list()) == ["v1"]
    assert list(ds.branches.list()) == ["b"]
    ds.insert(ROWS)
    assert ds.checkout_version("v1").count_rows() == 3
    assert nothing_lost(table)


def make_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


OBSTACLES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a directory": lambda path: path.symlink_to(path.parent),
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", OBSTACLES)
def test_a_manifest_that_is_no_file(table: Path, kind: str) -> None:
    OBSTACLES[kind](table / manifest_path(3, v2=True))
    ds = tw.dataset(table)
    assert ds.version == 2
    before = sorted(os.listdir(table / "data"))
    with pytest.raises(StorageError, match="pipe or broken link has this name"):
        ds.insert(ROWS)
    assert sorted(os.listdir(table / "data")) == before
    assert ds.to_table().num_rows == 2


@pytest.mark.parametrize("kind", OBSTACLES)
def test_a_tag_that_is_no_file(table: Path, kind: str) -> None:
    OBSTACLES[kind](table / "_refs" / "tags" / "odd.json")
    assert list(tw.dataset(table).tags.list()) == ["v1"]


def test_a_tag_that_is_a_link_is_replaced_not_followed(table: Path) -> None:
    kept = table.parent / "outside" / "tag.json"
    shutil.copy(table / "_refs" / "tags" / "v1.json", kept)
    (table / "_refs" / "tags" / "linked.json").symlink_to(kept)
    ds, before = tw.dataset(table), kept.read_bytes()
    assert sorted(ds.tags.list()) == ["linked", "v1"]
    ds.tags.update("linked", 2)
    assert kept.read_bytes() == before
    assert ds.checkout_version("linked").version == 2
    ds.tags.delete("linked")
    assert kept.exists()


@pytest.mark.parametrize("kind", OBSTACLES)
def test_a_data_file_that_is_no_file(table: Path, kind: str) -> None:
    (name,) = os.listdir(table / "data")
    os.unlink(table / "data" / name)
    OBSTACLES[kind](table / "data" / name)
    with pytest.raises(CorruptTable, match="no regular file"):
        tw.dataset(table).to_table()


def test_a_table_behind_links(table: Path, tmp_path: Path) -> None:
    """The address itself may lead through links; what is dropped is what it names."""
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(table)
    for root in (tmp_path / "elsewhere" / "t", tmp_path / "link"):
        ds = tw.dataset(root)
        rows = ds.count_rows()
        ds.insert(ROWS)
        assert ds.count_rows() == rows + 3
    tw.LanceDataset.drop(tmp_path / "link")
    assert os.listdir(table) == []
    tw.write_dataset(ROWS, tmp_path / "link")
    tw.LanceDataset.drop(tmp_path / "elsewhere" / "t")
    assert not table.exists() and nothing_lost(table)


def test_data_on_another_disk(table: Path, tmp_path: Path) -> None:
    shutil.move(table / "data", tmp_path / "disk")
    (table / "data").symlink_to(tmp_path / "disk")
    ds = tw.dataset(table)
    ds.insert(ROWS)
    assert ds.to_table().num_rows == 5
    assert len(os.listdir(tmp_path / "disk")) == 2
    with pytest.raises(tw.errors.InvalidRequest):  # a failed write removes its own file there as well
        ds.insert(iter([ROWS.to_batches()[0], pa.record_batch({"a": ["text"]})]))
    assert len(os.listdir(tmp_path / "disk")) == 2
    tw.LanceDataset.drop(table)
    assert len(os.listdir(tmp_path / "disk")) == 2
    assert not os.path.lexists(table)


def test_drop_removes_manifests_last(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop that was interrupted can be repeated: as long as files are left there is a table."""
    unlink, removed = os.unlink, []

    def interrupted(path: str, *, dir_fd: int | None = None) -> None:
        if len(removed) == 5:
            raise OSError(5, "Input/output error")
        removed.append(path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", interrupted)
    with pytest.raises(StorageError, match="Could not delete"):
        tw.LanceDataset.drop(table)
    monkeypatch.undo()
    assert len([name for name in os.listdir(table / "_versions") if name.endswith(".manifest")]) == 2
    tw.LanceDataset.drop(table)
    assert not table.exists()


def test_a_branch_whose_files_could_not_be_deleted(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description went first: the branch is gone, and the same call again removes what is left of its files."""
    ds = tw.dataset(table)
    ds.create_branch("late").insert({"a": [7]})

    def refused(*arguments: Any, **options: Any) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("tablewright.storage.local_files.remove_tree", refused)
        with pytest.raises(
            StorageError, match=r"Could not delete .* Branch late is deleted already; the same"
        ) as caught:
            ds.branches.delete("late")
    assert not caught.value.nothing_written
    assert "late" not in ds.branches.list() and (table / "tree" / "late").exists()
    ds.branches.delete("late")
    assert not (table / "tree" / "late").exists()


def test_a_branch_is_written_where_a_link_leads(table: Path, tmp_path: Path) -> None:
    (tmp_path / "other-disk").mkdir()
    (table / "tree").mkdir(exist_ok=True)
    (table / "tree" / "linked").symlink_to(tmp_path / "other-disk")
    tw.dataset(table).create_branch("linked")
    assert (tmp_path / "other-disk" / "_versions").is_dir()


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_an_interrupted_drop_never_shows_an_older_version(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data files go before manifests, and of manifests the newest goes last, on branches too."""
    target: Any = os if where == "disk" else MemoryStore
    name = "unlink" if where == "disk" else "delete"
    delete = getattr(target, name)
    cut, reached = 0, True
    while reached:
        uri = f"memory://half-dropped-{cut}" if where == "memory" else str(tmp_path / f"t{cut}")
        ds = tw.write_dataset({"id": [1]}, uri)
        ds.delete("true")
        ds.insert({"id": [2]})
        ds.create_branch("work").insert({"id": [3]})
        left, reached = cut, False

        def interrupted(*arguments: Any, **options: Any) -> None:
            nonlocal left, reached
            reached = not left
            if reached:
                raise StorageError("interrupted")
            left -= 1
            delete(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(target, name, interrupted)
            with suppress(StorageError):
                tw.LanceDataset.drop(uri)
        for branch, rows in ((None, [2]), ("work", [2, 3])):
            with suppress(TablewrightError):
                opened = tw.dataset(uri) if branch is None else tw.dataset(uri).checkout_version((branch, None))
                assert opened.to_table()["id"].to_pylist() == rows, f"{branch} after {cut} files"
        cut += 1
    assert cut > 10
