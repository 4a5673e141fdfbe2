"""Single commits: an operation without files, and restoring a version."""

from __future__ import annotations

import pytest

import tablewright as tw
from tablewright.errors import VersionNotFound
from tablewright.format.transaction import MapUpdate, UpdateConfig
from tablewright.jobs.commit import commit_operation, restore
from tablewright.jobs.drop import drop_table
from tablewright.jobs.table import Table
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.testing import memory_world


def test_an_operation_passes_what_others_did() -> None:
    world = memory_world(seed=1)
    stale = Table(tw.write_dataset({"id": [1]}, world)._snapshot)
    tw.dataset(world).insert({"id": [2]})
    after = commit_operation(stale, UpdateConfig(config_updates=MapUpdate(entries={"k": "v"})))
    assert (after.version, dict(after.manifest.config), after.fragments.total_live_rows) == (3, {"k": "v"}, 2)


def test_restore_makes_an_old_version_the_newest() -> None:
    world = memory_world(seed=1)
    ds = tw.write_dataset({"id": [1]}, world)
    ds.insert({"id": [2]})
    after = restore(Table(open_snapshot(world, 1)))
    assert (after.version, after.fragments.total_live_rows) == (3, 1)


def test_a_table_that_was_replaced_is_not_restored() -> None:
    world = memory_world(seed=1)
    old = Table(tw.write_dataset({"id": [1]}, world)._snapshot)
    drop_table(world)
    tw.write_dataset({"other": [1]}, world)
    with pytest.raises(VersionNotFound, match="dropped or replaced"):
        restore(old)
