"""Temporary files: a directory of our own, and an error that names the variable to set."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from tablewright.errors import StorageError
from tablewright.storage.temporary import new_temporary_directory, temporary_space


def test_directories_are_new_and_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one, other = new_temporary_directory(), new_temporary_directory()
    assert one != other and {Path(each).parent for each in (one, other)} == {tmp_path}
    assert all(os.stat(each).st_mode & 0o077 == 0 for each in (one, other))


def test_no_place_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match=r"Could not write a temporary file in .*nowhere.*set TMPDIR"):
        new_temporary_directory()


def test_a_full_disk_is_named_and_our_own_errors_pass() -> None:
    with pytest.raises(StorageError, match="No space left on device"), temporary_space():
        raise OSError(errno.ENOSPC, "full")
    own = StorageError("ours")
    with pytest.raises(StorageError) as caught, temporary_space():
        raise own
    assert caught.value is own
