"""One merge under way: the source is kept once, and every attempt matches, decides, writes and commits.

An attempt runs on the dataset's version first, and on the newest one after a conflict. Then it repeats only what is
new: matches in fragments that are what they were, and files that hold what they have to hold, are used again. What
nobody needs in the end is removed, unless nobody knows whether the merge failed. The kept source goes too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tablewright.api.change_report import Report
from tablewright.api.changes import Work
from tablewright.api.execute import choose_for
from tablewright.api.merge_columns import commit_columns
from tablewright.api.merge_kept import SourceInUse
from tablewright.api.merge_source import Incoming
from tablewright.engine.base import ExchangeEngine
from tablewright.engine.choose import Choice
from tablewright.errors import CommitConflict, CommitUnknown, StorageError
from tablewright.format.transaction import Transaction
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.decide import Actions, check_no_match, decide_merge
from tablewright.operations.merge_insert.finish import finish_merge
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairing import run_pairing_task
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs, united
from tablewright.operations.merge_insert.match.recheck import Recheck
from tablewright.operations.merge_insert.match.shuffle import (
    JoinKeys,
    key_names,
    key_schema,
    partitions_for,
    produce_keys,
)
from tablewright.operations.merge_insert.match.stages import (
    index_pairs,
    known_matches,
    pairing_tasks,
    shuffle_tasks,
    shuffled_pairs,
)
from tablewright.operations.merge_insert.match.strategy import Strategy, choose_strategy, scan_bytes
from tablewright.operations.merge_insert.plan import MergePlan, plan_merge
from tablewright.operations.merge_insert.reuse import Reuse
from tablewright.operations.merge_insert.source.evolution import evolved
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.write.tasks import MergeWriteTask, merge_write_tasks, run_merge_write
from tablewright.operations.rewrite.finish import Rewritten
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.isolation import Both, Unchanged
from tablewright.transaction.retry import RetryOptions, with_retries

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["MergeJob", "Merged", "merge_counts"]

_STRICT_ATTEMPTS = 3
"""So often new columns are tried together with their rows only; then they go first. The last attempt is strict too."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Merged:
    """What an attempt wrote, before it is committed. ``leftovers`` are the files that are new with it.

    ``added`` are columns that the table has to get first.
    """

    base: Snapshot
    added: pa.Schema
    plan: MergePlan
    transaction: Transaction
    affected: AffectedRows
    actions: Actions
    leftovers: UncommittedFiles
    recheck: Recheck
    tasks: Sequence[MergeWriteTask]
    results: Sequence[Rewritten]

    @property
    def paths(self) -> list[str]:
        """All files of the transaction."""
        return [path for result in self.results for path in result.paths]


class MergeJob:
    """A merge of some data, to be run once; use it as a context."""

    def __init__(
        self,
        dataset: LanceDataset,
        on: Any,
        clauses: Clauses,
        incoming: Incoming,
        report: Report,
        *,
        schema_evolution: bool = False,
        isolation: str = "snapshot",
    ) -> None:
        self._is_serializable = isolation == "serializable"
        self._dataset, self._on, self._clauses, self._evolves = dataset, on, clauses, schema_evolution
        self._world, self._spark = dataset._world, dataset._spark if incoming.spark is None else incoming.spark
        self._report = report
        self._now_ns = self._world.clock.now_ns()
        self._source = SourceInUse(incoming, self._world, report)
        self._reuse = Reuse(self._world)
        self._dropped: Positions = np.zeros(0, np.int64)

    def __enter__(self) -> MergeJob:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._reuse.close()
        self._source.close()

    # ------------------------------------------------------------------------------------------------------- running
    def execute(self, retries: RetryOptions) -> dict[str, int]:
        """Run and commit; after a conflict again, on the newest version."""

        base = self._dataset._snapshot

        def attempt(number: int) -> dict[str, int]:
            merged = self.attempt(base if number == 0 else open_newest(base))
            self._reuse.uses(merged.paths)  # from here on, until it is known to have failed
            try:
                with self._report.stage("Commit"):
                    patient = _STRICT_ATTEMPTS <= number < retries.conflict_retries
                    past_others = patient and not self._is_serializable
                    committed = self._commit(merged, past_others=past_others)
            except CommitConflict:
                self._reuse.keep_writes(merged.tasks, merged.results)
                self._reuse.uses(())
                raise
            except CommitUnknown:
                raise  # it may be visible: its files have to stay
            except Exception:
                merged.leftovers.remove()
                self._reuse.uses(())
                raise
            self._dataset._snapshot = committed.snapshot
            return merge_counts(merged, self._report.attempts) | {"version": committed.snapshot.version}

        return with_retries(self._world, attempt, retries)

    def _commit(self, merged: Merged, *, past_others: bool) -> Committed:
        """Commit, after the columns that the table lacks. Somebody else may have been faster with either."""
        base, transaction, recheck = merged.base, merged.transaction, merged.recheck
        if len(merged.added):
            base = self._with_columns(merged, past_others=past_others)
            transaction, recheck = replace(transaction, read_version=base.version), replace(recheck, base=base)
        looks = self.recheck(base, recheck)
        try:
            return commit(self._world, transaction, base=base, affected=merged.affected, recheck=looks)
        except StorageError as error:
            error.nothing_written = error.nothing_written and not len(merged.added)  # the columns are there
            raise

    def recheck(self, base: Snapshot, recheck: Recheck) -> Recheck | Both:
        """What is asked before the merge is put on a newer version than ``base``."""
        return Both(Unchanged.since(base, "Update"), recheck) if self._is_serializable else recheck

    def _with_columns(self, merged: Merged, *, past_others: bool) -> Snapshot:
        """The version after ours, with the columns that the merge was planned with."""
        try:
            after = commit_columns(merged.base, merged.added, merged.recheck, past_others=past_others)
        except CommitUnknown:  # the columns may be there; what the merge has written is in no version
            merged.leftovers.remove()
            self._reuse.uses(())
            raise
        assert after.schema == merged.plan.table
        return after

    def attempt(self, base: Snapshot) -> Merged:
        """Match, decide and write on a version. If it fails, no file stays."""
        self._report.attempts += 1
        with removed_on_failure(self._world.store) as leftovers:
            work = Work(self._dataset, leftovers, self._report)
            snapshot, added = self.target(base)
            plan = self.plan(snapshot)
            self._reuse.begin(plan)
            self._source.keep(plan)
            self._source.settle(plan, self._choose)
            strategy, matches = self._match(snapshot, plan, work)
            source = self._source.rows
            check_no_match(plan, matches, source)
            actions = decide_merge(plan, matches, source.num_rows, self._dropped)
            self._report.notes = list(_notes(source, strategy, actions))
            tasks, results = self._write(plan, actions, work)
            transaction, affected = finish_merge(plan, results, self._world.ids.uuid())
            recheck = Recheck(snapshot, plan, strategy, source, self._source.keys, actions.found)
        return Merged(
            base=base,
            added=added,
            plan=plan,
            transaction=transaction,
            affected=affected,
            actions=actions,
            leftovers=leftovers,
            recheck=recheck,
            tasks=tasks,
            results=results,
        )

    def target(self, base: Snapshot) -> tuple[Snapshot, pa.Schema]:
        """The version that is merged into, with the columns that it lacks if they may be added; and which these are."""
        return evolved(base, self._on, self._source.schema) if self._evolves else (base, pa.schema([]))

    def plan(self, snapshot: Snapshot) -> MergePlan:
        """The plan on a version; the kept source is what it is planned for, once there is one."""
        return plan_merge(snapshot, self._clauses, self._on, self._source.schema, self._now_ns)

    # ------------------------------------------------------------------------------------------------------- matching
    def _match(self, snapshot: Snapshot, plan: MergePlan, work: Work) -> tuple[Strategy, dict[int, FragmentMatches]]:
        source = self._source
        remembered = self._reuse.matches(plan)
        strategy = choose_strategy(
            snapshot,
            plan,
            source.rows.num_rows,
            source.ranges,
            shuffles=source.shuffles_on is not None,
            known=remembered,
        )
        known: dict[int, Pairs] = {}
        if strategy.segments:
            with self._report.stage("Index lookup", fragments=len(strategy.indexed)):
                known = index_pairs(snapshot, plan, strategy, source.rows)
        choice = source.shuffles_on or self._choose(scan_bytes(plan, strategy.scanned))
        if source.shuffles_on and (strategy.scanned or not remembered):
            known = self._shuffled(plan, strategy, source.shuffles_on)
        where = source.where(choice, plan)
        found = [*known_matches(plan, known), *(each for each in remembered.values() if each is not None)]
        for number, rows in enumerate(strategy.ranges[:1] if source.shuffles_on else strategy.ranges):
            keys = None if source.shuffles_on else source.keys_for(where, plan, rows)
            tasks = pairing_tasks(plan, strategy, keys, where, known if number == 0 else {})
            fragments = len({fragment.id for task in tasks for fragment in task.scan.fragments})
            results = work.run("Matching", run_pairing_task, tasks, choice, fragments=fragments)
            found.extend(each for result in results for each in result.found)
        matches = united(found)
        self._reuse.keep_matches(plan, matches)
        return strategy, matches

    def _shuffled(self, plan: MergePlan, strategy: Strategy, choice: Choice) -> dict[int, Pairs]:
        """The pairs in all scanned fragments, found by Spark."""
        engine, shared = choice.engine, self._source.shared(plan)
        assert isinstance(engine, ExchangeEngine)
        tasks = shuffle_tasks(plan, strategy, shared)
        table_rows = sum(plan.fragments.by_id(id).physical_rows for id in strategy.scanned)
        names = key_names(plan.key)
        with self._report.stage("Shuffling keys", choice, len(tasks), len(strategy.scanned)) as stage:
            places = engine.exchange(
                produce_keys,
                tasks,
                JoinKeys(tuple(names), plan.clauses.dedupe),
                schema=key_schema(plan.key, plan.fitted.schema),
                keys=names,
                partitions=partitions_for(shared.num_rows + table_rows),
                describe="Shuffling keys",
            )
            stage.rows_read = shared.num_rows + table_rows
        pairs, self._dropped = shuffled_pairs(plan, strategy, self._source.rows, places)
        return pairs

    # -------------------------------------------------------------------------------------------------------- writing
    def _write(
        self, plan: MergePlan, actions: Actions, work: Work
    ) -> tuple[Sequence[MergeWriteTask], Sequence[Rewritten]]:
        source = self._source.rows
        inserted = source.nbytes * actions.num_inserted_rows // max(1, source.num_rows)
        choice = self._choose(2 * (actions.decision.bytes_written + inserted))
        tasks = merge_write_tasks(plan, actions, self._source.where(choice, plan), self._reuse.insert_edges)
        known = [self._reuse.written(task) for task in tasks]
        unknown = [task for task, old in zip(tasks, known, strict=True) if old is None]
        new = work.run("Writing", run_merge_write, unknown, choice, fragments=len(actions.touched))
        self._report.fragments += len(actions.touched)
        fresh = iter(new)
        return tasks, [next(fresh) if old is None else old for old in known]

    def _choose(self, estimated_bytes: int) -> Choice:
        return choose_for(self._world, estimated_bytes, self._dataset._engine, self._spark)


def _notes(source: KeptSource, strategy: Strategy, actions: Actions) -> Iterator[str]:
    """What an attempt worked with, and what it decided on the way."""
    yield f"  kept source: rows={source.num_rows}, bytes={source.nbytes}, {source.place}"
    yield f"{strategy}"
    if actions.decision.choices:
        yield f"{actions.decision}"


def merge_counts(merged: Merged, attempts: int) -> dict[str, int]:
    """What the caller gets to know."""
    return {
        "num_inserted_rows": merged.actions.num_inserted_rows,
        "num_updated_rows": merged.actions.num_updated_rows,
        "num_deleted_rows": merged.actions.num_deleted_rows,
        "num_attempts": attempts,
        "bytes_written": sum(result.bytes_written for result in merged.results),
        "num_files_written": len(merged.paths),
    }
