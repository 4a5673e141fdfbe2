from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablewright.operations.cleanup.delete import delete_paced, plan_deletes, run_delete
from tablewright.storage import SubtreeStore, open_store
from tablewright.testing import FailBefore, FaultyStore, memory_world, on_call, seeded_world
from tablewright.testing.worlds import SeededClock
from tablewright.world import World


@pytest.fixture(params=["memory", "local", "subtree", "one by one"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    match request.param:
        case "memory":
            return memory_world()
        case "local":
            return seeded_world(open_store(tmp_path / "t"))
        case "subtree":
            return seeded_world(SubtreeStore(open_store(tmp_path / "t"), "tree/b"))
        case _:
            return seeded_world(FaultyStore(memory_world().store))


def test_files_go_in_chunks_and_absent_ones_are_fine(world: World) -> None:
    paths = [f"data/{number}.lance" for number in range(25)]
    for path in (*paths, "data/kept.lance"):
        world.store.put(path, b"x")
    tasks = plan_deletes([*paths, "data/absent.lance", "absent/too.lance"], files_per_task=10)
    assert [len(task.paths) for task in tasks] == [10, 10, 7]
    assert [run_delete(task, world).failed for task in tasks] == [{}, {}, {}]
    assert [info.path for info in world.store.list("")] == ["data/kept.lance"]
    assert [run_delete(task, world).failed for task in tasks] == [{}, {}, {}]


def test_failures_are_counted_and_do_not_stop_the_others() -> None:
    store = memory_world().store
    for name in "abc":
        store.put(f"data/{name}", b"x")
    faulty = FaultyStore(store, on_call(FailBefore(), method="delete", path="data/b"))
    result = run_delete(plan_deletes(["data/a", "data/b", "data/c"])[0], seeded_world(faulty))
    assert set(result.failed) == {"data/b"}
    assert [info.path for info in store.list("")] == ["data/b"]


@pytest.mark.parametrize("inside", ["data", "data/stem"])
def test_no_link_is_followed(tmp_path: Path, inside: str) -> None:
    """A directory that became a link after the files were listed: what it leads to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.lance").write_text("precious")
    place = tmp_path / "t" / inside
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    world = seeded_world(open_store(tmp_path / "t"))
    path = f"{inside}/x.lance"
    assert set(run_delete(plan_deletes([path])[0], world).failed) == {path}
    assert (outside / "x.lance").exists()


def test_a_link_to_a_file_goes_itself(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    (tmp_path / "t" / "data").mkdir(parents=True)
    (tmp_path / "t" / "data" / "x.lance").symlink_to(tmp_path / "precious")
    run_delete(plan_deletes(["data/x.lance"])[0], seeded_world(open_store(tmp_path / "t")))
    assert (tmp_path / "precious").exists()
    assert not os.path.lexists(tmp_path / "t" / "data" / "x.lance")


def test_so_many_per_second() -> None:
    clock = SeededClock(step_ns=0)
    world = seeded_world(memory_world().store, clock=clock)
    delete_paced([f"data/{number}" for number in range(25)], world, 10)
    assert clock.slept == [1.0, 1.0]
