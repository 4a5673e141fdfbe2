"""A commit that comes late looks for its files."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import StorageError
from tablewright.testing import FaultyStore, memory_world
from tablewright.transaction import written
from tablewright.transaction.written import LATE_SECONDS
from tablewright.world import World

CHANGES: dict[str, Any] = {
    "insert": lambda ds: ds.insert({"id": [9], "s": ["x"]}),
    "overwrite": lambda ds: tw.write_dataset({"id": [9]}, ds, mode="overwrite"),
    "delete": lambda ds: ds.delete("id = 1"),
    "update rows": lambda ds: ds.update({"s": "'u'"}, where="id = 1", write_mode="rewrite_rows"),
    "update columns": lambda ds: ds.update({"s": "'u'"}, where="id = 1", write_mode="rewrite_columns"),
    "merge": lambda ds: ds.merge_insert("id").when_matched_update_all().execute({"id": [2], "s": ["m"]}),
    "add columns": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "cast": lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    "compaction": lambda ds: ds.optimize.compact_files(),
    "index": lambda ds: ds.create_scalar_index("id", "BTREE"),
}


def table(world: World) -> tw.LanceDataset:
    return tw.write_dataset({"id": [1, 2, 3], "s": ["a", "b", "c"]}, world, max_rows_per_file=2)


def slowly(patch: pytest.MonkeyPatch, world: World, seconds: float, *, cleaned: bool) -> None:
    """Between the files of a change and its commit time passes, and files that no version names go."""
    quick, done = tw.dataset(world), []

    def paused(*args: Any) -> None:
        if not done:
            done.append(1)
            world.clock.sleep(seconds)
            if cleaned:
                quick.cleanup_old_versions(timedelta(days=99), delete_unverified=True)
        written.check_written(*args)

    for module in ("attempt", "write"):
        patch.setattr(f"tablewright.jobs.{module}.check_written", paused)


@pytest.mark.parametrize("name", list(CHANGES))
def test_files_that_are_gone_fail_a_late_commit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    before = table(world).to_table()
    slowly(monkeypatch, world, LATE_SECONDS + 1, cleaned=True)
    with pytest.raises(StorageError, match="Nothing was committed") as caught:
        CHANGES[name](tw.dataset(world))
    assert caught.value.nothing_written
    ds = tw.dataset(world)
    ds.validate()
    assert ds.to_table() == before


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_late_commit_whose_files_are_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    table(world)
    slowly(monkeypatch, world, LATE_SECONDS + 1, cleaned=False)
    CHANGES[name](tw.dataset(world))
    assert tw.dataset(world).version >= 2
    tw.dataset(world).validate()


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_quick_commit_asks_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a quick commit looks for no file")

    world = memory_world()
    ds = table(world)
    monkeypatch.setattr(written, "_missing", fail)
    CHANGES[name](ds)


def test_many_files_are_found_by_listing() -> None:
    world = memory_world()
    store = world.store
    paths = {f"data/{number}.lance" for number in range(50)}
    for path in sorted(paths)[1:]:
        store.put(path, b"x")
    recording = FaultyStore(store)
    assert written._missing(recording, paths) == {min(paths)}
    assert [call.method for call in recording.calls] == ["list"]  # one for each directory that has some of them
