"""A table as jobs see it."""

from __future__ import annotations

import tablewright as tw
from tablewright.engine.costs import Workload
from tablewright.engine.local import LocalEngine
from tablewright.jobs.table import Table
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.testing import memory_world

LARGE = Workload(bytes_read=1 << 40)


def test_another_version_of_the_same_table() -> None:
    world = memory_world(seed=1)
    tw.write_dataset({"id": [1]}, world).insert({"id": [2]})
    first = Table(open_snapshot(world, 1), "local")
    second = first.at(open_snapshot(world))
    assert (first.snapshot.version, second.snapshot.version, second.engine) == (1, 2, "local")
    assert second.world is world


def test_where_work_runs() -> None:
    world = memory_world(seed=1)
    tw.write_dataset({"id": [1]}, world)
    engine, why = Table(open_snapshot(world), "spark").choose(LARGE)
    assert (type(engine), why) == (LocalEngine, "the table lives in this process")


def test_work_that_cannot_leave(tmp_path) -> None:
    ds = tw.write_dataset({"id": [1]}, tmp_path / "t.lance")
    engine, why = Table(ds._snapshot, "spark").choose(LARGE, stays_here="an open file")
    assert (type(engine), why) == (LocalEngine, "an open file")
    assert Table(ds._snapshot, "local").choose(LARGE).why == 'engine="local" was asked for'
