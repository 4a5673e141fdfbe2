from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tablewright.errors import AccessDenied, StorageError
from tablewright.storage import LocalStore, Store, open_store
from tablewright.storage.local_files import make_directories
from tablewright.storage.subtree import SubtreeStore, unfinished_files


def test_opening_and_reading_create_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "deep" / "table")
    assert list(store.list("_versions")) == []
    assert os.listdir(tmp_path) == []
    store.put("a", b"x")
    assert (tmp_path / "deep" / "table" / "a").read_bytes() == b"x"


def test_directories_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b" / "c"
    for _ in range(2):
        make_directories(str(deep), durable=True)
        assert deep.is_dir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for place in ("file", "file/a", "link", "link/a"):
        with pytest.raises(OSError, match=place.split("/")[0]):
            make_directories(str(tmp_path / place), durable=False)
    made: list[str] = []

    def refused(path: str) -> None:
        made.append(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr("os.mkdir", refused)  # as /proc does
    with pytest.raises(FileNotFoundError):
        make_directories(str(tmp_path / "d"), durable=False)
    assert len(made) <= 2 + len(tmp_path.parts)


def test_a_writer_that_died_leaves_no_visible_object(tmp_path: Path) -> None:
    (tmp_path / "_versions").mkdir()
    (tmp_path / "_versions" / "1.manifest#1").write_bytes(b"half a mani")
    store = open_store(tmp_path)
    assert list(store.list("_versions")) == []
    assert [info.path for info in unfinished_files(store, "_versions")] == ["_versions/1.manifest#1"]
    below = SubtreeStore(store, "_versions")
    assert [info.path for info in unfinished_files(below, "")] == ["1.manifest#1"]
    assert list(unfinished_files(open_store("memory://unfinished"), "")) == []
    assert store.put_if_absent("_versions/1.manifest", b"whole")
    assert store.get("_versions/1.manifest") == b"whole"
    assert (tmp_path / "_versions" / "1.manifest#1").exists()


def test_losing_leaves_no_temporary_file(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.put_if_absent("a", b"1")
    assert not store.put_if_absent("a", b"2")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["with space", "per%20cent", "hash#1", "ü", "question?", "a:b"])
def test_directories_of_any_name(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / name)
    store.put("data/x", b"1")
    assert store.get("data/x") == b"1"
    assert [info.path for info in store.list("")] == ["data/x"]
    assert (tmp_path / name / "data" / "x").exists()
    codec = store.codec_location("data/x")
    assert codec is not None and codec.uri == str(tmp_path / name / "data" / "x")


def test_prune_removes_empty_directories_only(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert isinstance(store, LocalStore)
    store.put("tree/a/data/x", b"")
    store.put("tree/b/data/x", b"")
    store.delete("tree/a/data/x")
    store.prune("tree")
    assert sorted(os.listdir(tmp_path / "tree")) == ["b"]
    store.prune("nothing/here")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    store = open_store(tmp_path / "file" / "table")
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StorageError, match="choose another address"):
            write("a", b"1")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_refused_paths(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "a").write_bytes(b"x")
    (closed / "a").chmod(0)
    closed.chmod(0o000)
    try:
        errors = _as_nobody(open_store(closed))
    finally:
        closed.chmod(0o755)
    for verb, (kind, text) in errors.items():
        assert kind == "AccessDenied", (verb, kind, text)
        assert "permissions" in text
    assert set(errors) == {"get", "put", "put_if_absent", "head", "list", "delete"}


def _as_nobody(store: Store) -> dict[str, tuple[str, str]]:
    """The error of each method, without privileges."""
    acts: dict[str, Callable[[], object]] = {
        "get": lambda: store.get("a"),
        "put": lambda: store.put("b", b""),
        "put_if_absent": lambda: store.put_if_absent("b", b""),
        "head": lambda: store.head("a"),
        "list": lambda: list(store.list("")),
        "delete": lambda: store.delete("a"),
    }
    errors = {}
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        for name, act in acts.items():
            try:
                act()
            except Exception as error:
                errors[name] = (type(error).__name__, str(error))
    finally:
        if user == 0:
            os.seteuid(user)
    return errors


def test_access_denied_is_a_permission_error() -> None:
    assert issubclass(AccessDenied, PermissionError)


def test_listing_a_tree_that_changes(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(50):
        store.put(f"data/{number}", b"")
    (tmp_path / "data" / "dangling").symlink_to(tmp_path / "nowhere")
    seen = []
    for info in store.list("data"):
        seen.append(info.path)
        for number in range(50):
            store.delete(f"data/{number}")
    assert 1 <= len(seen) <= 50
    assert list(store.list("data")) == []
    (tmp_path / "file").write_bytes(b"")
    assert list(store.list("file")) == []


def test_large_objects_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, data, sizes = open_store(str(tmp_path / "t")), os.urandom(300_000), []
    written = os.write

    def write(descriptor: int, part: bytes) -> int:
        sizes.append(len(part))
        return written(descriptor, part[:100_000])  # the system may take less than it is given

    monkeypatch.setattr(os, "write", write)
    store.put("a/b", data)
    assert store.get("a/b") == data
    assert sizes == [131_072, 131_072, 100_000]
