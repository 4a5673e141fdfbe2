"""Open files wait for the next read: only of the same file, only while their store lives, and never too many."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tablewright.data.encoder import DataFileWriter
from tablewright.data.idle import Idle, IdleReaders
from tablewright.storage import Store, open_store
from tablewright.storage.identity import SETTLED_NS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "t"))


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are old enough at once."""
    monkeypatch.setattr("tablewright.data.idle.is_settled", lambda identity: True)


def _write(store: Store, path: str, first: int = 0) -> None:
    batch = pa.record_batch({"a": range(first, first + 100), "b": range(100)})
    writer = DataFileWriter(store, path, batch.schema, "2.1")
    writer.write(batch)
    writer.close()


def _open(readers: IdleReaders, store: Store, path: str = "data/x.lance", column: str = "a") -> Idle:
    return readers.open(store, path, [column], describe=False)


def _first(idle: Idle) -> int:
    return int(next(iter(idle.reader.read(0, 1, 1)))[0][0].as_py())


def test_an_idle_reader_of_the_same_columns_is_used_again(store: Store) -> None:
    _write(store, "data/x.lance")
    readers = IdleReaders()
    first = _open(readers, store)
    assert _open(readers, store) is not first, "it is being read"
    readers.keep(first)
    assert len(readers) == 1
    assert _open(readers, store, column="b") is not first
    assert _open(readers, open_store(store.location.uri)) is not first, "another store has opened it"
    assert _open(readers, store) is first
    assert len(readers) == 0 and _first(first) == 0


def test_a_file_that_was_written_again_is_opened_again(store: Store) -> None:
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    place = Path(store.location.uri) / "data/x.lance"
    place.unlink()
    _write(store, "data/x.lance", first=500)
    assert _first(_open(readers, store)) == 500
    copy = place.with_suffix(".copy")
    shutil.copy2(place, copy)
    readers.clear()
    kept = _open(readers, store)
    readers.keep(kept)
    os.replace(copy, place)
    assert _open(readers, store) is not kept


def test_a_removed_file_is_missing(store: Store) -> None:
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    store.delete("data/x.lance")
    with pytest.raises(Exception, match=r"x\.lance"):
        _open(readers, store)


def test_readers_are_bounded_and_the_longest_unused_goes_first(store: Store) -> None:
    readers = IdleReaders(readers_max=2)
    opened = {}
    for name in ("x", "y", "z"):
        _write(store, f"data/{name}.lance")
        opened[name] = _open(readers, store, f"data/{name}.lance")
        readers.keep(opened[name])
    assert len(readers) == 2
    assert _open(readers, store, "data/x.lance") is not opened["x"]
    assert _open(readers, store, "data/z.lance") is opened["z"]


def test_they_are_closed_with_their_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    del store
    gc.collect()
    assert len(readers) == 0


def test_files_in_memory_are_not_kept(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}")
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    assert len(readers) == 0


def test_a_file_of_this_moment_is_not_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.data.idle.is_settled", lambda identity: False)
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    assert len(readers) == 0 and SETTLED_NS > 0


def test_a_forked_process_has_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(store, "data/x.lance")
    readers = IdleReaders()
    readers.keep(_open(readers, store))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert len(readers) == 0
