"""Update as a job: what it makes, counts and explains. As callers see it: tests/unit/api/test_changes.py."""

from __future__ import annotations

from typing import Any

import pytest

import tablewright as tw
from tablewright.format.transaction import Update, UpdateMode
from tablewright.jobs.attempt import Made, make, run_job
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.update import UpdateJob
from tablewright.jobs.work import Work
from tablewright.operations.update import UpdateOptions
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.testing import memory_world


@pytest.fixture
def table() -> Table:
    world = memory_world(seed=1)
    tw.write_dataset({"id": range(20), "x": [0] * 20}, world, max_rows_per_file=10)
    return Table(open_snapshot(world), "local")


def job(where: str | None, mode: str = "auto", **options: Any) -> UpdateJob:
    return UpdateJob(updates={"x": "x + 1"}, where=where, options=UpdateOptions(write_mode=mode), **options)


@pytest.mark.parametrize(
    ("where", "mode", "count", "stages", "expected"),
    [
        ("id = 3", "rewrite_rows", 1, ["Matching", "Updating"], UpdateMode.REWRITE_ROWS),
        ("id = 3", "rewrite_columns", 1, ["Matching", "Updating"], UpdateMode.REWRITE_COLUMNS),
        (None, "auto", 20, ["Updating"], UpdateMode.REWRITE_COLUMNS),
        ("id > 99", "auto", 0, ["Matching", "Updating"], UpdateMode.REWRITE_ROWS),
    ],
)
def test_one_transaction(
    table: Table, where: str | None, mode: str, count: int, stages: list[str], expected: UpdateMode
) -> None:
    report = Report()
    made: Any = make(job(where, mode), table, report)
    assert isinstance(made, Made) and isinstance(made.transaction.operation, Update)
    assert made.transaction.operation.update_mode == expected
    assert job(where).result(made, None) == {"num_rows_updated": count}
    assert [stage.name for stage in report.stages] == stages
    assert str(report.notes[0]).startswith(f"Decision: matched_rows={count}")


def test_a_failed_attempt_is_made_again_on_the_newest_version(table: Table) -> None:
    run_job(job("id = 3", "rewrite_rows"), table)
    report = Report()
    done = run_job(job("id < 5", "rewrite_rows"), table, report)
    assert (done.result, report.attempts) == ({"num_rows_updated": 5}, 2)
    assert sorted(tw.dataset(table.world).to_table(filter="x > 0")["x"].to_pylist()) == [1, 1, 1, 1, 2]


def test_it_explains_the_decision_and_where_it_runs(table: Table) -> None:
    work = Work(table, UncommittedFiles(table.world.store), Report())
    plan = job("id = 3").plan(table.snapshot, 0)
    lines = job("id = 3").explain(plan, work, verbose=True).splitlines()
    assert any(line.startswith("  match: engine=local: ") and "estimated_bytes=" in line for line in lines)
    assert any(line.startswith("Decision: matched_rows=1 in 1 fragments") for line in lines)
    assert lines[-1].startswith("  write: engine=local: ")
    everything = job(None).plan(table.snapshot, 0)
    assert "match: engine=none: all live rows match" in job(None).explain(everything, work, verbose=False)
