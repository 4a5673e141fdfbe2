"""One stage of an attempt: results, measurements, and the files that are known."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import tablewright as tw
from tablewright.engine.costs import Workload
from tablewright.errors import StorageError
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.work import Work
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.testing import memory_world
from tablewright.world import World


@dataclass(frozen=True)
class Wrote:
    paths: tuple[str, ...]
    rows_read: int = 5
    bytes_read: int = 7
    bytes_written: int = 4


def write(number: int, world: World) -> Wrote:
    if number < 0:
        raise StorageError("a task failed")
    world.store.put(f"data/{number}", b"rows")
    return Wrote((f"data/{number}",))


@pytest.fixture
def work() -> Work:
    world = memory_world(seed=1)
    tw.write_dataset({"id": [1]}, world)
    return Work(Table(open_snapshot(world), "local"), UncommittedFiles(world.store), Report())


def listed(work: Work) -> list[str]:
    return [info.path for info in work.world.store.list("data/") if not info.path.endswith(".lance")]


def test_results_come_in_order_and_are_measured(work: Work) -> None:
    results = work.run("Writing", write, [2, 1], work.choose(Workload()), fragments=2)
    assert [result.paths for result in results] == [("data/2",), ("data/1",)]
    (stage,) = work.report.stages
    assert (stage.name, stage.tasks, stage.fragments) == ("Writing", 2, 2)
    assert (stage.rows_read, stage.bytes_read, stage.bytes_written, stage.num_files_written) == (10, 14, 8, 2)
    work.files.remove()
    assert listed(work) == []


def test_files_of_tasks_that_succeeded_beside_one_that_failed_are_known(work: Work) -> None:
    with pytest.raises(StorageError, match="a task failed"):
        work.run("Writing", write, [1, 2, -1], work.choose(Workload()))
    assert listed(work)
    work.files.remove()
    assert listed(work) == []
