"""storage/uncommitted.py: files of work that failed are removed, those of work that succeeded stay."""

from __future__ import annotations

import pytest

from tablewright.errors import StorageError
from tablewright.storage import open_store
from tablewright.storage.base import Store
from tablewright.storage.memory import MemoryStore
from tablewright.storage.uncommitted import UncommittedFiles, discard_files, removed_on_failure


@pytest.fixture
def store() -> Store:
    store = open_store("memory://uncommitted-files")
    for name in ("a", "b", "c"):
        store.put(f"data/{name}", b"rows")
    return store


def _names(store: Store) -> list[str]:
    return sorted(entry.path for entry in store.list("data/"))


def test_work_that_succeeds_keeps_its_files(store: Store) -> None:
    with removed_on_failure(store) as files:
        files.add(["data/a"])
    assert _names(store) == ["data/a", "data/b", "data/c"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_work_that_fails_or_is_interrupted_loses_them(store: Store, error: type[BaseException]) -> None:
    def work() -> None:
        with removed_on_failure(store) as files:
            files.add(["data/a", "data/c"])
            raise error

    with pytest.raises(error):
        work()
    assert _names(store) == ["data/b"]


def test_files_that_come_after_giving_up_are_removed_at_once(store: Store) -> None:
    files = UncommittedFiles(store)
    files.remove()
    files.add(["data/b"])
    assert _names(store) == ["data/a", "data/c"]


def test_a_file_that_can_not_be_removed_does_not_save_the_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = MemoryStore.delete

    def refusing(self: MemoryStore, path: str) -> None:
        if path == "data/a":
            raise StorageError("no")
        delete(self, path)

    monkeypatch.setattr(MemoryStore, "delete", refusing)
    discard_files(store, ["data/a", "data/b"])
    assert _names(store) == ["data/a", "data/c"]
