"""Switching stable row ids on as a job: one commit that writes metadata only.

Commits of others in between are no conflict, whatever they did. If one of them switched stable row ids on as well,
there is nothing left to commit.

Tests: ``tests/unit/operations/test_enable_row_ids.py``, ``tests/concurrency/test_races.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tablewright.errors import CommitConflict
from tablewright.jobs.attempt import Done, Job, Made
from tablewright.jobs.work import Work
from tablewright.operations.enable_row_ids import EnablePlan, plan_enable
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.transaction.commit import Committed
from tablewright.transaction.retry import RetryOptions
from tablewright.transaction.row_id_switch import enable_row_ids

__all__ = ["RowIdsJob"]


@dataclass(frozen=True)
class RowIdsJob(Job[EnablePlan, Made, None]):
    """Switch stable row ids on; the table's version stays if they are on already."""

    retries: RetryOptions = field(default_factory=RetryOptions)

    def plan(self, snapshot: Snapshot, now_ns: int) -> EnablePlan:
        """The rows that get ids."""
        return plan_enable(snapshot)

    def run(self, plan: EnablePlan, snapshot: Snapshot, work: Work) -> Made | Done[None]:
        """There are no tasks."""
        if plan.already_on:
            return Done(snapshot, None)
        transaction = enable_row_ids(snapshot.manifest, str(work.world.ids.uuid()))
        return Made(base=snapshot, transaction=transaction, files=work.files)

    def commit(self, made: Made, attempt: int) -> Committed:
        """Theirs counts if another writer switched it on first."""
        try:
            return super().commit(made, attempt)
        except CommitConflict:
            newest = open_newest(made.base)
            if newest.manifest.stable_row_ids:
                return Committed(newest, attempt)
            raise

    def result(self, made: Made, committed: Committed | None) -> None:
        """Nothing beside the new version."""
