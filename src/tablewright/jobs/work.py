"""One attempt under way: the engine for its stages, the files that it has written, and what is measured.

Tests: ``tests/unit/jobs/test_work.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tablewright.engine.base import Outcome
from tablewright.engine.choose import Choice
from tablewright.engine.costs import Workload
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.world import World

__all__ = ["TaskResult", "Work"]


class TaskResult(Protocol):
    """What a task returns: metadata only, never rows."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the task wrote, below the table's root."""

    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...


T = TypeVar("T")
R = TypeVar("R", bound=TaskResult)


@dataclass(frozen=True, slots=True)
class Work:
    """What a job works with during one attempt.

    ``files`` are removed if the attempt fails; ``stays_here`` is the reason why its tasks can't leave this process.
    """

    table: Table
    files: UncommittedFiles
    report: Report
    stays_here: str | None = None

    @property
    def world(self) -> World:
        """The world of the table."""
        return self.table.world

    def choose(self, work: Workload) -> Choice:
        """The engine for a stage."""
        return self.table.choose(work, stays_here=self.stays_here)

    def run(
        self, name: str, run: Callable[[T, World], R], tasks: Sequence[T], choice: Choice, *, fragments: int = 0
    ) -> list[R]:
        """Run the tasks of a stage over this many fragments; ``files`` gets the files of each task that succeeded."""
        with self.report.stage(name, choice, len(tasks), fragments) as stage:
            results = choice.engine.map(
                run, tasks, self.world, describe=name, keep=lambda result: self.files.add(result.paths)
            )
            stage.add(results)
        return results

    def outcomes(
        self, name: str, run: Callable[[T, World], R], tasks: Sequence[T], choice: Choice, *, fragments: int = 0
    ) -> list[Outcome[R]]:
        """As :meth:`run`, where a task that fails does not stop the others: what became of each."""
        with self.report.stage(name, choice, len(tasks), fragments) as stage:
            outcomes = choice.engine.outcomes(
                run, tasks, self.world, describe=name, keep=lambda result: self.files.add(result.paths)
            )
            stage.add(outcome.result for outcome in outcomes if outcome.result is not None)
        return outcomes
