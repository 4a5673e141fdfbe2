"""Update as a job: find the rows, choose rows or columns for each fragment, write, commit.

Tests: ``tests/unit/jobs/test_update.py``, ``tests/unit/api/test_changes.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablewright.expressions.filters import Filter
from tablewright.jobs.attempt import Job, Made
from tablewright.jobs.work import Work
from tablewright.jobs.workloads import rewrite_work, scan_work
from tablewright.operations.rewrite.costs import Decision
from tablewright.operations.update import (
    Found,
    UpdateOptions,
    UpdatePlan,
    decide_update,
    finish_update,
    found_rows,
    plan_update,
    run_update_task,
    update_tasks,
)
from tablewright.reading.match import Matched, run_match_task
from tablewright.reading.scan_task import narrowed
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed
from tablewright.transaction.isolation import unchanged_if
from tablewright.transaction.retry import RetryOptions

__all__ = ["UpdateJob"]


@dataclass(frozen=True, kw_only=True)
class UpdateJob(Job[UpdatePlan, Made, dict[str, int]]):
    """Give columns new values in the rows that match."""

    updates: Mapping[str, str]
    where: Filter | None = None
    options: UpdateOptions = field(default_factory=UpdateOptions)
    retries: RetryOptions = field(default_factory=RetryOptions)
    isolation: str = "snapshot"
    stays_here: str | None = None

    def plan(self, snapshot: Snapshot, now_ns: int) -> UpdatePlan:
        """Decide what is assigned and how the rows are found."""
        return plan_update(snapshot, self.updates, self.where, self.options, now_ns)

    def run(self, plan: UpdatePlan, snapshot: Snapshot, work: Work) -> Made:
        """Find the rows, decide each fragment, and write it."""
        found, decision = self._decide(plan, work)
        tasks = update_tasks(plan, found, decision)
        results = work.run("Updating", run_update_task, tasks, work.choose(rewrite_work(decision, len(tasks))))
        work.report.fragments += len(decision.choices)
        work.report.notes = [decision]
        transaction, affected = finish_update(plan, results, work.world.ids.uuid())
        return Made(
            base=snapshot,
            transaction=transaction,
            files=work.files,
            affected=affected,
            recheck=unchanged_if(self.isolation, snapshot, "Update"),
        )

    def result(self, made: Made, committed: Committed | None) -> dict[str, int]:
        """How many rows were updated."""
        return {"num_rows_updated": made.affected_rows(committed)}

    def explain(self, plan: UpdatePlan, work: Work, *, verbose: bool) -> str:
        """The plan, what would be written of each fragment, and where it runs. The rows are looked for."""
        found, decision = self._decide(plan, work)
        scan = plan.search.scan
        engine, why = work.choose(scan_work(scan))
        match = "none: all live rows match" if plan.updates_all else f"{engine.name}: {why}"
        size = f", estimated_bytes={plan.estimated_bytes}, tasks={len(scan.tasks)}" if verbose else ""
        engine, why = work.choose(rewrite_work(decision, len(update_tasks(plan, found, decision))))
        return f"{plan}\n  match: engine={match}{size}\n{decision}\n  write: engine={engine.name}: {why}"

    def _decide(self, plan: UpdatePlan, work: Work) -> tuple[Found, Decision]:
        matched: list[Matched] = []
        if (known := plan.search.known_rows()) is not None:
            matched = [Matched(rows=known)]
        elif not plan.updates_all:
            match = narrowed(plan.search.scan)
            matched = work.run("Matching", run_match_task, match.tasks, work.choose(scan_work(match)))
        found = found_rows(plan, matched)
        return found, decide_update(plan, found)
