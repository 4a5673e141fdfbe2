"""What a commit refers to is on the disk before the commit, and the commit before it is acknowledged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import StorageError
from tablewright.storage import open_store

ROWS = pa.table({"a": [1, 2, 3]})


class Watched:
    """The calls of this process that make files durable or visible, in order: (what, path)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        for name in ("fsync", "link", "replace", "mkdir"):
            self._watch(monkeypatch, name, getattr(os, name))

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str, call: Any) -> None:
        def watched(*arguments: Any) -> None:
            target = os.readlink(f"/proc/self/fd/{arguments[0]}") if name == "fsync" else arguments[-1]
            self.events.append((name, str(target)))
            call(*arguments)

        monkeypatch.setattr(os, name, watched)

    def synced_before(self, at: int) -> set[str]:
        return {path for name, path in self.events[:at] if name == "fsync"}


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to name descriptors")


@needs_proc
@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.insert(ROWS),
        lambda ds: ds.delete("a = 2"),
        lambda ds: ds.update({"a": "a + 1"}, where="a = 1"),
        lambda ds: ds.add_columns({"b": "a"}),
        lambda ds: ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(ROWS),
    ],
    ids=["insert", "delete", "update", "add_columns", "merge"],
)
def test_all_that_a_manifest_names_is_synced_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    ds = tw.write_dataset(ROWS, tmp_path / "t")
    before = {str(path) for path in tmp_path.rglob("*")}
    watched = Watched(monkeypatch)
    change(ds)
    new = {str(path) for path in tmp_path.rglob("*") if path.is_file()} - before
    (manifest,) = [path for path in new if path.endswith(".manifest")]
    visible = watched.events.index(("link", manifest))
    synced = watched.synced_before(visible)
    for path in new - {manifest}:
        if "_transactions" in path:  # the manifest holds it as well
            continue
        renamed_from = {name for name in synced if name.startswith(f"{path}#")}
        assert path in synced or renamed_from, path
        assert os.path.dirname(path) in synced
    assert any(path.startswith(f"{manifest}#") for path in synced)
    assert ("fsync", os.path.dirname(manifest)) in watched.events[visible:]


@needs_proc
def test_new_directories_are_synced_in_their_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    tw.write_dataset(ROWS, tmp_path / "deep" / "t")
    made = [path for name, path in watched.events if name == "mkdir"]
    assert set(made) == {str(tmp_path / path) for path in ("deep", "deep/t", *(f"deep/t/{d}" for d in PARTS))}
    manifest = next(at for at, (name, _) in enumerate(watched.events) if name == "link")
    assert {os.path.dirname(path) for path in made} <= watched.synced_before(manifest)


PARTS = ("data", "_transactions", "_versions")


@needs_proc
def test_the_option_that_leaves_it_to_the_operating_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    ds = tw.write_dataset(ROWS, tmp_path / "t", storage_options={"fsync": "false"})
    ds.insert(ROWS)
    assert not [path for name, path in watched.events if name == "fsync"]
    assert tw.dataset(tmp_path / "t").count_rows() == 6


@needs_proc
def test_hints_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = tw.write_dataset(ROWS, tmp_path / "t")
    watched = Watched(monkeypatch)
    ds.update_config({"a": "b"})
    assert not [path for name, path in watched.events if name == "fsync" and "hint.json" in path]


def test_a_sync_that_fails_before_the_name_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    store = open_store(tmp_path)
    monkeypatch.setattr(os, "fsync", failing)
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StorageError) as caught:
            write("a", b"1")
        assert caught.value.nothing_written
    assert os.listdir(tmp_path) == []


def test_file_systems_that_can_not_sync_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    ds = tw.write_dataset(ROWS, tmp_path / "t")
    ds.insert(ROWS)
    assert ds.count_rows() == 6
