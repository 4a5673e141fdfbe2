from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tablewright.storage import identity
from tablewright.storage.base import Location
from tablewright.storage.identity import are_unchanged, is_local, is_settled, local_identity, place_of


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


def test_credentials_are_part_of_a_place() -> None:
    one, two = Location("s3://b/t", {"key": "1"}), Location("s3://b/t", {"key": "2"})
    assert place_of(one) == place_of(Location("s3://b/t", {"key": "1"})) != place_of(two)
    assert is_local(Location("/tmp/t")) and not is_local(one)
