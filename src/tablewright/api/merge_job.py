"""One merge under way: the source is kept once, and every attempt matches, decides, writes and commits.

An attempt runs on the dataset's version first, and on the newest one after a conflict. What it wrote is removed if it
fails, unless nobody knows whether it failed. The kept source goes when the merge has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tablewright.api.change_report import Report
from tablewright.api.changes import Work
from tablewright.api.execute import choose_for
from tablewright.api.merge_source import Incoming
from tablewright.engine.choose import Choice
from tablewright.errors import CommitUnknown
from tablewright.format.transaction import Transaction
from tablewright.operations.leftovers import Leftovers, removed_on_failure
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.decide import Actions, check_no_match, decide_merge
from tablewright.operations.merge_insert.distinct import check_distinct, with_distinct_keys
from tablewright.operations.merge_insert.finish import finish_merge
from tablewright.operations.merge_insert.fit import fitted_batches
from tablewright.operations.merge_insert.keys import KeyTable
from tablewright.operations.merge_insert.match import run_match_task
from tablewright.operations.merge_insert.matching import index_pairs, known_matches, match_tasks
from tablewright.operations.merge_insert.pairs import FragmentMatches, united
from tablewright.operations.merge_insert.plan import MergePlan, plan_merge
from tablewright.operations.merge_insert.recheck import Recheck
from tablewright.operations.merge_insert.shared import (
    KeyRange,
    SharedKeys,
    SharedSource,
    share,
    source_keys,
)
from tablewright.operations.merge_insert.source import KeptSource, keep
from tablewright.operations.merge_insert.strategy import Strategy, choose_strategy, key_ranges, scan_bytes
from tablewright.operations.merge_insert.write import run_write_task, write_tasks
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import commit
from tablewright.transaction.retry import RetryOptions, with_retries

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["MergeJob", "Merged", "merge_counts"]


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """What an attempt wrote, before it is committed."""

    transaction: Transaction
    affected: AffectedRows
    actions: Actions
    leftovers: Leftovers
    recheck: Recheck
    bytes_written: int
    num_files_written: int


class MergeJob:
    """A merge of some data, to be run once; use it as a context."""

    def __init__(self, dataset: LanceDataset, on: Any, clauses: Clauses, incoming: Incoming, report: Report) -> None:
        self._dataset, self._on, self._clauses, self._incoming = dataset, on, clauses, incoming
        self._world = dataset._world
        self._report = report
        self._now_ns = self._world.clock.now_ns()
        self._source: KeptSource | None = None
        self._shared: SharedSource | None = None
        self._shared_files = Leftovers(self._world)
        self._keys: KeyTable | None = None
        self._ranges: tuple[KeyRange, ...] = ()

    def __enter__(self) -> MergeJob:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget the source, and remove the files that workers read it from."""
        if self._source is not None:
            self._source.close()
        self._shared_files.remove()

    # ------------------------------------------------------------------------------------------------------- running
    def execute(self, retries: RetryOptions) -> dict[str, int]:
        """Run and commit; after a conflict again, on the newest version."""

        def attempt(number: int) -> dict[str, int]:
            base = self._dataset._snapshot if number == 0 else open_snapshot(self._world)
            merged = self.attempt(base)
            try:
                with self._report.stage("Commit"):
                    committed = commit(
                        self._world, merged.transaction, base=base, affected=merged.affected, recheck=merged.recheck
                    )
            except CommitUnknown:
                raise  # it may be visible: its files have to stay
            except Exception:
                merged.leftovers.remove()
                raise
            self._dataset._snapshot = committed.snapshot
            return merge_counts(merged, self._report.attempts) | {"version": committed.snapshot.version}

        return with_retries(self._world, attempt, retries)

    def attempt(self, snapshot: Snapshot) -> Merged:
        """Match, decide and write on a version. If it fails, nothing stays behind."""
        self._report.attempts += 1
        with removed_on_failure(self._world) as leftovers:
            work = Work(self._dataset, leftovers, self._report)
            plan = self.plan(snapshot)
            source = self._fitting(plan)
            strategy = choose_strategy(snapshot, plan, source.num_rows, self._ranges)
            matches = self._matched(snapshot, plan, strategy, source, work)
            check_no_match(plan, matches, source)
            actions = decide_merge(plan, matches, source.num_rows)
            self._report.notes = [f"{strategy}", str(actions.decision)]
            results = self._write(plan, actions, source, work)
            transaction, affected = finish_merge(plan, results, self._world.ids.uuid())
        return Merged(
            transaction,
            affected,
            actions,
            leftovers,
            Recheck(snapshot, plan, strategy, source, self._keys),
            bytes_written=sum(result.bytes_written for result in results),
            num_files_written=sum(len(result.paths) for result in results),
        )

    def plan(self, snapshot: Snapshot) -> MergePlan:
        """The plan on a version; the kept source is what it is planned for, once there is one."""
        schema = self._incoming.schema if self._source is None else self._source.schema
        return plan_merge(snapshot, self._clauses, self._on, schema, self._now_ns)

    # -------------------------------------------------------------------------------------------------------- source
    def _fitting(self, plan: MergePlan) -> KeptSource:
        """The source in the table's types, one row per key. It is read and looked at once, unless the table changed."""
        if self._source is not None and self._source.schema.types == plan.fitted.schema.types:
            return self._source
        with self._report.stage("Source"):
            if self._source is None:
                self._source, shared = self._incoming.keep(plan.fitted, self._world, plan.file_version)
                self._share(shared)
            else:
                old = self._source
                self._source = keep(plan.fitted.schema, fitted_batches(plan.fitted, old.batches()))
                self._shared = None
                old.close()
            self._distinct(plan, self._source)
        return self._source

    def _distinct(self, plan: MergePlan, source: KeptSource) -> None:
        size = source.nbytes * len(plan.key.columns) // max(1, len(source.schema))
        ranges = key_ranges(source.num_rows, size)
        if plan.clauses.dedupe is not None:
            left = with_distinct_keys(source, plan.key, plan.clauses.dedupe, ranges)
            if left is not source:
                self._shared = None
                self._source = source = left
                ranges = key_ranges(source.num_rows, size)
        self._ranges = ranges
        self._keys = check_distinct(source, plan.key, ranges)

    def _share(self, shared: SharedSource | None) -> None:
        """The source's form for workers; its files stay until the end, also when another form takes its place."""
        if shared is not None:
            self._shared_files.add(shared.paths)
        self._shared = shared

    def _for(self, choice: Choice, plan: MergePlan, source: KeptSource) -> KeptSource | SharedSource:
        """The source as tasks of an engine can read it: workers find it in storage."""
        if choice.engine.name == "local":
            return source
        if self._shared is None:
            with self._report.stage("Sharing the source"):
                self._share(share(self._world, source, plan.file_version))
        assert self._shared is not None
        return self._shared

    # ------------------------------------------------------------------------------------------------- match and write
    def _matched(
        self, snapshot: Snapshot, plan: MergePlan, strategy: Strategy, source: KeptSource, work: Work
    ) -> dict[int, FragmentMatches]:
        known = {}
        if strategy.segments:
            with self._report.stage("Index lookup"):
                known = index_pairs(snapshot, plan, strategy, source)
        choice = self._choose(scan_bytes(plan, strategy.scanned))
        where = self._for(choice, plan, source)
        found = known_matches(plan, known)
        for number, rows in enumerate(strategy.ranges):
            keys = self._keys_for(where, source, plan, rows)
            tasks = match_tasks(plan, strategy, keys, where, known if number == 0 else {})
            results = work.run("Matching", run_match_task, tasks, choice)
            self._report.count_read(results)
            found.extend(each for result in results for each in result.found)
        return united(found)

    def _keys_for(
        self, where: KeptSource | SharedSource, source: KeptSource, plan: MergePlan, rows: KeyRange
    ) -> KeyTable | SharedKeys:
        if isinstance(where, SharedSource):
            return SharedKeys(source=where, key=plan.key, rows=rows)
        return self._keys or KeyTable(source_keys(source, plan.key, rows), rows[0])

    def _write(self, plan: MergePlan, actions: Actions, source: KeptSource, work: Work) -> list[Any]:
        inserted = source.nbytes * actions.num_inserted_rows // max(1, source.num_rows)
        choice = self._choose(2 * (actions.decision.bytes_written + inserted))
        tasks = write_tasks(plan, actions, self._for(choice, plan, source))
        results = work.run("Writing", run_write_task, tasks, choice)
        self._report.count_read(results)
        self._report.count_written(results)
        self._report.fragments += len(actions.touched)
        return results

    def _choose(self, estimated_bytes: int) -> Choice:
        dataset, spark = self._dataset, self._incoming.spark
        return choose_for(self._world, estimated_bytes, dataset._engine, dataset._spark if spark is None else spark)


def merge_counts(merged: Merged, attempts: int) -> dict[str, int]:
    """What the caller gets to know."""
    return {
        "num_inserted_rows": merged.actions.num_inserted_rows,
        "num_updated_rows": merged.actions.num_updated_rows,
        "num_deleted_rows": merged.actions.num_deleted_rows,
        "num_attempts": attempts,
        "bytes_written": merged.bytes_written,
        "num_files_written": merged.num_files_written,
    }
