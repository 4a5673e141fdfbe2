"""Delete as a job: find the rows, write deletion files, commit.

Tests: ``tests/unit/jobs/test_delete.py``, ``tests/unit/api/test_changes.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tablewright.expressions.filters import Filter
from tablewright.format.row_set import RowSet
from tablewright.jobs.attempt import Job, Made
from tablewright.jobs.work import Work
from tablewright.jobs.workloads import known_work, scan_work
from tablewright.operations.delete import (
    DeletePlan,
    delete_tasks,
    finish_delete,
    hide_tasks,
    plan_delete,
    run_delete_task,
    run_hide_task,
)
from tablewright.operations.rewrite.hide import HiddenRows
from tablewright.reading.match import live_rows
from tablewright.reading.scan_task import narrowed
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed
from tablewright.transaction.isolation import unchanged_if
from tablewright.transaction.retry import RetryOptions

__all__ = ["DeleteJob"]


@dataclass(frozen=True, kw_only=True)
class DeleteJob(Job[DeletePlan, Made, dict[str, int]]):
    """Delete the rows that a predicate is true for."""

    predicate: Filter
    retries: RetryOptions = field(default_factory=RetryOptions)
    isolation: str = "snapshot"
    stays_here: str | None = None
    use_scalar_index: bool | None = None

    def plan(self, snapshot: Snapshot, now_ns: int) -> DeletePlan:
        """Decide how the rows are found."""
        return plan_delete(snapshot, self.predicate, now_ns, self.use_scalar_index)

    def run(self, plan: DeletePlan, snapshot: Snapshot, work: Work) -> Made:
        """Find and hide the rows; where all rows go, their fragments go, and no task runs."""
        results: list[HiddenRows] = []
        everything: dict[int, RowSet] = {}
        if plan.deletes_all:
            everything = live_rows(snapshot, plan.fragments)
        elif (known := plan.search.known_rows()) is not None:
            results = work.run("Deleting", run_hide_task, hide_tasks(plan, known), work.choose(known_work(known)))
        else:
            scan = narrowed(plan.search.scan)
            results = work.run("Deleting", run_delete_task, delete_tasks(scan), work.choose(scan_work(scan)))
        transaction, affected = finish_delete(plan, results, everything, work.world.ids.uuid())
        work.report.fragments += len(affected.offsets)
        return Made(
            base=snapshot,
            transaction=transaction,
            files=work.files,
            affected=affected,
            recheck=unchanged_if(self.isolation, snapshot, "Delete"),
        )

    def result(self, made: Made, committed: Committed | None) -> dict[str, int]:
        """How many rows were deleted; those that others deleted first are not among them."""
        return {"num_deleted_rows": made.affected_rows(committed)}

    def explain(self, plan: DeletePlan, work: Work, *, verbose: bool) -> str:
        """The plan, and where it runs."""
        if plan.deletes_all:
            return f"{plan}\n  engine=none: the metadata is enough"
        engine, why = work.choose(scan_work(plan.search.scan))
        size = f", estimated_bytes={plan.estimated_bytes}, tasks={len(plan.tasks)}" if verbose else ""
        return f"{plan}\n  engine={engine.name}: {why}{size}"
