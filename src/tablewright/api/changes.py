"""Deletes and updates as ``LanceDataset`` offers them: prepared, explained, executed, committed or left uncommitted.

An execution is attempts: plan on a version (the dataset's own first, the newest after a conflict), run the tasks,
commit. A failed attempt removes the files it wrote, unless nobody knows whether it failed.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow.compute as pc

from tablewright.api.change_report import Report
from tablewright.api.execute import choose_for, run_tasks
from tablewright.api.inputs import UnknownInput
from tablewright.api.operation import Transaction
from tablewright.api.translate import from_transaction
from tablewright.checks import whole_number
from tablewright.engine.choose import Choice
from tablewright.errors import CommitUnknown, InvalidRequest, WrongType
from tablewright.expressions.filters import Filter
from tablewright.format import transaction as values
from tablewright.operations.delete import DeletePlan, finish_delete, plan_delete, run_delete_task
from tablewright.operations.rewrite.costs import Decision
from tablewright.operations.rewrite.hide import HiddenRows
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
from tablewright.reading.match import Matched, live_rows, run_match_task
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage.base import Location
from tablewright.storage.requests import requests_made
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import commit
from tablewright.transaction.isolation import Unchanged, check_isolation
from tablewright.transaction.retry import RetryOptions, with_retries
from tablewright.world import World

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["PreparedChange", "PreparedDelete", "PreparedUpdate", "Work", "check_filter", "retry_options"]

P = TypeVar("P")
T = TypeVar("T", bound="_Letter")
R = TypeVar("R", bound="_Written")


class _Letter(Protocol):
    @property
    def location(self) -> Location: ...


class _Written(Protocol):
    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt under way: where it runs, the files it leaves if it fails, and what is measured."""

    dataset: LanceDataset
    leftovers: UncommittedFiles
    report: Report
    stays_here: str | None = None

    def choose(self, estimated_bytes: int) -> Choice:
        """The engine for a stage that reads and writes so many bytes."""
        dataset = self.dataset
        return choose_for(dataset._world, estimated_bytes, dataset._engine, dataset._spark, stays_here=self.stays_here)

    def run(
        self, name: str, run: Callable[[T, World], R], tasks: Sequence[T], choice: Choice, *, fragments: int = 0
    ) -> list[R]:
        """Run the tasks of a stage, of so many ``fragments``; the files that they write are known from then on."""
        with self.report.stage(name, choice, len(tasks), fragments) as stage:
            if choice.engine.name == "local":
                results = run_tasks(
                    choice.engine, _Recorded(run, self.leftovers), tasks, self.dataset._world, describe=name
                )
            else:
                counted = run_tasks(
                    choice.engine, _Counted(run), tasks, self.dataset._world, describe=name, discard=self._keep
                )
                self._keep(counted)
                stage.iops += sum(each.iops for each in counted)
                results = [each.result for each in counted]
            stage.add(results)
        return results

    def _keep(self, results: Sequence[_Measured[Any]]) -> None:
        self.leftovers.add([path for result in results for path in result.paths])


@dataclass(frozen=True, slots=True)
class _Recorded(Generic[T, R]):
    """A task function of this process whose files are known as soon as it ends, also after an interrupt."""

    run: Callable[[T, World], R]
    leftovers: UncommittedFiles

    def __call__(self, task: T, world: World) -> R:
        result = self.run(task, world)
        self.leftovers.add(result.paths)
        return result


@dataclass(frozen=True, slots=True)
class _Measured(Generic[R]):
    """A result, and how many requests a worker made for it."""

    result: R
    iops: int

    @property
    def paths(self) -> tuple[str, ...]:
        return self.result.paths


@dataclass(frozen=True, slots=True)
class _Counted(Generic[T, R]):
    """A task function of a worker, which does one task at a time: its requests are those of the process."""

    run: Callable[[T, World], R]

    def __call__(self, task: T, world: World) -> _Measured[R]:
        before = requests_made()
        result = self.run(task, world)
        return _Measured(result, requests_made() - before)


class PreparedChange(ABC, Generic[P]):
    """A change that is planned on the dataset's version, and run when asked. Executing moves the dataset."""

    _name = "Update"

    def __init__(
        self, dataset: LanceDataset, retries: RetryOptions, stays_here: str | None, isolation: str = "snapshot"
    ) -> None:
        self._dataset, self._retries, self._stays_here = dataset, retries, stays_here
        self._is_serializable = check_isolation(isolation) == "serializable"
        self._snapshot = dataset._snapshot
        self._plan = self._planned(dataset._snapshot, dataset._world.clock.now_ns())

    @abstractmethod
    def _planned(self, snapshot: Snapshot, now_ns: int) -> P:
        """Decide the change on a version; ``now()`` in expressions is ``now_ns``."""

    @abstractmethod
    def _run(self, plan: P, snapshot: Snapshot, work: Work) -> tuple[values.Transaction, AffectedRows]:
        """Run the tasks, and make the transaction of what they did."""

    @abstractmethod
    def _result(self, rows: int) -> dict[str, int]:
        """What the caller gets."""

    @abstractmethod
    def _explained(self, plan: P, snapshot: Snapshot, work: Work, verbose: bool) -> str:
        """The plan in words."""

    def execute(self) -> dict[str, int]:
        """Run and commit it; after a true conflict again, on the newest version."""
        return self._execute(Report())

    def execute_uncommitted(self) -> tuple[Transaction, dict[str, int]]:
        """Run it, and leave the commit to ``CommitBuilder(dataset).execute(transaction)``."""
        snapshot = self._dataset._snapshot
        made, affected, _ = self._attempt(snapshot, self._plan_for(snapshot), Report())
        transaction = from_transaction(made)
        transaction.affected_rows, transaction.recheck = affected, self._recheck(snapshot)
        return transaction, self._result(len(affected))

    def _recheck(self, snapshot: Snapshot) -> Unchanged | None:
        return Unchanged.since(snapshot, self._name) if self._is_serializable else None

    def explain_plan(self, verbose: bool = False) -> str:
        """What it will do, and where. Nothing is written."""
        snapshot = self._dataset._snapshot
        work = Work(self._dataset, UncommittedFiles(self._dataset._world.store), Report(), self._stays_here)
        return self._explained(self._plan_for(snapshot), snapshot, work, verbose)

    def analyze_plan(self) -> str:
        """Execute it, and say what it did."""
        plan, report = self._plan_for(self._dataset._snapshot), Report()
        result = self._execute(report)
        return "\n".join([str(plan), *report.lines(result)])

    def _plan_for(self, snapshot: Snapshot, now_ns: int | None = None) -> P:
        if snapshot is self._snapshot:
            return self._plan
        return self._planned(snapshot, self._dataset._world.clock.now_ns() if now_ns is None else now_ns)

    def _execute(self, report: Report) -> dict[str, int]:
        dataset, world = self._dataset, self._dataset._world
        now_ns, base = world.clock.now_ns(), dataset._snapshot

        def attempt(number: int) -> dict[str, int]:
            snapshot = base if number == 0 else open_newest(base)
            transaction, affected, leftovers = self._attempt(snapshot, self._plan_for(snapshot, now_ns), report)
            try:
                with report.stage("Commit"):
                    recheck = self._recheck(snapshot)
                    committed = commit(world, transaction, base=snapshot, affected=affected, recheck=recheck)
            except CommitUnknown:
                raise  # it may be visible: its files have to stay
            except Exception:
                leftovers.remove()
                raise
            dataset._snapshot = committed.snapshot
            return self._result(len(affected if committed.affected is None else committed.affected))

        return with_retries(world, attempt, self._retries)

    def _attempt(
        self, snapshot: Snapshot, plan: P, report: Report
    ) -> tuple[values.Transaction, AffectedRows, UncommittedFiles]:
        report.attempts += 1
        with removed_on_failure(self._dataset._world.store) as leftovers:
            work = Work(self._dataset, leftovers, report, self._stays_here)
            transaction, affected = self._run(plan, snapshot, work)
        return transaction, affected, leftovers


class PreparedDelete(PreparedChange[DeletePlan]):
    """A delete that is planned but not run yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepared-delete-example")
    >>> ds.prepare_delete("id > 1").execute()
    {'num_deleted_rows': 2}
    """

    _name = "Delete"

    def __init__(
        self, dataset: LanceDataset, predicate: Filter, retries: RetryOptions, isolation: str = "snapshot"
    ) -> None:
        self._predicate = check_filter(predicate, "predicate")
        super().__init__(dataset, retries, _bound_here(predicate), isolation)

    def _planned(self, snapshot: Snapshot, now_ns: int) -> DeletePlan:
        return plan_delete(snapshot, self._predicate, now_ns)

    def _run(self, plan: DeletePlan, snapshot: Snapshot, work: Work) -> tuple[values.Transaction, AffectedRows]:
        results: list[HiddenRows] = []
        if plan.deletes_all:
            everything = live_rows(snapshot, plan.fragments)
        else:
            everything = {}
            results = work.run("Deleting", run_delete_task, plan.tasks, work.choose(plan.estimated_bytes))
        transaction, affected = finish_delete(plan, results, everything, snapshot.world.ids.uuid())
        work.report.fragments += len(affected.offsets)
        return transaction, affected

    def _result(self, rows: int) -> dict[str, int]:
        return {"num_deleted_rows": rows}

    def _explained(self, plan: DeletePlan, snapshot: Snapshot, work: Work, verbose: bool) -> str:
        if plan.deletes_all:
            return f"{plan}\n  engine=none: the metadata is enough"
        engine, why = work.choose(plan.estimated_bytes)
        size = f", estimated_bytes={plan.estimated_bytes}, tasks={len(plan.tasks)}" if verbose else ""
        return f"{plan}\n  engine={engine.name}: {why}{size}"


class PreparedUpdate(PreparedChange[UpdatePlan]):
    """An update that is planned but not run yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepared-update-example")
    >>> ds.prepare_update({"id": "id * 10"}, where="id > 1").execute()
    {'num_rows_updated': 2}
    """

    def __init__(
        self,
        dataset: LanceDataset,
        updates: Mapping[str, str],
        where: Filter | None,
        retries: RetryOptions,
        options: UpdateOptions,
        isolation: str = "snapshot",
    ) -> None:
        self._updates, self._options = dict(updates) if isinstance(updates, Mapping) else updates, options
        self._where = None if where is None else check_filter(where, "where")
        super().__init__(dataset, retries, _bound_here(where), isolation)

    def _planned(self, snapshot: Snapshot, now_ns: int) -> UpdatePlan:
        return plan_update(snapshot, self._updates, self._where, self._options, now_ns)

    def _decided(self, plan: UpdatePlan, work: Work) -> tuple[Found, Decision]:
        """Find the rows, and choose how each fragment is written."""
        matched: list[Matched] = []
        if not plan.updates_all:
            matched = work.run("Matching", run_match_task, plan.match.tasks, work.choose(plan.estimated_bytes))
        found = found_rows(plan, matched)
        return found, decide_update(plan, found)

    def _run(self, plan: UpdatePlan, snapshot: Snapshot, work: Work) -> tuple[values.Transaction, AffectedRows]:
        found, decision = self._decided(plan, work)
        tasks = update_tasks(plan, found, decision)
        results = work.run("Updating", run_update_task, tasks, work.choose(_work_bytes(decision)))
        work.report.fragments += len(decision.choices)
        work.report.notes = [str(decision)]
        return finish_update(plan, results, snapshot.world.ids.uuid())

    def _result(self, rows: int) -> dict[str, int]:
        return {"num_rows_updated": rows}

    def _explained(self, plan: UpdatePlan, snapshot: Snapshot, work: Work, verbose: bool) -> str:
        _, decision = self._decided(plan, work)
        engine, why = work.choose(plan.estimated_bytes)
        match = "none: all live rows match" if plan.updates_all else f"{engine.name}: {why}"
        size = f", estimated_bytes={plan.estimated_bytes}, tasks={len(plan.match.tasks)}" if verbose else ""
        engine, why = work.choose(_work_bytes(decision))
        return f"{plan}\n  match: engine={match}{size}\n{decision}\n  write: engine={engine.name}: {why}"


def _work_bytes(decision: Decision) -> int:
    """About what the write stage reads and writes."""
    return 2 * decision.bytes_written


def check_filter(given: Any, name: str) -> Filter:
    """A filter as people hand it in: SQL text or a pyarrow Expression."""
    if not isinstance(given, str | pc.Expression):
        raise UnknownInput(f"{name} must be SQL text or a pyarrow Expression, not {given!r}.")
    return given


def retry_options(conflict_retries: Any, retry_timeout: Any) -> RetryOptions:
    """How often a change runs again, and for how long."""
    if not isinstance(retry_timeout, timedelta):
        raise WrongType(
            f"retry_timeout must be a timedelta, got {retry_timeout!r} of type {type(retry_timeout).__name__}."
        )
    if retry_timeout < timedelta(0):
        raise InvalidRequest(f"retry_timeout must be non-negative, got {retry_timeout}.")
    return RetryOptions(
        conflict_retries=whole_number(conflict_retries, "conflict_retries"),
        are_arguments=True,
        retry_timeout_seconds=retry_timeout.total_seconds(),
    )


def _bound_here(predicate: Filter | None) -> str | None:
    """Why a predicate can't travel to other processes, if it can't."""
    if not isinstance(predicate, pc.Expression):
        return None
    try:
        pickle.dumps(predicate)
    except Exception:  # whatever an expression of a newer pyarrow raises: it is evaluated here then
        return "a pyarrow expression does not travel"
    return None
