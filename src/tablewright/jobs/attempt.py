"""The attempt loop: plan on a version, run, commit; after a conflict again on the newest version.

1. The first attempt uses the version that the caller has, each further one the newest version of the same table.
2. *Make*: plan and run the tasks. A further attempt first asks the job whether what it made before can be moved onto
   the newer version (``rebase``), which may run tasks of its own; else it is planned and run again.
3. *Commit*. The transaction's own commit loop passes other versions by metadata alone; a conflict that it raises needs
   another attempt. So does a version that was cleaned up while it was read. A commit that comes late looks first
   whether its files are still there (:mod:`tablewright.transaction.written`).
4. A failed attempt removes the files that it wrote, unless it is unknown whether the commit succeeded
   (:class:`~tablewright.errors.CommitUnknown`), or the job keeps them for the next attempt (``lost``).

:func:`attempts` is this loop over anything that has versions; :func:`run_job` runs a :class:`Job`, the protocol of all
verbs on Lance tables.

Tests: ``tests/unit/jobs/test_attempt.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from tablewright.errors import CommitConflict, CommitUnknown, CorruptTable
from tablewright.format.transaction import Transaction
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.work import Work
from tablewright.log import Log
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import Standing, open_newest, standing
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import Committed, Recheck, commit
from tablewright.transaction.retry import RetryOptions, with_retries
from tablewright.transaction.written import check_written
from tablewright.world import World

__all__ = ["Done", "GiveUp", "Job", "Made", "attempts", "make", "run_job"]

_log = Log("job")

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S")


class GiveUp(Exception):
    """A conflict that no further attempt can solve. The caller gets the conflict itself, and may call again."""

    def __init__(self, conflict: CommitConflict) -> None:
        super().__init__(conflict)
        self.conflict = conflict


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Made:
    """What an attempt made, before it is committed on ``base``.

    ``recheck`` looks at newer versions before the transaction is put on them. ``files`` are those that go if the
    transaction certainly failed.
    """

    base: Snapshot
    transaction: Transaction
    files: UncommittedFiles
    affected: AffectedRows | None = None
    recheck: Recheck | None = None

    def affected_rows(self, committed: Committed | None) -> int:
        """How many rows were touched; those that another writer deleted first don't count once it is committed."""
        left = None if committed is None else committed.affected
        rows = self.affected if left is None else left
        return 0 if rows is None else len(rows)


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """The end of a job: the version that the table is at, and what the caller gets."""

    snapshot: Snapshot
    result: R


M = TypeVar("M", bound=Made)
A = TypeVar("A")


class Job(ABC, Generic[P, M, R]):
    """One verb. :meth:`plan` is pure, :meth:`run` runs tasks, :meth:`commit` is the visible moment.

    A job that remembers something between its attempts belongs to one execution; the others can be run any number of
    times.
    """

    retries: RetryOptions = RetryOptions()
    stays_here: str | None = None

    @abstractmethod
    def plan(self, snapshot: Snapshot, now_ns: int) -> P:
        """Decide the change on a version; ``now()`` in expressions is ``now_ns``. Bad requests fail here."""

    @abstractmethod
    def run(self, plan: P, snapshot: Snapshot, work: Work) -> M | Done[R]:
        """Run the tasks and make the transaction; :class:`Done` if there is nothing to commit."""

    @abstractmethod
    def result(self, made: M, committed: Committed | None) -> R:
        """What the caller gets; without ``committed`` the commit is left to the caller."""

    def rebase(self, made: M, newest: Snapshot, work: Work) -> M | Done[R] | None:
        """What an earlier attempt made, moved onto a newer version; ``None`` if it has to be planned and run again.

        :class:`Done` if nothing is left to commit.
        """
        return None

    def commit(self, made: M, attempt: int) -> Committed:
        """Commit what was made. ``attempt`` counts from 0."""
        return commit(made.base.world, made.transaction, base=made.base, affected=made.affected, recheck=made.recheck)

    def lost(self, made: M) -> None:
        """The commit was lost to another writer: remove the files, unless the next attempt uses them."""
        made.files.remove()

    def close(self, error: BaseException | None) -> None:
        """The job is over, with this error if it failed."""


def attempts(
    world: World,
    make: Callable[[int], A],
    commit: Callable[[A, int], R],
    undo: Callable[[A, Exception], None],
    retries: RetryOptions | None = None,
) -> R:
    """Make and commit until it is committed; both get the number of the attempt, from 0.

    ``undo`` is called with what was made, and the error, after every commit that certainly failed.

    >>> from tablewright.testing import memory_world
    >>> def commit(made, number):
    ...     if number < 2:
    ...         raise CommitConflict("Append", "Overwrite", number)
    ...     return made
    >>> attempts(memory_world(seed=1), lambda number: f"made {number}", commit, lambda made, error: print("undo", made))
    undo made 0
    undo made 1
    'made 2'
    """

    def attempt(number: int) -> R:
        made = make(number)
        try:
            return commit(made, number)
        except CommitUnknown:
            raise  # the version may exist: its files have to stay
        except Exception as error:
            undo(made, error)
            raise

    try:
        return with_retries(world, attempt, retries)
    except GiveUp as final:
        raise final.conflict from final.conflict.__cause__


def run_job(job: Job[P, M, R], table: Table, report: Report | None = None, *, plan: P | None = None) -> Done[R]:
    """Run a job until it is committed. ``plan`` is the one for the table's own version, if it was made before."""
    with _Execution(job, table, Report() if report is None else report, plan) as execution:
        return execution.run()


def make(job: Job[P, M, R], table: Table, report: Report | None = None, *, plan: P | None = None) -> M | Done[R]:
    """Plan and run a job on the table's own version, and leave the commit to the caller."""
    with _Execution(job, table, Report() if report is None else report, plan) as execution:
        return execution.made(0)


class _Execution(Generic[P, M, R]):
    """One execution of a job, as a context that closes it. Mutable: it knows version and work of the last attempt."""

    def __init__(self, job: Job[P, M, R], table: Table, report: Report, plan: P | None) -> None:
        self._job, self._table, self._report, self._first_plan = job, table, report, plan
        self._now_ns, self._began = table.world.clock.now_ns(), table.world.clock.monotonic()
        self._known = table.snapshot
        self._last: M | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._job.close(error)

    @property
    def _uri(self) -> str:
        return self._table.world.store.location.uri

    def run(self) -> Done[R]:
        return attempts(self._table.world, self.made, self._commit, self._undo, self._job.retries)

    def made(self, number: int) -> M | Done[R]:
        """What the job makes on the newest version; on the table's own in the first attempt."""
        self._report.attempts += 1
        if number:
            self._known = open_newest(self._known)
        try:
            with removed_on_failure(self._table.world.store) as files:
                work = Work(self._table, files, self._report, self._job.stays_here)
                made = self._moved(work) or self._planned_and_run(work, number)
        except CorruptTable as error:
            self._check_still_there(error)
            raise
        if not isinstance(made, Done):
            self._last = made
        return made

    def _check_still_there(self, error: CorruptTable) -> None:
        """A version that was cleaned up while it was read is like one that another writer has overtaken."""
        if standing(self._known.world, self._known) is Standing.GONE:
            name, version = type(self._job).__name__.removesuffix("Job"), self._known.version
            reason = f"version {version} was cleaned up while it was read"
            raise CommitConflict(name, "cleanup", version, reason=reason) from error

    def _moved(self, work: Work) -> M | Done[R] | None:
        return None if self._last is None else self._job.rebase(self._last, self._known, work)

    def _planned_and_run(self, work: Work, number: int) -> M | Done[R]:
        plan = self._first_plan if number == 0 else None
        if plan is None:
            plan = self._job.plan(self._known, self._now_ns)
        _log.debug("plan", "%(table)s, attempt %(attempt)d: %(plan)s", table=self._uri, attempt=number + 1, plan=plan)
        return self._job.run(plan, self._known, work)

    def _commit(self, made: M | Done[R], number: int) -> Done[R]:
        if isinstance(made, Done):
            return made
        check_written(self._table.world, made.transaction, made.base, self._began)
        with self._report.stage("Commit"):
            committed = self._job.commit(made, number)
        if committed.passed:
            self._report.notes.append(f"  {committed.passed}")
        made.files.release()
        return Done(committed.snapshot, self._job.result(made, committed))

    def _undo(self, made: M | Done[R], error: Exception) -> None:
        assert not isinstance(made, Done)  # it had nothing to commit
        if isinstance(error, CommitConflict):
            self._job.lost(made)
        else:
            made.files.remove()
