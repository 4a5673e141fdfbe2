"""Compaction as a job: groups are rewritten once, and pass whatever others commit meanwhile.

1. *Run*: a task per group. A group whose task fails does not stop the others; its error is reported at the end.
2. *Reserve* the ids of the new fragments by a commit of its own: deletion files are named after them. Groups that are
   overtaken by then are dropped before.
3. *Place* the groups on the newest version (:mod:`tablewright.operations.compact.groups`): rows that are gone become
   deletion files, stale columns are carried, overtaken groups are dropped and their files removed. A group whose
   columns can't be carried fails alone. Index segments are written again for the new addresses where their kind allows
   that (:mod:`tablewright.jobs.remap`), unless that is deferred.
4. *Commit* the Rewrite. After a conflict the groups are placed on the newest version; the sources are not read again.

The commit is bounded by time and not by a number of attempts, since what a compaction made is worth more than that.

Tests: ``tests/unit/jobs/test_compact.py``, ``tests/concurrency/test_compaction_meanwhile.py``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

from tablewright.data.prefetch import spread
from tablewright.engine.choose import Choice
from tablewright.engine.costs import Workload
from tablewright.engine.local import LocalEngine
from tablewright.errors import CommitConflict, CommitUnknown, CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.lance import choose_type
from tablewright.format.fragment import DeletionFile, Fragment
from tablewright.format.index_kinds import is_system
from tablewright.format.naming import data_paths, deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Operation, ReserveFragments, Rewrite, Transaction
from tablewright.jobs.attempt import Done, GiveUp, Job, Made
from tablewright.jobs.meanwhile import look_back, newest_of_table
from tablewright.jobs.remap import IndexRemaps
from tablewright.jobs.work import Work
from tablewright.jobs.workloads import compaction_work
from tablewright.operations.compact.carry import Carried, CarryTask, carry_columns, carry_tasks, with_carried
from tablewright.operations.compact.groups import (
    Group,
    Now,
    compaction_transaction,
    has_changed,
    hidden_rows,
    is_overtaken,
    newest_of,
    numbered,
)
from tablewright.operations.compact.indices import not_deferrable, not_deferred
from tablewright.operations.compact.metrics import CompactionMetrics, metrics_of
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import CompactionPlan, plan_compaction
from tablewright.operations.compact.task import Rewritten, group_tasks, rewrite_group
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import exists
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.new_fragments import highest_id
from tablewright.transaction.retry import RetryOptions, with_retries
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

    def needless(self, committed: Snapshot) -> list[str]:
        """Files that the new version does not name: columns carried again later, and outputs without live rows."""
        ids = [fragment.id for group in self.groups for fragment in group.new]
        places = committed.fragments.positions(ids).tolist()
        named = {path for place in places if place >= 0 for path in data_paths((committed.fragments[place],))}
        return sorted(path for group in self.groups for path in group.paths if _data_file(path) not in named)


class CompactJob(Job[CompactionPlan, CompactMade, Compacted]):
    """One compaction. Mutable: it keeps what was rewritten while others change the table.

    ``results`` are groups that were rewritten before, wherever that was: then no task runs. Their files are removed if
    they can't be committed any more, but not after other failures: the caller may commit the results again.
    """

    retries = RetryOptions(conflict_retries=1_000_000, retry_timeout_seconds=1800.0, back_off_seconds_max=0.1)

    def __init__(self, options: CompactionOptions, world: World, results: Sequence[Rewritten] | None = None) -> None:
        self._options, self._world, self._results = options, world, results
        self._started = time.perf_counter()
        self._metrics = CompactionMetrics()
        self._failed: list[tuple[tuple[Fragment, ...], Exception]] = []
        self._dropped: set[tuple[int, ...]] = set()
        self._remaps = IndexRemaps(world)
        self._written: set[str] = set()
        self._given_files: set[str] = set()

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
        results = self._rewritten(plan, snapshot, work) if self._results is None else self._given()
        groups = [_group(result) for result in results if result.old_fragments]
        if not groups and not self._failed:
            return self._nothing(snapshot)
        newest = newest_of_table(snapshot)
        kept = self._kept(groups, min([snapshot.version, *(group.read_version for group in groups)]), newest)
        if not kept:
            return self._nothing(newest)
        self._check_given(kept)
        count = sum(len(group.new) for group, _ in kept)
        reserved = self._reserve(newest, count)
        ready = numbered([group for group, _ in kept], highest_id(reserved.manifest) + 1 - count)
        return self._placed(ready, newest.version, reserved, work)

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
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
        self._written |= {path for result in results for path in result.paths}
        return self._counted(results)

    def _given(self) -> list[Rewritten]:
        results = list(self._results or ())
        twice = _twice(fragment.id for result in results for fragment in result.old_fragments)
        if twice is not None:
            raise InvalidRequest(f"Fragment {twice} is in two results of a compaction: commit each result once.")
        self._given_files = {path for result in results for path in result.paths}
        return self._counted(results)

    def _check_given(self, places: Sequence[_Place]) -> None:
        """Files that were written elsewhere, and perhaps long ago, must still be there."""
        paths = [path for group, _ in places for path in group.paths if path in self._given_files]
        for path, found in zip(paths, spread(partial(exists, self._world.store), paths), strict=True):
            if not found:
                raise InvalidRequest(
                    f"{path}, the file of a result of a compaction, is gone: cleanup removed it, or a commit that "
                    "failed. Plan the compaction again and run its tasks."
                )

    def _counted(self, results: list[Rewritten]) -> list[Rewritten]:
        self._metrics = replace(
            self._metrics,
            bytes_read=sum(result.bytes_read for result in results),
            bytes_written=sum(result.bytes_written for result in results),
        )
        return results

    def choice(self, plan: CompactionPlan, work: Work) -> Choice:
        """Where the tasks run; ``num_threads`` bounds those in this process."""
        choice = work.choose(compaction_work(plan, self._options.num_threads))
        if self._options.num_threads is None or not choice.engine.in_process:
            return choice
        return choice._replace(engine=LocalEngine(self._options.num_threads))

    def _reserve(self, newest: Snapshot, count: int) -> Snapshot:
        """Commit a version that reserves fragment ids. After a conflict it is tried again; the groups stay."""
        if not count:
            return newest

        def attempt(number: int) -> Snapshot:
            base = newest_of_table(newest) if number else newest
            transaction = Transaction(
                read_version=base.version,
                uuid=str(self._world.ids.uuid()),
                operation=ReserveFragments(num_fragments=count),
            )
            try:
                return commit(self._world, transaction, base=base).snapshot
            except CommitConflict:
                self._kept((), newest.version, newest_of_table(newest))  # says so if the table was replaced
                raise

        return with_retries(self._world, attempt, self.retries)

    # -- what others did meanwhile

    def rebase(self, made: CompactMade, newest: Snapshot, work: Work) -> CompactMade | Done[Compacted]:
        """The same groups on a newer version. Their sources are not read again."""
        discard_files(self._world.store, made.deletion_paths)
        return self._placed(made.groups, made.base.version, newest, work)

    def _placed(
        self, groups: Sequence[Group], since: int, newest: Snapshot, work: Work
    ) -> CompactMade | Done[Compacted]:
        """The groups on the newest version; on a newer one if that was overtaken, and cleaned up, while it was read."""
        while True:
            try:
                return self._placed_on(groups, since, newest, work)
            except CorruptTable:
                newer = newest_of_table(newest)
                if newer.version == newest.version:
                    raise
                newest = newer

    def _placed_on(
        self, groups: Sequence[Group], since: int, newest: Snapshot, work: Work
    ) -> CompactMade | Done[Compacted]:
        places = self._carried(self._kept(groups, since, newest), newest, work)
        if not places:
            return self._nothing(newest)
        deletions = self._hidden(places, newest, work)
        paths = tuple(deletion_path(id, file) for id, file in deletions.items())
        stable, uuid = newest.manifest.stable_row_ids, str(self._world.ids.uuid())
        transaction = compaction_transaction(places, deletions, newest, stable_row_ids=stable, uuid=uuid)
        rewrite = self._with_indices(transaction.operation, places, newest, work)
        done = tuple(group for group, _ in places)
        work.report.fragments = sum(len(group.old) for group in done)
        return CompactMade(
            base=newest,
            transaction=replace(transaction, operation=rewrite),
            files=work.files,
            recheck=partial(_check_indices, newest),
            groups=done,
            deletion_paths=paths,
        )

    def _with_indices(self, rewrite: Operation, places: Sequence[_Place], newest: Snapshot, work: Work) -> Rewrite:
        """With the index segments that are written again; or with the order to record where rows went."""
        assert isinstance(rewrite, Rewrite), "a compaction is a Rewrite"
        if all(is_system(index) for index in newest.manifest.indices):
            return rewrite
        if self._options.defer_index_remap:
            graphs = not_deferrable(newest, [[old.id for old in group.old] for group, _ in places])
            if not graphs:
                return replace(rewrite, defers_remap=True)
            work.report.notes.append(f"  {not_deferred(graphs)}")
        maps = [group.address_map(newest) for group, _ in places]
        return replace(rewrite, rewritten_indices=self._remaps.on(newest, maps, work))

    def _kept(self, groups: Sequence[Group], since: int, newest: Snapshot) -> list[_Place]:
        """The groups that no other compaction overtook; the files of the others are removed."""
        meanwhile = look_back(since, newest)
        self._given_files &= meanwhile.unused(self._given_files)
        if meanwhile.replaced is not None:
            discard_files(self._world.store, sorted(self._given_files))
            raise GiveUp(meanwhile.replaced)
        self._forget_overtaken_errors(newest, meanwhile.rewritten)
        kept: list[_Place] = []
        for group in groups:
            now = newest_of(group.old, newest.fragments)
            if _is_lost(group, now, meanwhile.rewritten, newest):
                self._drop(group)
            else:
                kept.append((group, now))
        return kept

    def _forget_overtaken_errors(self, newest: Snapshot, rewritten: frozenset[int] | None) -> None:
        """Not reported: tasks whose fragments others took or changed, so that cleanup may have removed the files."""

        def was_overtaken(fragments: tuple[Fragment, ...], error: Exception) -> bool:
            now = newest_of(fragments, newest.fragments)
            gone = {old.id for old, current in zip(fragments, now, strict=True) if current is None}
            if gone if rewritten is None else gone & rewritten:
                return True
            return isinstance(error, CorruptTable) and has_changed(fragments, now)

        overtaken = [was_overtaken(*each) for each in self._failed]
        self._dropped.update(_ids(old) for old, _ in compress(self._failed, overtaken))
        self._failed = [each for each, lost in zip(self._failed, overtaken, strict=True) if not lost]

    def _drop(self, group: Group) -> None:
        """Another compaction was first: what was written for this group goes, unless it is what they committed."""
        self._remove(path for path in group.paths if path in self._written or path in self._given_files)
        self._dropped.add(_ids(group.old))

    def _remove(self, paths: Iterable[str]) -> None:
        gone = list(paths)
        discard_files(self._world.store, gone)
        self._written.difference_update(gone)

    def _carried(self, places: list[_Place], newest: Snapshot, work: Work) -> list[_Place]:
        """The groups with all columns that others wrote meanwhile; those for which that failed are left out."""
        version = new_file_version(newest.manifest, self._options.data_storage_version)
        tasks: list[list[CarryTask]] = [carry_tasks(group, now, newest, version) for group, now in places]
        every = [task for some in tasks for task in some]
        if not every:
            return places
        found = (source.fragment for task in every for source in task.sources)
        sources = {fragment.id: fragment for fragment in found if fragment is not None}
        size = sum(fragment.data_bytes for fragment in sources.values())
        choice = work.choose(Workload(bytes_read=size, bytes_written=size, files=2 * len(every), tasks=len(every)))
        outcomes = work.outcomes("Carrying columns", carry_columns, every, choice, fragments=len(sources))
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
        errors = {
            task.fragment_id: outcome.error
            for task, outcome in zip(every, outcomes, strict=True)
            if outcome.error is not None
        }
        self._written |= {path for result in results for path in result.paths}
        if errors and newest_of_table(newest).version > newest.version:
            self._remove(path for result in results for path in result.paths)
            raise CorruptTable(newest.location.uri, (str(next(iter(errors.values()))),))  # is placed on the newer one
        size = sum(result.bytes_written for result in results)
        self._metrics = replace(self._metrics, bytes_carried=self._metrics.bytes_carried + size)
        work.report.notes.append(
            f"  rebase: version {newest.version} has other columns in {len(sources)} fragments, bytes_carried={size}"
        )
        return list(self._with_carried(places, tasks, results, errors))

    def _with_carried(
        self,
        places: Sequence[_Place],
        tasks: Sequence[Sequence[CarryTask]],
        results: Sequence[Carried],
        errors: Mapping[int, Exception],
    ) -> Iterator[_Place]:
        by_id: dict[int, Carried] = {result.fragment_id: result for result in results}
        for (group, now), some in zip(places, tasks, strict=True):
            failed = next((errors[task.fragment_id] for task in some if task.fragment_id in errors), None)
            mine = [by_id[task.fragment_id] for task in some if task.fragment_id in by_id]
            if failed is None:
                yield with_carried(group, now, mine), now
            else:
                self._failed.append((group.old, failed))
                self._remove(path for result in mine for path in result.paths)
                self._remove(path for path in group.paths if path in self._written)

    def _hidden(self, places: list[_Place], newest: Snapshot, work: Work) -> dict[int, DeletionFile]:
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
            path = deletion_path(id, file)
            work.files.add([path])
            self._written.add(path)
            return id, file

        return dict(spread(write, hidden.items()))

    # -- the end

    def lost(self, made: CompactMade) -> None:
        """The next attempt uses the files."""

    def result(self, made: CompactMade, committed: Committed | None) -> Compacted:
        """What was replaced by what. Files that the new version does not need are removed."""
        if committed is not None:
            discard_files(self._world.store, made.needless(committed.snapshot))
            self._remaps.committed(committed.snapshot)
        return self._over(metrics_of(made.groups))

    def close(self, error: BaseException | None) -> None:
        """After a failure remove what was written, unless it may be part of a version."""
        if error is not None and not isinstance(error, CommitUnknown):
            discard_files(self._world.store, sorted(self._written))
            self._remaps.remove()

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
            groups_dropped=len(self._dropped),
            rows_hidden=mine.rows_hidden,
            bytes_carried=mine.bytes_carried,
            index_bytes_written=self._remaps.bytes_written,
            seconds=time.perf_counter() - self._started,
        )
        return Compacted(metrics, tuple(error for _, error in self._failed))


def _check_indices(known: Snapshot, newest: Snapshot) -> None:
    """Segments that came, went or were rewritten meanwhile: which of them are remapped has to be decided again."""
    then, now = ({index.uuid for index in each.manifest.indices if not is_system(index)} for each in (known, newest))
    if then != now:
        names = sorted({index.name for index in newest.manifest.indices if index.uuid in now - then})
        reason = f"indices {names} were built or rewritten meanwhile" if names else "indices were dropped meanwhile"
        raise CommitConflict("Rewrite", "CreateIndex", newest.version, reason=reason)


def _group(result: Rewritten) -> Group:
    return Group(
        read_version=result.read_version,
        old=result.old_fragments,
        new=result.new_fragments,
        known=result.old_fragments,
        paths=result.paths,
    )


def _is_lost(group: Group, now: Now, rewritten: frozenset[int] | None, newest: Snapshot) -> bool:
    try:
        return is_overtaken(group, now, rewritten, newest, newest.manifest.stable_row_ids)
    except CorruptTable:
        if not has_changed(group.old, now):
            raise
        return True  # its deletion files were cleaned up: where its rows are now can't be said


def _data_file(path: str) -> str:
    """The data file that a path belongs to: it is one, or lies in the directory of its blobs."""
    folder, name = path.rsplit("/", 1)
    return path if name.endswith(".lance") else f"{folder}.lance"


def _ids(fragments: Iterable[Fragment]) -> tuple[int, ...]:
    return tuple(fragment.id for fragment in fragments)


def _twice(ids: Iterable[int]) -> int | None:
    counts = Counter(ids)
    return next((id for id, count in counts.items() if count > 1), None)
