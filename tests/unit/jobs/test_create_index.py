"""Builds of indices as jobs: what they leave where they fail, and what they do with what others committed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operations.create_index.tables import rows, snapshot_of, table

import tablewright as tw
from tablewright.errors import CorruptTable, IndexExists, InternalError
from tablewright.format.index_kinds import BTREE, REUSE_NAME
from tablewright.indices import registry
from tablewright.indices.registry import KindFunctions
from tablewright.jobs.attempt import run_job
from tablewright.jobs.create_index import CreateIndexJob, OptimizeIndicesJob
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.operations.create_index.merge import OptimizeOptions
from tablewright.operations.create_index.options import IndexRequest


def files_of(dataset: Any) -> set[str]:
    return {info.path for info in snapshot_of(dataset).world.store.list("_indices")}


def run(dataset: Any, **request: Any) -> Any:
    job = CreateIndexJob(IndexRequest(column="id", kind=BTREE, **request), dataset._table.world)
    return run_job(job, dataset._table)


def test_only_the_files_of_the_index_stay():
    dataset = table()
    done = run(dataset)
    (entry,) = done.result
    assert files_of(dataset) == {f"_indices/{entry.uuid}/{file.path}" for file in entry.files}
    assert done.snapshot.manifest.indices == (entry,)


@pytest.mark.parametrize(
    "error", [CorruptTable("x", ("it is broken",)), InternalError("a mistake"), KeyboardInterrupt()]
)
def test_a_build_that_fails_leaves_nothing(monkeypatch, error):
    def build(plan, world, stage):
        world.store.put(f"{plan.directory}/page_data.lance", b"half")
        raise error

    monkeypatch.setitem(registry._OFFERED, BTREE.name, KindFunctions(supported=lambda kind: True, build=build))
    dataset = table()
    with pytest.raises(type(error)):
        run(dataset)
    assert files_of(dataset) == set()
    assert tw.dataset(dataset.uri).version == 1


def test_parts_that_a_kind_forgot_are_removed(monkeypatch):
    real = registry.offered(BTREE)

    def build(plan, world, stage):
        world.store.put(f"{plan.directory}/part-of-a-task-that-ran-twice", b"half")
        return real.build(plan, world, stage)

    monkeypatch.setitem(registry._OFFERED, BTREE.name, KindFunctions(supported=real.supported, build=build))
    dataset = table()
    (entry,) = run(dataset).result
    assert len(files_of(dataset)) == len(entry.files)


@pytest.mark.parametrize("stable", [False, True])
def test_what_was_built_is_not_built_again(monkeypatch, stable):
    """Past appends, deletions, compactions and another index of the name."""
    real, builds = registry.offered(BTREE), []

    def build(plan, world, stage):
        builds.append(plan.version)
        return real.build(plan, world, stage)

    stale = table(stable=stable)
    uri = stale.uri
    tw.dataset(uri).delete("id = 3")
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=20)
    tw.dataset(uri).insert(rows(100, 105))
    tw.dataset(uri).create_scalar_index("id", "BTREE")
    monkeypatch.setitem(
        registry._OFFERED,
        BTREE.name,
        KindFunctions(supported=real.supported, build=build, remap=real.remap, search=real.search),
    )
    done = run(stale)
    assert builds == [1]
    assert len(done.snapshot.manifest.indices) == 1
    (entry,) = done.result
    here = done.snapshot.fragments
    assert sum(here.by_id(id).live_rows for id in entry.coverage if here.has(id)) == 29
    with pytest.raises(IndexExists):
        run(stale, replace=False)


def test_nothing_to_optimize_commits_nothing():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    report = Report()
    done = run_job(OptimizeIndicesJob(OptimizeOptions(), dataset._table.world), dataset._table, report)
    assert (done.result, done.snapshot.version) == ((), dataset.version)


def test_the_record_of_deferred_compactions_is_trimmed_when_the_last_index_caught_up():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "BTREE")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.optimize.optimize_indices(index_names=["id_idx"])
    assert {index["name"] for index in dataset.list_indices()} == {"id_idx", "s_idx", REUSE_NAME}
    dataset.optimize.optimize_indices()
    assert {index["name"] for index in dataset.list_indices()} == {"id_idx", "s_idx"}
    assert dataset.stats.index_stats("s_idx")["num_unindexed_rows"] == 0


def test_a_table_at_an_old_version_is_committed_on_the_newest():
    dataset = table()
    dataset.insert(rows(100, 105))
    old = Table(tw.dataset(dataset.uri, version=1)._snapshot)
    job = CreateIndexJob(IndexRequest(column="id", kind=BTREE), old.world)
    assert run_job(job, old).snapshot.version == 3
