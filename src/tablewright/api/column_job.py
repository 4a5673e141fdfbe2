"""New columns under way: planned, computed fragment by fragment, committed; and on from where others have led.

1. Plan on the dataset's own version, run a task per fragment, commit.
2. Another writer was faster: plan on the newest version. What is computed stays, wherever it is still right
   (:mod:`tablewright.operations.columns.keep`): only fragments that are new, or whose inputs were rewritten, are
   computed. Deletions do not even lead here: the commit itself moves past them.
3. At the end, files that the committed version does not use are removed; after a failure all are, unless nobody knows
   whether it failed, or a checkpoint needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tablewright.api.change_report import Report
from tablewright.api.column_sources import Source
from tablewright.api.operation import Transaction
from tablewright.api.translate import from_transaction
from tablewright.errors import CommitConflict, CommitUnknown, InvalidRequest
from tablewright.format import transaction as values
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path
from tablewright.operations.columns.add import Request
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, finish_columns
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.retry import RetryOptions, with_retries

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["PreparedColumns"]

_PATIENCE = RetryOptions(conflict_retries=100, retry_timeout_seconds=float("inf"))  # one round may take hours
_PASSED_BY_A_NEW_PLAN = "Project"

_Planner = Callable[[Snapshot], ColumnsPlan]


class PreparedColumns:
    """New columns that are planned on the dataset's version, and made when asked. Executing moves the dataset."""

    def __init__(self, dataset: LanceDataset, request: Request, source: Source) -> None:
        self._dataset, self._request, self._source = dataset, request, source
        self._snapshot, self._plan = dataset._snapshot, request.plan(dataset._snapshot)

    def execute(self) -> dict[str, int]:
        """Compute and commit them."""
        return self._execute(Report())

    def execute_uncommitted(self) -> tuple[Transaction, dict[str, int]]:
        """Compute them, and leave the commit to ``CommitBuilder(dataset).execute(transaction)``."""
        job = _Job(self._dataset, self._planned, self._source, Report())
        return from_transaction(job.run_uncommitted()), job.result

    def explain_plan(self, verbose: bool = False) -> str:
        """What will be read and written, and where. Nothing is written."""
        plan = self._planned(self._dataset._snapshot)
        engine, why = self._source.choose(self._dataset, plan)
        return f"{plan}\n  engine={engine.name}: {why}"

    def analyze_plan(self) -> str:
        """Execute it, and say what it did."""
        plan, report = self._planned(self._dataset._snapshot), Report()
        return "\n".join([str(plan), *report.lines(self._execute(report))])

    def _planned(self, snapshot: Snapshot) -> ColumnsPlan:
        return self._plan if snapshot is self._snapshot else self._request.plan(snapshot)

    def _execute(self, report: Report) -> dict[str, int]:
        job = _Job(self._dataset, self._planned, self._source, report)
        self._dataset._snapshot = job.run()
        return job.result


class _Job:
    """One execution. Mutable on purpose: it remembers what is computed while others change the table."""

    def __init__(self, dataset: LanceDataset, planned: _Planner, source: Source, report: Report) -> None:
        self._dataset, self._planned, self._source, self._report = dataset, planned, source, report
        self._world, self._base = dataset._world, dataset._snapshot
        source.begin()
        self._kept: dict[int, Kept] = {}
        self._minted: list[DataFile] = []
        self._conflict: CommitConflict | None = None
        self._is_over = False

    @property
    def result(self) -> dict[str, int]:
        """What the caller gets to know."""
        size = sum(file.file_size_bytes for file in self._minted)
        return {"num_fragments": len(self._kept), "num_files_written": len(self._minted), "bytes_written": size}

    def run(self) -> Snapshot:
        """Until it is committed."""
        try:
            outcome = with_retries(self._world, self._attempt, _PATIENCE)
            if isinstance(outcome, CommitConflict):
                raise outcome
        except CommitUnknown:
            self._source.leave(self._minted, committed=False)
            raise  # it may be visible: its files have to stay
        except BaseException:
            self._give_up()
            raise
        used = {file.path for fragment in outcome.snapshot.fragments for file in fragment.files}
        free = self._source.leave(self._minted, committed=True)
        self._remove(file for file in free if file.path not in used)
        return outcome.snapshot

    def run_uncommitted(self) -> values.Transaction:
        """The transaction, and no commit."""
        try:
            return self._transaction(self._planned(self._base))
        except BaseException:
            self._give_up()
            raise

    def _attempt(self, number: int) -> Committed | CommitConflict:
        """One round. A conflict that is returned, not raised, is final."""
        self._report.attempts += 1
        newest = self._base if number == 0 else open_newest(self._base)
        if self._conflict is None:
            plan = self._planned(newest)
        else:
            try:
                plan = self._planned(newest)
                lost = self._source.loses(plan, self._base, newest, self._kept)
            except InvalidRequest as error:
                return _because(self._conflict, f"another writer changed the table meanwhile: {error}", retryable=False)
            if lost is not None:
                return _because(self._conflict, lost)
        transaction = self._transaction(plan)
        self._base = newest
        try:
            with self._report.stage("Commit"):
                return commit(self._world, transaction, base=newest)
        except CommitConflict as conflict:
            self._conflict = conflict
            if not conflict.retryable and conflict.theirs == _PASSED_BY_A_NEW_PLAN:
                raise _because(conflict, conflict.reason) from conflict
            raise

    def _transaction(self, plan: ColumnsPlan) -> values.Transaction:
        inputs = plan.inputs
        self._kept = {
            fragment.id: kept
            for fragment in plan.fragments
            if (kept := self._kept.get(fragment.id)) and kept.fits(fragment, inputs[fragment.id], plan.written)
        }

        def record(fragment: Fragment, made: ColumnsResult) -> None:
            if self._is_over:  # a thread that ends after an interrupt
                self._remove([made.file])
                return
            self._minted.append(made.file)
            self._kept[fragment.id] = Kept(made.file, inputs[fragment.id], fragment.deleted_rows, plan.written)
            self._report.stages[-1].add([made])

        choice, missing = self._source.choose(self._dataset, plan), len(plan.fragments) - len(self._kept)
        with self._report.stage("Columns", choice, missing):
            self._source.write(self._dataset, plan, tuple(self._kept), record)
        self._report.fragments = len(self._kept)
        files = {id: kept.numbered(plan.written) for id, kept in self._kept.items()}
        return finish_columns(plan, files, self._world.ids.uuid())

    def _give_up(self) -> None:
        self._is_over = True
        self._remove(self._source.leave(self._minted, committed=False))

    def _remove(self, files: Iterable[DataFile]) -> None:
        leftovers = UncommittedFiles(self._world.store)
        leftovers.add([data_path(file.path) for file in files])
        leftovers.remove()


def _because(conflict: CommitConflict, reason: str, *, retryable: bool = True) -> CommitConflict:
    return CommitConflict(conflict.ours, conflict.theirs, conflict.version, retryable=retryable, reason=reason)
