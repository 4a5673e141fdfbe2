"""Compaction as a job: groups are rewritten once, and pass whatever others commit meanwhile.

1. *Run*: a task per group. A group whose task fails does not stop the others; its error is reported at the end.
2. *Reserve* the ids of the new fragments by a commit of its own: deletion files are named after them.
3. *Place* the groups on the newest version (:mod:`tablewright.operations.compact.groups`): rows that are gone become
   deletion files, stale columns are carried, overtaken groups are dropped and their files removed.
4. *Commit* the Rewrite. After a conflict the groups are placed on the newest version; the sources are not read again.

The commit is bounded by time and not by a number of attempts, since what a compaction made is worth more than that.

Tests: ``tests/unit/jobs/test_compact.py``, ``tests/concurrency/test_compaction_meanwhile.py``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tablewright.data.prefetch import spread
from tablewright.engine.choose import Choice
from tablewright.engine.local import LocalEngine
from tablewright.errors import CommitConflict, CommitUnknown, InvalidRequest
from tablewright.format.deletion_vectors.lance import choose_type
from tablewright.format.fragment import DeletionFile, Fragment
from tablewright.format.naming import data_path, deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Overwrite, ReserveFragments, Restore, Rewrite, Transaction
from tablewright.jobs.attempt import Done, GiveUp, Job, Made
from tablewright.jobs.work import Work
from tablewright.operations.compact.carry import Carried, CarryTask, carry_columns, carry_tasks, with_carried
from tablewright.operations.compact.groups import (
    Group,
    Now,
    compaction_transaction,
    hidden_rows,
    is_overtaken,
    newest_of,
    numbered,
)
from tablewright.operations.compact.metrics import CompactionMetrics, metrics_of
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import CompactionPlan, plan_compaction
from tablewright.operations.compact.task import Rewritten, group_tasks, rewrite_group
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.history import operations_between
from tablewright.transaction.retry import RetryOptions
from tablewright.transaction.touched import removed_fragments
from tablewright.world import World

__all__ = ["CompactJob", "Compacted"]

_Place = tuple[Group, Now]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The end of a compaction: what was committed, and the errors of groups that failed."""

    metrics: CompactionMetrics
    errors: tuple[Exception, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompactMade(Made):
    """Groups on one version, and the deletion files that were written for them."""

    groups: tuple[Group, ...]
    deletion_paths: tuple[str, ...]

    @property
    def superseded(self) -> list[str]:
        """Column files that were carried again later."""
        used = {data_path(file.path) for group in self.groups for fragment in group.new for file in fragment.files}
        carried = {path for group in self.groups for path in group.carried_paths}
        return sorted(carried - used)


class CompactJob(Job[CompactionPlan, CompactMade, Compacted]):
    """One compaction. Mutable: it keeps what was rewritten while others change the table.

    ``results`` are groups that were rewritten before, wherever that was: then no task runs.
    """

    retries = RetryOptions(conflict_retries=1_000_000, retry_timeout_seconds=1800.0, back_off_seconds_max=0.1)

    def __init__(self, options: CompactionOptions, world: World, results: Sequence[Rewritten] | None = None) -> None:
        self._options, self._world, self._results = options, world, results
        self._started = time.perf_counter()
        self._metrics = CompactionMetrics()
        self._failed: list[tuple[tuple[Fragment, ...], Exception]] = []
        self._written: set[str] = set()

    # -- plan and run

    def plan(self, snapshot: Snapshot, now_ns: int) -> CompactionPlan:
        """Decide the groups; those that were rewritten before need no plan."""
        if self._results is None:
            return plan_compaction(snapshot, self._options)
        return CompactionPlan(
            uri=snapshot.location.uri,
            read_version=snapshot.version,
            options=self._options,
            tasks=(),
            num_fragments=len(snapshot.fragments),
        )

    def run(self, plan: CompactionPlan, snapshot: Snapshot, work: Work) -> CompactMade | Done[Compacted]:
        """Rewrite the groups, and place them on the newest version."""
        results = self._rewritten(plan, snapshot, work) if self._results is None else self._given(work)
        groups = [_group(result) for result in results if result.new_fragments or result.old_fragments]
        if not groups:
            return self._nothing(snapshot)
        reserved = self._reserve(snapshot, sum(len(group.new) for group in groups))
        highest = reserved.manifest.max_fragment_id
        assert highest is not None, "fragment ids were reserved"
        first = highest + 1 - sum(len(group.new) for group in groups)
        since = min(group.read_version for group in groups)
        return self._placed(numbered(groups, first), since, reserved, work)

    def _rewritten(self, plan: CompactionPlan, snapshot: Snapshot, work: Work) -> list[Rewritten]:
        if not plan.tasks:
            return []
        choice = self.choice(plan, work)
        tasks = group_tasks(plan, snapshot)
        sources = sum(len(task.fragments) for task in plan.tasks)
        outcomes = work.outcomes("Compacting", rewrite_group, tasks, choice, fragments=sources)
        self._failed = [
            (task.fragments, outcome.error)
            for task, outcome in zip(plan.tasks, outcomes, strict=True)
            if outcome.error is not None
        ]
        return self._counted([outcome.result for outcome in outcomes if outcome.result is not None])

    def _given(self, work: Work) -> list[Rewritten]:
        results = list(self._results or ())
        twice = _twice(fragment.id for result in results for fragment in result.old_fragments)
        if twice is not None:
            raise InvalidRequest(f"Fragment {twice} is in two results of a compaction: commit each result once.")
        work.files.add([path for result in results for path in result.paths])
        return self._counted(results)

    def _counted(self, results: list[Rewritten]) -> list[Rewritten]:
        self._written |= {path for result in results for path in result.paths}
        self._metrics = replace(
            self._metrics,
            bytes_read=sum(result.bytes_read for result in results),
            bytes_written=sum(result.bytes_written for result in results),
        )
        return results

    def choice(self, plan: CompactionPlan, work: Work) -> Choice:
        """Where the tasks run; ``num_threads`` bounds those in this process."""
        choice = work.choose(plan.estimated_bytes)
        if self._options.num_threads is None or not choice.engine.in_process:
            return choice
        return choice._replace(engine=LocalEngine(self._options.num_threads))

    def _reserve(self, snapshot: Snapshot, count: int) -> Snapshot:
        """Commit a version that reserves fragment ids, on top of whatever others committed meanwhile."""
        if not count:
            return snapshot
        operation = ReserveFragments(num_fragments=count)
        transaction = Transaction(read_version=snapshot.version, uuid=str(self._world.ids.uuid()), operation=operation)
        return commit(self._world, transaction, base=snapshot).snapshot

    # -- what others did meanwhile

    def rebase(self, made: CompactMade, newest: Snapshot, work: Work) -> CompactMade | Done[Compacted]:
        """The same groups on a newer version. Their sources are not read again."""
        discard_files(self._world.store, made.deletion_paths)
        return self._placed(made.groups, made.base.version, newest, work)

    def _placed(
        self, groups: Sequence[Group], since: int, newest: Snapshot, work: Work
    ) -> CompactMade | Done[Compacted]:
        rewritten = self._rewritten_by_others(since, newest)
        self._forget_overtaken_errors(newest, rewritten)
        stable = newest.manifest.stable_row_ids
        kept: list[_Place] = []
        for group in groups:
            now = newest_of(group, newest.fragments)
            if is_overtaken(group, now, rewritten, newest, stable):
                self._drop(group)
            else:
                kept.append((group, now))
        if not kept:
            return self._nothing(newest)
        kept = self._carried(kept, newest, work)
        deletions = self._hidden(kept, newest)
        paths = tuple(deletion_path(id, file) for id, file in deletions.items())
        work.files.add(paths)
        uuid = str(self._world.ids.uuid())
        transaction = compaction_transaction(kept, deletions, newest, stable_row_ids=stable, uuid=uuid)
        done = tuple(group for group, _ in kept)
        work.report.fragments = sum(len(group.old) for group in done)
        return CompactMade(base=newest, transaction=transaction, files=work.files, groups=done, deletion_paths=paths)

    def _rewritten_by_others(self, since: int, newest: Snapshot) -> frozenset[int] | None:
        """Fragments that other rewrites took; ``None`` if some version does not say."""
        taken: frozenset[int] = frozenset()
        unknown = False
        for version, operation in operations_between(since, newest).items():
            if isinstance(operation, Overwrite | Restore):
                name = type(operation).__name__
                raise GiveUp(
                    CommitConflict("Rewrite", name, version, retryable=False, reason="the rows are others now")
                )
            if isinstance(operation, Rewrite):
                taken |= removed_fragments(operation)
            unknown |= operation is None
        return None if unknown else taken

    def _forget_overtaken_errors(self, newest: Snapshot, rewritten: frozenset[int] | None) -> None:
        """Not reported: tasks whose fragments another compaction took, so that cleanup may have removed the files."""

        def was_overtaken(fragments: Iterable[Fragment]) -> bool:
            gone = {fragment.id for fragment in fragments if not newest.fragments.has(fragment.id)}
            return bool(gone if rewritten is None else gone & rewritten)

        self._failed = [(fragments, error) for fragments, error in self._failed if not was_overtaken(fragments)]

    def _drop(self, group: Group) -> None:
        """Another compaction was first: what we wrote for this group goes."""
        discard_files(self._world.store, group.paths)
        self._written.difference_update(group.paths)
        self._metrics = replace(self._metrics, groups_dropped=self._metrics.groups_dropped + 1)

    def _carried(self, places: list[_Place], newest: Snapshot, work: Work) -> list[_Place]:
        """The groups with all columns that others wrote meanwhile."""
        version = new_file_version(newest.manifest, self._options.data_storage_version)
        tasks: list[list[CarryTask]] = [carry_tasks(group, now, newest, version) for group, now in places]
        every = [task for some in tasks for task in some]
        if not every:
            return places
        sources = {source.fragment.id: source.fragment for task in every for source in task.sources}
        choice = work.choose(2 * sum(fragment.data_bytes for fragment in sources.values()))
        results = work.run("Carrying columns", carry_columns, every, choice, fragments=len(sources))
        size = sum(result.bytes_written for result in results)
        self._metrics = replace(self._metrics, bytes_carried=self._metrics.bytes_carried + size)
        self._written |= {path for result in results for path in result.paths}
        work.report.notes.append(
            f"  rebase: version {newest.version} has other columns in {len(sources)} fragments, bytes_carried={size}"
        )
        by_id: dict[int, Carried] = {result.fragment_id: result for result in results}
        return [
            (with_carried(group, now, [by_id[task.fragment_id] for task in some]), now)
            for (group, now), some in zip(places, tasks, strict=True)
        ]

    def _hidden(self, places: list[_Place], newest: Snapshot) -> dict[int, DeletionFile]:
        """Deletion files for the rows that are gone meanwhile, by new fragment id; none is written for an empty one."""
        hidden = {id: rows for group, now in places for id, rows in hidden_rows(group, now, newest).items()}
        physical = {fragment.id: fragment.physical_rows for group, _ in places for fragment in group.new}
        self._metrics = replace(self._metrics, rows_hidden=sum(map(len, hidden.values())))

        def write(part: tuple[int, RowSet]) -> tuple[int, DeletionFile]:
            id, rows = part
            kind, file_id = choose_type(len(rows), None), self._world.ids.u64()
            if len(rows) == physical[id]:  # it will not be in the version, but the transaction counts its rows
                gone = len(rows)
                return id, DeletionFile(file_type=kind, read_version=newest.version, id=file_id, num_deleted_rows=gone)
            file, _ = write_deletion_vector(self._world.store, id, rows, newest.version, file_id, kind)
            return id, file

        return dict(spread(write, hidden.items()))

    # -- the end

    def lost(self, made: CompactMade) -> None:
        """The next attempt uses the files."""

    def result(self, made: CompactMade, committed: Committed | None) -> Compacted:
        """What was replaced by what. Carried columns that were carried again are removed."""
        if committed is not None:
            discard_files(self._world.store, made.superseded)
        return self._over(metrics_of(made.groups))

    def close(self, error: BaseException | None) -> None:
        """After a failure remove what was written, unless it may be part of a version."""
        if error is not None and not isinstance(error, CommitUnknown):
            discard_files(self._world.store, sorted(self._written))

    def explain(self, plan: CompactionPlan, work: Work) -> str:
        """The plan, and where it runs."""
        if not plan.tasks:
            return str(plan)
        engine, why = self.choice(plan, work)
        return f"{plan}\n  engine={engine.name}: {why}, estimated_bytes={plan.estimated_bytes}"

    def _nothing(self, snapshot: Snapshot) -> Done[Compacted]:
        return Done(snapshot, self._over(CompactionMetrics()))

    def _over(self, counts: CompactionMetrics) -> Compacted:
        mine = self._metrics
        metrics = replace(
            counts,
            bytes_read=mine.bytes_read,
            bytes_written=mine.bytes_written,
            groups_dropped=mine.groups_dropped,
            rows_hidden=mine.rows_hidden,
            bytes_carried=mine.bytes_carried,
            seconds=time.perf_counter() - self._started,
        )
        return Compacted(metrics, tuple(error for _, error in self._failed))


def _group(result: Rewritten) -> Group:
    return Group(
        read_version=result.read_version,
        old=result.old_fragments,
        new=result.new_fragments,
        known=result.old_fragments,
        paths=result.paths,
    )


def _twice(ids: Iterable[int]) -> int | None:
    counts = Counter(ids)
    return next((id for id, count in counts.items() if count > 1), None)
