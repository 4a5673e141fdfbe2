"""Delete as a job: what it makes, counts and explains. As callers see it: tests/unit/api/test_changes.py."""

from __future__ import annotations

from typing import Any

import pytest

import tablewright as tw
from tablewright.format.transaction import Delete
from tablewright.jobs.attempt import Made, make, run_job
from tablewright.jobs.delete import DeleteJob
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.work import Work
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.testing import memory_world


@pytest.fixture
def table() -> Table:
    world = memory_world(seed=1)
    tw.write_dataset({"id": range(20)}, world, max_rows_per_file=10)
    return Table(open_snapshot(world), "local")


@pytest.mark.parametrize(
    ("predicate", "count", "stages", "updated", "removed"),
    [
        ("id in (3, 15)", 2, 1, [0, 1], ()),
        ("id < 10", 10, 1, [], (0,)),
        ("id > 99", 0, 1, [], ()),
        ("true", 20, 0, [], (0, 1)),
    ],
)
def test_one_transaction(
    table: Table, predicate: str, count: int, stages: int, updated: list[int], removed: tuple[int, ...]
) -> None:
    report = Report()
    made: Any = make(DeleteJob(predicate=predicate), table, report)
    assert isinstance(made, Made) and isinstance(made.transaction.operation, Delete)
    assert [fragment.id for fragment in made.transaction.operation.updated_fragments] == updated
    assert made.transaction.operation.deleted_fragment_ids == removed
    assert DeleteJob(predicate=predicate).result(made, None) == {"num_deleted_rows": count}
    assert (len(report.stages), report.attempts) == (stages, 1)


def test_rows_that_others_deleted_first_are_not_counted(table: Table) -> None:
    assert run_job(DeleteJob(predicate="id < 5"), table).result == {"num_deleted_rows": 5}
    done = run_job(DeleteJob(predicate="id < 7"), table)
    assert (done.result, done.snapshot.version) == ({"num_deleted_rows": 2}, 3)


def test_serializable_runs_again(table: Table) -> None:
    run_job(DeleteJob(predicate="id = 15"), table)
    report = Report()
    done = run_job(DeleteJob(predicate="id < 7", isolation="serializable"), table, report)
    assert (done.result, report.attempts) == ({"num_deleted_rows": 7}, 2)


def test_it_explains_where_it_runs(table: Table) -> None:
    work = Work(table, UncommittedFiles(table.world.store), Report())

    def explained(predicate: str, **options: bool) -> str:
        job = DeleteJob(predicate=predicate)
        return job.explain(job.plan(table.snapshot, 0), work, **options)

    assert explained("id = 1", verbose=False).splitlines()[-1].startswith("  engine=local: ")
    assert "estimated_bytes=" in explained("id = 1", verbose=True)
    assert explained("true", verbose=True).endswith("engine=none: the metadata is enough")
