"""Rows that move: what is under way at the same time, and what stays if one of both fails."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

import tablewright as tw
from tablewright.errors import StorageError
from tablewright.testing import Call, FailBefore, Fault, FaultyStore, Pause, memory_world
from tablewright.world import World


class Slow(FaultyStore):
    """A store that answers slowly: requests that do not depend on each other come at the same time."""

    answers_slowly = True


@pytest.fixture
def world() -> World:
    world = memory_world()
    tw.write_dataset({"id": list(range(20)), "text": [f"row {number}" for number in range(20)]}, world)
    return world


def _update(world: World) -> None:
    ds = tw.LanceDataset(world)
    assert ds.update({"text": "upper(text)"}, where="id = 3", write_mode="rewrite_rows")["num_rows_updated"] == 1


def _directory(call: Call) -> str:
    return call.path.split("/")[0] if call.method == "put" else ""


def test_new_rows_and_deletions_are_written_at_the_same_time(world: World) -> None:
    barrier = threading.Barrier(2)

    def wait(call: Call) -> Fault | None:
        together = _directory(call) in ("data", "_deletions")
        return Pause(lambda _: barrier.wait(timeout=20) and None) if together else None

    _update(replace(world, store=Slow(world.store, wait)))
    rows = tw.LanceDataset(world).to_table().to_pylist()
    assert sorted(row["text"] for row in rows if row["id"] == 3) == ["ROW 3"] and len(rows) == 20


@pytest.mark.parametrize("directory", ["data", "_deletions"])
def test_if_one_fails_no_file_of_the_other_stays(world: World, directory: str) -> None:
    before = {info.path for info in world.store.list("")}

    def fail(call: Call) -> Fault | None:
        return FailBefore() if _directory(call) == directory else None

    with pytest.raises(StorageError):
        _update(replace(world, store=Slow(world.store, fail)))
    assert {info.path for info in world.store.list("")} == before
