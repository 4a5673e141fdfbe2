from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tablewright.cache import CacheKind
from tablewright.storage import identity
from tablewright.storage.base import Location
from tablewright.storage.identity import are_unchanged, is_local, is_settled, local_identity, place_of, trust_written


def test_what_changes_a_file_changes_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    before = local_identity(str(path))
    assert before is not None and before[2] == 3 and before == local_identity(str(path))
    copy = shutil.copy2(path, tmp_path / "b")
    assert local_identity(str(copy)) != before
    path.write_bytes(b"more")
    assert local_identity(str(path)) != before
    os.replace(copy, path)
    found = local_identity(str(path))
    assert found is not None and found[2] == 3 and found != before


def test_files_are_unchanged_together(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        Path(path).write_bytes(b"one")
    files = [(path, found) for path in paths if (found := local_identity(path)) is not None]
    assert len(files) == 3 and are_unchanged(files) and are_unchanged([])
    shutil.copy2(paths[1], tmp_path / "copy")
    os.replace(tmp_path / "copy", paths[1])
    assert not are_unchanged(files) and are_unchanged([files[0], files[2]])
    os.unlink(paths[2])
    assert not are_unchanged(files[2:]) and not are_unchanged([("a\0b", files[0][1])])


def test_no_regular_file_has_none(tmp_path: Path) -> None:
    assert local_identity(str(tmp_path)) is None
    assert local_identity(str(tmp_path / "missing")) is None
    assert local_identity("a\0b") is None


def test_a_file_that_changed_just_now_is_not_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    found = local_identity(str(path))
    assert found is not None
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    assert not is_settled(found)
    monkeypatch.setattr(identity, "SETTLED_NS", 0)
    assert is_settled(found)


def test_a_file_that_this_process_has_written_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    path = tmp_path / "a"
    path.write_bytes(b"one")
    location = Location(str(path))
    trust_written(location)
    found = local_identity(str(path))
    assert found is not None and is_settled(found)
    path.write_bytes(b"three")
    changed = local_identity(str(path))
    assert changed is not None and not is_settled(changed)
    for other in (None, Location(str(tmp_path / "missing")), Location("s3://b/t")):
        trust_written(other)


def test_few_written_files_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    monkeypatch.setattr(identity, "_WRITTEN_MIN", 10)
    identity.written.clear()
    found = []
    for number in range(50):
        path = tmp_path / str(number)
        path.write_bytes(bytes(number))
        trust_written(Location(str(path)))
        found.append(local_identity(str(path)))
    settled = [number for number, each in enumerate(found) if each is not None and is_settled(each)]
    assert settled[-10:] == list(range(40, 50)) and len(settled) <= 20


def test_one_identity_for_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose times are coarse may give a new file the inode and the times of one that was removed."""
    (tmp_path / "a").write_bytes(b"one")
    monkeypatch.setattr(identity, "local_identity", lambda path: (1, 2, 3, 4, 5))
    identity.written.clear()
    kind = CacheKind[str]("test of identities")
    for _ in range(2):
        trust_written(Location(str(tmp_path / "a")))
        before = kind.find("key")
        kind.keep("key", "kept of the first", 10)
    assert before is None
    identity.written.clear()


def test_credentials_are_part_of_a_place() -> None:
    one, two = Location("s3://b/t", {"key": "1"}), Location("s3://b/t", {"key": "2"})
    assert place_of(one) == place_of(Location("s3://b/t", {"key": "1"})) != place_of(two)
    assert is_local(Location("/tmp/t")) and not is_local(one)
