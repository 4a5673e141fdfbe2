"""New columns as a job: a task per fragment, and results that outlive what others do meanwhile.

1. Plan on the caller's version, run a task per fragment, commit.
2. Another writer committed first: plan on the newest version. Column files stay in use wherever they are still right
   (:mod:`tablewright.operations.columns.keep`): only fragments that are new, or whose inputs were rewritten, are
   computed. Deletions and compactions alone do not even lead here: the commit itself passes them.
3. Where fragments were compacted in between, their column files are carried to the new fragments, compaction by
   compaction. Fragments without a file that were compacted together with others are computed first, as they were
   before that: so no value is computed twice. Where rows can't be followed, all rows of the new fragments are computed.
4. At the end, files that the committed version does not use are removed; after a failure all are, unless it is unknown
   whether the commit failed, or a checkpoint needs them.

Tests: ``tests/unit/api/test_columns.py``, ``tests/differential/test_columns.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tablewright.errors import CommitConflict, CommitUnknown, InvalidRequest
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path
from tablewright.jobs.attempt import GiveUp, Job, Made
from tablewright.jobs.column_values import ColumnValues
from tablewright.jobs.work import Work
from tablewright.operations.columns.add import Request
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, finish_columns
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.transaction.carry import ColumnFiles, carry_columns, check_columns
from tablewright.transaction.commit import Committed
from tablewright.transaction.crossing import Crossing, NotFollowed, missing_files_end_it
from tablewright.transaction.history import crossings_between
from tablewright.transaction.passed import Passed
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World

__all__ = ["ColumnsJob"]

_PASSED_BY_A_NEW_PLAN = "Project"


class ColumnsJob(Job[ColumnsPlan, Made, dict[str, int]]):
    """One execution. Mutable: it remembers what is computed while others change the table."""

    retries = RetryOptions(conflict_retries=100, retry_timeout_seconds=float("inf"))  # an attempt may take hours

    def __init__(self, request: Request, values: ColumnValues, world: World) -> None:
        self._request, self._values, self._world = request, values, world
        values.begin()
        self._kept: dict[int, Kept] = {}
        self._written: list[DataFile] = []
        self._carried: list[DataFile] = []
        self._conflict: CommitConflict | None = None
        self._is_over = False

    def plan(self, snapshot: Snapshot, now_ns: int) -> ColumnsPlan:
        """The schema afterwards, and what is read and written."""
        return self._request.plan(snapshot)

    def rebase(self, made: Made, newest: Snapshot, work: Work) -> Made:
        """The columns on a newer version, with all files that still hold; a conflict if values would be lost."""
        assert self._conflict is not None  # only a conflict leads to another attempt
        try:
            base = self._followed(made.base, newest, work)
            plan = self._request.plan(newest)
            lost = self._values.loses(plan, base, newest, self._kept)
        except InvalidRequest as error:
            reason = f"another writer changed the table meanwhile: {error}"
            raise GiveUp(_because(self._conflict, reason, retryable=False)) from None
        if lost is not None:
            raise GiveUp(_because(self._conflict, lost))
        return self.run(plan, newest, work)

    def run(self, plan: ColumnsPlan, snapshot: Snapshot, work: Work) -> Made:
        """Write the files that are missing."""
        self._keep_fitting(plan)
        self._compute(plan, work, frozenset(plan.fragments.ids.tolist()) - self._kept.keys())
        work.report.fragments = len(self._kept)
        files = {id: kept.numbered(plan.written) for id, kept in self._kept.items()}
        # Files are removed by this job, not by the loop: later attempts, and checkpoints, use them.
        return Made(base=snapshot, transaction=finish_columns(plan, files, self._world.ids.uuid()), files=work.files)

    def _keep_fitting(self, plan: ColumnsPlan) -> None:
        inputs = plan.inputs
        self._kept = {
            fragment.id: kept
            for fragment in plan.fragments
            if (kept := self._kept.get(fragment.id)) and kept.fits(fragment, inputs[fragment.id], plan.written)
        }

    def _compute(self, plan: ColumnsPlan, work: Work, wanted: frozenset[int]) -> None:
        """Write the files of some fragments."""
        inputs = plan.inputs

        def record(fragment: Fragment, made: ColumnsResult) -> None:
            if self._is_over:  # a thread that ends after an interrupt
                self._remove([made.file])
                return
            self._written.append(made.file)
            self._kept[fragment.id] = Kept(made.file, inputs[fragment.id], fragment.deleted_rows, plan.written)
            work.report.stages[-1].add([made])

        done = frozenset(plan.fragments.ids.tolist()) - wanted
        with work.report.stage("Columns", self._values.choose(work.table, plan), len(wanted)):
            self._values.write(work.table, plan, done, record)

    # -- past compactions

    def _followed(self, base: Snapshot, newest: Snapshot, work: Work) -> Snapshot:
        """Carry the column files past all compactions that they can be followed through.

        Returns the version that their fragments are of.
        """
        began, passed = self._world.clock.monotonic(), Passed()
        for crossing in crossings_between(base, newest):
            if not crossing.rewritten(self._kept):
                continue
            try:
                size = self._carry(crossing, base, work)
            except (NotFollowed, InvalidRequest):
                break  # what is not carried is computed again, or can't be
            passed += Passed(rewrites=1, rows=0, bytes_carried=size)
            base = crossing.after
        if passed:
            seconds = self._world.clock.monotonic() - began
            work.report.notes.append(f"  {replace(passed, seconds=seconds)}")
        return base

    def _carry(self, crossing: Crossing, base: Snapshot, work: Work) -> int:
        """Carry the files of ``base`` past one compaction. Returns how many bytes were written."""
        plan = self._request.plan(crossing.before)
        lost = self._values.loses(plan, base, crossing.before, self._kept)
        if lost is not None:
            assert self._conflict is not None
            raise GiveUp(_because(self._conflict, lost))
        self._keep_fitting(plan)
        groups = crossing.groups_of(self._kept)
        members = frozenset(old.id for group in groups for old in group.map.old if plan.fragments.has(old.id))
        missing = members - self._kept.keys()
        if missing:
            with missing_files_end_it():
                self._compute(plan, work, missing)
        ours = {id: (self._kept[id].numbered(plan.written),) for id in crossing.rewritten(self._kept)}
        columns = ColumnFiles(ours, plan.after)
        check_columns(crossing, columns)
        carried = carry_columns(self._world, crossing, columns)
        self._carried.extend(carried.values())
        inputs, now = self._request.plan(crossing.after).inputs, crossing.after.fragments
        self._kept = {id: kept for id, kept in self._kept.items() if id not in ours}
        for id, file in carried.items():
            self._kept[id] = Kept(file, inputs[id], now.by_id(id).deleted_rows, plan.written)
        return sum(file.file_size_bytes for file in carried.values())

    def commit(self, made: Made, attempt: int) -> Committed:
        """As usual; a change of the schema alone that came first is passed by planning again."""
        try:
            return super().commit(made, attempt)
        except CommitConflict as conflict:
            self._conflict = conflict
            if not conflict.retryable and conflict.theirs == _PASSED_BY_A_NEW_PLAN:
                raise _because(conflict, conflict.reason) from conflict
            raise

    def result(self, made: Made, committed: Committed | None) -> dict[str, int]:
        """How much was written. What the committed version does not use is removed."""
        if committed is not None:
            used = {file.path for fragment in committed.snapshot.fragments for file in fragment.files}
            free = [*self._values.leave(self._written, committed=True), *self._carried]
            self._remove(file for file in free if file.path not in used)
        files = [*self._written, *self._carried]
        size = sum(file.file_size_bytes for file in files)
        return {"num_fragments": len(self._kept), "num_files_written": len(files), "bytes_written": size}

    def close(self, error: BaseException | None) -> None:
        """After a failure remove what was written, unless it may be part of a version."""
        if error is None:
            return
        self._is_over = not isinstance(error, CommitUnknown)
        free = [*self._values.leave(self._written, committed=False), *self._carried]
        if self._is_over:
            self._remove(free)

    def _remove(self, files: Iterable[DataFile]) -> None:
        removed = UncommittedFiles(self._world.store)
        removed.add([data_path(file.path) for file in files])
        removed.remove()


def _because(conflict: CommitConflict, reason: str, *, retryable: bool = True) -> CommitConflict:
    return CommitConflict(conflict.ours, conflict.theirs, conflict.version, retryable=retryable, reason=reason)
