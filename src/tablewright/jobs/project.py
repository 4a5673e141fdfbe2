"""Changes of the schema alone as a job: columns dropped, renamed, or of another nullability. No data file is written.

Tests: ``tests/unit/api/test_columns.py``, ``tests/concurrency/test_schema_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablewright.jobs.attempt import Done, Job, Made
from tablewright.jobs.work import Work
from tablewright.operations.columns.project import ProjectPlan, check_no_nulls, finish_project
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed

__all__ = ["ProjectJob"]


@dataclass(frozen=True)
class ProjectJob(Job[ProjectPlan | None, Made, bool]):
    """A change of the schema, decided again on the newest version after a conflict.

    ``decide`` returns ``None`` where the change needs new values as well: then nothing is committed, and the result is
    ``False``.
    """

    decide: Callable[[Snapshot], ProjectPlan | None]

    def plan(self, snapshot: Snapshot, now_ns: int) -> ProjectPlan | None:
        """The schema afterwards."""
        return self.decide(snapshot)

    def run(self, plan: ProjectPlan | None, snapshot: Snapshot, work: Work) -> Made | Done[bool]:
        """Check what the new schema promises."""
        if plan is None:
            return Done(snapshot, False)
        check_no_nulls(plan, snapshot)
        return Made(base=snapshot, transaction=finish_project(plan, work.world.ids.uuid()), files=work.files)

    def result(self, made: Made, committed: Committed | None) -> bool:
        """The change is committed."""
        return True
