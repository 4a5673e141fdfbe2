"""Changes that are planned and not run yet: explained, executed, or executed without a commit.

The plan is made at once, so a bad request fails where it is prepared. Executing moves the dataset.

Tests: ``tests/unit/api/test_changes.py``, ``tests/unit/api/test_columns.py``.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar

import pyarrow.compute as pc

from tablewright.api.auto_cleanup import commits
from tablewright.api.inputs import UnknownInput
from tablewright.api.operation import Transaction
from tablewright.api.pinned import Pinned, run_on, table_of
from tablewright.api.translate import from_transaction
from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest, WrongType
from tablewright.expressions.filters import Filter
from tablewright.jobs.attempt import Done, Job, make
from tablewright.jobs.column_values import ColumnValues
from tablewright.jobs.columns import ColumnsJob
from tablewright.jobs.delete import DeleteJob
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.update import UpdateJob
from tablewright.jobs.work import Work
from tablewright.operations.columns.add import Request
from tablewright.operations.columns.plan import ColumnsPlan
from tablewright.operations.delete import DeletePlan
from tablewright.operations.update import UpdateOptions, UpdatePlan
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.transaction.isolation import check_isolation
from tablewright.transaction.retry import RetryOptions

__all__ = ["PreparedChange", "PreparedColumns", "PreparedDelete", "PreparedUpdate", "check_filter", "retry_options"]

P = TypeVar("P")


class PreparedChange(ABC, Generic[P]):
    """A change that is planned on the dataset's version, and run when asked. Executing moves the dataset."""

    def __init__(self, dataset: Pinned) -> None:
        self._dataset = dataset
        table = table_of(dataset)
        self._snapshot, self._plan = table.snapshot, self._planned(table.snapshot, table.world.clock.now_ns())

    @abstractmethod
    def _planned(self, snapshot: Snapshot, now_ns: int) -> P:
        """Decide the change on a version; ``now()`` in expressions is ``now_ns``."""

    @abstractmethod
    def _job(self) -> Job[P, Any, dict[str, int]]:
        """The job of one execution."""

    @abstractmethod
    def _explained(self, plan: P, table: Table, verbose: bool) -> str:
        """The plan in words."""

    @commits
    def execute(self, *, skip_auto_cleanup: bool = False) -> dict[str, int]:
        """Run and commit it; after a true conflict again, on the newest version."""
        return self._execute(Report())

    def execute_uncommitted(self) -> tuple[Transaction, dict[str, int]]:
        """Run it, and leave the commit to ``CommitBuilder(dataset).execute(transaction)``."""
        table, job = table_of(self._dataset), self._job()
        made = make(job, table, plan=self._plan_of(table))
        assert not isinstance(made, Done), "changes of rows and of columns always have something to commit"
        transaction = from_transaction(made.transaction)
        transaction.affected_rows, transaction.recheck = made.affected, made.recheck
        return transaction, job.result(made, None)

    def explain_plan(self, verbose: bool = False) -> str:
        """What it will do, and where. Nothing is written."""
        table = table_of(self._dataset)
        return self._explained(self._plan_of(table), table, verbose)

    @commits
    def analyze_plan(self, *, skip_auto_cleanup: bool = False) -> str:
        """Execute it, and say what it did."""
        plan, report = self._plan_of(table_of(self._dataset)), Report()
        return "\n".join([str(plan), *report.lines(self._execute(report))])

    def _execute(self, report: Report) -> dict[str, int]:
        return run_on(self._dataset, self._job(), report, plan=self._plan_of(table_of(self._dataset)))

    def _plan_of(self, table: Table) -> P:
        """The plan for the version that the dataset shows now."""
        if table.snapshot is self._snapshot:
            return self._plan
        return self._planned(table.snapshot, table.world.clock.now_ns())


class PreparedDelete(PreparedChange[DeletePlan]):
    """A delete that is planned but not run yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepared-delete-example")
    >>> ds.prepare_delete("id > 1").execute()
    {'num_deleted_rows': 2}
    """

    def __init__(
        self,
        dataset: Pinned,
        predicate: Filter,
        retries: RetryOptions,
        isolation: str = "snapshot",
        use_scalar_index: bool | None = None,
    ) -> None:
        self._delete = DeleteJob(
            predicate=check_filter(predicate, "predicate"),
            retries=retries,
            isolation=check_isolation(isolation),
            stays_here=_bound_here(predicate),
            use_scalar_index=use_scalar_index,
        )
        super().__init__(dataset)

    def _planned(self, snapshot: Snapshot, now_ns: int) -> DeletePlan:
        return self._delete.plan(snapshot, now_ns)

    def _job(self) -> DeleteJob:
        return self._delete

    def _explained(self, plan: DeletePlan, table: Table, verbose: bool) -> str:
        return self._delete.explain(plan, _dry_run(table, self._delete), verbose=verbose)


class PreparedUpdate(PreparedChange[UpdatePlan]):
    """An update that is planned but not run yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3]}, "memory://prepared-update-example")
    >>> ds.prepare_update({"id": "id * 10"}, where="id > 1").execute()
    {'num_rows_updated': 2}
    """

    def __init__(
        self,
        dataset: Pinned,
        updates: Mapping[str, str],
        where: Filter | None,
        retries: RetryOptions,
        options: UpdateOptions,
        isolation: str = "snapshot",
    ) -> None:
        self._update = UpdateJob(
            updates=dict(updates) if isinstance(updates, Mapping) else updates,
            where=None if where is None else check_filter(where, "where"),
            options=options,
            retries=retries,
            isolation=check_isolation(isolation),
            stays_here=_bound_here(where),
        )
        super().__init__(dataset)

    def _planned(self, snapshot: Snapshot, now_ns: int) -> UpdatePlan:
        return self._update.plan(snapshot, now_ns)

    def _job(self) -> UpdateJob:
        return self._update

    def _explained(self, plan: UpdatePlan, table: Table, verbose: bool) -> str:
        return self._update.explain(plan, _dry_run(table, self._update), verbose=verbose)


class PreparedColumns(PreparedChange[ColumnsPlan]):
    """New columns that are planned but not computed yet.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2]}, "memory://prepared-columns-example")
    >>> ds.prepare_add_columns({"double": "id * 2"}).execute()["num_files_written"]
    1
    """

    def __init__(self, dataset: Pinned, request: Request, values: ColumnValues) -> None:
        self._request, self._values = request, values
        super().__init__(dataset)

    def _planned(self, snapshot: Snapshot, now_ns: int) -> ColumnsPlan:
        return self._request.plan(snapshot)

    def _job(self) -> ColumnsJob:
        return ColumnsJob(self._request, self._values, table_of(self._dataset).world)

    def _explained(self, plan: ColumnsPlan, table: Table, verbose: bool) -> str:
        engine, why = self._values.choose(table, plan)
        return f"{plan}\n  engine={engine.name}: {why}"


def _dry_run(table: Table, job: Job[Any, Any, Any]) -> Work:
    """Work that writes nothing: to look for rows, and to choose engines."""
    return Work(table, UncommittedFiles(table.world.store), Report(), job.stays_here)


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
    """Why a predicate can't be sent to other processes, if it can't."""
    if not isinstance(predicate, pc.Expression):
        return None
    try:
        pickle.dumps(predicate)
    except Exception:  # whatever an expression of a newer pyarrow raises: it is evaluated here then
        return "a pyarrow expression does not travel"
    return None
