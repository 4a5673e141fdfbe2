"""Merge insert as a job: the source is kept once, and every attempt matches, decides, writes and commits.

After a conflict an attempt repeats only what is new: matches in fragments that are what they were, and files that hold
what they have to hold, are used again (:mod:`tablewright.operations.merge_insert.reuse`). Files that are in no version
in the end are removed, unless it is unknown whether the merge failed. The kept source goes too.

Tests: ``tests/unit/api/test_merge_insert.py``, ``tests/concurrency/test_merge_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.engine.choose import Choice
from tablewright.engine.costs import Workload
from tablewright.errors import CommitConflict, CommitUnknown, StorageError, TablewrightError
from tablewright.jobs.attempt import Job, Made
from tablewright.jobs.merge.new_columns import commit_columns
from tablewright.jobs.merge.source import Incoming, SourceInUse
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.work import Work
from tablewright.jobs.workloads import match_work, merge_work
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
    expected_hits,
    index_candidates,
    index_pairs,
    known_matches,
    pairing_tasks,
    shuffle_tasks,
    shuffled_pairs,
)
from tablewright.operations.merge_insert.match.strategy import Strategy, choose_strategy
from tablewright.operations.merge_insert.plan import MergePlan, plan_merge
from tablewright.operations.merge_insert.reuse import Reuse
from tablewright.operations.merge_insert.source.evolution import evolved
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.write.tasks import MergeWriteTask, merge_write_tasks, run_merge_write
from tablewright.operations.rewrite.finish import InsertedRows, Rewritten
from tablewright.reading.chosen import ChosenRows
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.isolation import Both, Unchanged
from tablewright.transaction.retry import RetryOptions

__all__ = ["MergeJob", "Merged", "PlannedMerge", "merge_counts"]

_STRICT_ATTEMPTS = 3
"""This many attempts commit new columns only together with their rows, and so does the last one."""


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """A merge into ``target``, which is the version that was read, with the columns ``added`` that it lacks."""

    plan: MergePlan
    target: Snapshot
    added: pa.Schema


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Merged(Made):
    """What an attempt wrote. ``added`` are columns that the table has to get first, ``check`` looks for our keys."""

    added: pa.Schema
    plan: MergePlan
    actions: Actions
    check: Recheck
    tasks: Sequence[MergeWriteTask]
    results: Sequence[Rewritten]

    @property
    def paths(self) -> list[str]:
        """All files of the transaction."""
        return [path for result in self.results for path in result.paths]


class MergeJob(Job[PlannedMerge, Merged, dict[str, int]]):
    """A merge of some rows, to be run once. Mutable: it remembers what its attempts found and wrote."""

    def __init__(
        self,
        table: Table,
        on: Any,
        clauses: Clauses,
        incoming: Incoming,
        report: Report,
        *,
        retries: RetryOptions | None = None,
        schema_evolution: bool = False,
        isolation: str = "snapshot",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.retries = retries or RetryOptions()
        self._properties = dict(properties or {})
        self._is_serializable = isolation == "serializable"
        self._on, self._clauses, self._evolves = on, clauses, schema_evolution
        self._table = table if incoming.spark is None else replace(table, spark=incoming.spark)
        self._world, self._report = table.world, report
        self._source = SourceInUse(incoming, self._world, report)
        self._reuse = Reuse(self._world)
        self._dropped: Positions = np.zeros(0, np.int64)
        self._added: tuple[str, ...] = ()

    def close(self, error: BaseException | None) -> None:
        """Remove the files that no version uses, and the kept source."""
        if self._added and isinstance(error, TablewrightError) and not isinstance(error, CommitUnknown):
            error.add(f"The new columns {list(self._added)} were committed before that and stay, null in all rows.")
            if isinstance(error, StorageError):
                error.nothing_written = False
        self._reuse.close()
        self._source.close()

    # ------------------------------------------------------------------------------------------------------- planning
    def plan(self, snapshot: Snapshot, now_ns: int) -> PlannedMerge:
        """The plan on a version. Once the source is kept, it is what the plan is made for."""
        target, added = snapshot, pa.schema([])
        if self._evolves:
            target, added = evolved(snapshot, self._on, self._source.schema)
        plan = plan_merge(target, self._clauses, self._on, self._source.schema, now_ns)
        return PlannedMerge(plan, target, added)

    # -------------------------------------------------------------------------------------------------------- running
    def run(self, plan: PlannedMerge, snapshot: Snapshot, work: Work) -> Merged:
        """Match, decide and write."""
        planned, merge = plan, plan.plan
        self._reuse.begin(merge)
        self._source.keep(merge)
        self._source.settle(merge, self._choose)
        strategy, matches = self._match(planned.target, merge, work)
        source = self._source.rows
        check_no_match(merge, matches, source)
        actions = decide_merge(merge, matches, source.num_rows, self._dropped)
        self._report.notes = list(_notes(source, strategy, actions))
        tasks, results = self._write(merge, actions, work)
        transaction, affected = finish_merge(merge, results, self._world.ids.uuid())
        transaction = replace(transaction, properties=self._properties)
        check = Recheck(planned.target, merge, strategy, source, self._source.keys, actions.found)
        return Merged(
            base=snapshot,
            added=planned.added,
            plan=merge,
            transaction=transaction,
            affected=affected,
            actions=actions,
            files=work.files,
            check=check,
            recheck=self._rechecked(snapshot, check),
            tasks=tasks,
            results=results,
        )

    def _rechecked(self, base: Snapshot, check: Recheck) -> Recheck | Both:
        """What is asked before the merge is put on a newer version than ``base``."""
        return Both(Unchanged.since(base, "Update"), check) if self._is_serializable else check

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
            hits=expected_hits(snapshot, plan, source.rows),
        )
        known: dict[int, Pairs] = {}
        candidates: dict[int, ChosenRows] = {}
        if strategy.segments:
            with self._report.stage("Index lookup", fragments=len(strategy.indexed)):
                if strategy.narrows is None:
                    known = index_pairs(snapshot, plan, strategy, source.rows)
                else:
                    candidates = index_candidates(snapshot, plan, strategy, source.rows)
        choice = source.shuffles_on or self._choose(
            match_work(plan, strategy.scanned, source.rows.num_rows, source.shipped_bytes)
        )
        if source.shuffles_on and (strategy.scanned or not remembered):
            known = self._shuffled(plan, strategy, source.shuffles_on)
        where = source.where(choice, plan)
        found = [*known_matches(plan, known), *(each for each in remembered.values() if each is not None)]
        for number, rows in enumerate(strategy.ranges[:1] if source.shuffles_on else strategy.ranges):
            keys = None if source.shuffles_on else source.keys_for(where, plan, rows)
            tasks = pairing_tasks(plan, strategy, keys, where, known if number == 0 else {}, candidates)
            fragments = len({id for task in tasks for id in task.scan.fragment_ids})
            results = work.run("Matching", run_pairing_task, tasks, choice, fragments=fragments)
            found.extend(each for result in results for each in result.found)
        matches = united(found)
        self._reuse.keep_matches(plan, matches)
        return strategy, matches

    def _shuffled(self, plan: MergePlan, strategy: Strategy, choice: Choice) -> dict[int, Pairs]:
        """The pairs in all scanned fragments, found by Spark."""
        shared = self._source.shared(choice, plan)
        tasks = shuffle_tasks(plan, strategy, shared)
        scanned = plan.fragments.positions(strategy.scanned)
        table_rows = int(plan.fragments.physical_rows[scanned].sum())
        names = key_names(plan.key)
        with self._report.stage("Shuffling keys", choice, len(tasks), len(strategy.scanned)) as stage:
            places = choice.engine.exchange(
                produce_keys,
                tasks,
                JoinKeys(tuple(names), plan.clauses.kept_duplicate),
                self._world,
                schema=key_schema(plan.key, plan.fitted.schema),
                keys=names,
                partitions=partitions_for(shared.num_rows + table_rows, plan.limits.match),
                describe="Shuffling keys",
            )
            stage.rows_read = shared.num_rows + table_rows
        pairs, self._dropped = shuffled_pairs(plan, strategy, self._source.rows, places)
        return pairs

    # -------------------------------------------------------------------------------------------------------- writing
    def _write(
        self, plan: MergePlan, actions: Actions, work: Work
    ) -> tuple[Sequence[MergeWriteTask], Sequence[Rewritten]]:
        source, edges = self._source, self._reuse.insert_edges
        tasks = merge_write_tasks(plan, actions, source.rows, edges)
        choice = self._choose(merge_work(source.rows, actions, len(tasks), source.shipped_bytes))
        if not choice.engine.in_process:
            tasks = merge_write_tasks(plan, actions, source.shared(choice, plan), edges)
        known = [self._reuse.written(task) for task in tasks]
        unknown = [task for task, old in zip(tasks, known, strict=True) if old is None]
        new = work.run("Writing", run_merge_write, unknown, choice, fragments=len(actions.touched))
        self._report.fragments += len(actions.touched)
        fresh = iter(new)
        return tasks, [next(fresh) if old is None else old for old in known]

    def _choose(self, work: Workload) -> Choice:
        return self._table.choose(work)

    # ----------------------------------------------------------------------------------------------------- committing
    def commit(self, made: Merged, attempt: int) -> Committed:
        """Commit, after the columns that the table lacks. Another writer may have been first with either."""
        self._reuse.uses(made.paths)  # from here on, until the commit is known to have failed
        is_last = attempt >= self.retries.conflict_retries
        past_others = attempt >= _STRICT_ATTEMPTS and not is_last and not self._is_serializable
        try:
            return self._commit(made, past_others=past_others)
        except CommitUnknown:
            raise  # the version may exist: its files have to stay
        except CommitConflict:
            self._reuse.keep_writes(made.tasks, made.results)
            self._reuse.uses(())
            raise
        except Exception:
            self._reuse.uses(())
            raise

    def lost(self, made: Merged) -> None:
        """The files stay: the next attempt uses what still holds."""

    def result(self, made: Merged, committed: Committed | None) -> dict[str, int]:
        """What was done, in numbers."""
        counts = merge_counts(made, self._report.attempts)
        return counts if committed is None else counts | {"version": committed.snapshot.version}

    def _commit(self, made: Merged, *, past_others: bool) -> Committed:
        if not len(made.added):
            return super().commit(made, 0)
        base = self._with_columns(made, past_others=past_others)
        transaction, check = replace(made.transaction, read_version=base.version), replace(made.check, base=base)
        return commit(
            self._world,
            transaction,
            base=base,
            affected=made.affected,
            recheck=self._rechecked(base, check),
        )

    def _with_columns(self, made: Merged, *, past_others: bool) -> Snapshot:
        """The version after ours, with the columns that the merge was planned with."""
        try:
            after = commit_columns(made.base, made.added, made.check, past_others=past_others)
        except CommitUnknown:  # the columns may be there; what the merge has written is in no version
            made.files.remove()
            self._reuse.uses(())
            raise
        self._added = tuple(made.added.names)
        if after.version != made.base.version + 1:
            raise CommitConflict("Merge", "unknown", after.version, reason="other versions came before our new columns")
        assert after.schema == made.plan.table, "the new columns must be those that the merge was planned with"
        return after


def _notes(source: KeptSource, strategy: Strategy, actions: Actions) -> Iterator[str]:
    """What an attempt worked with, and what it decided on the way."""
    yield f"  kept source: rows={source.num_rows}, bytes={source.nbytes}, {source.place}"
    yield f"{strategy}"
    if actions.decision.choices:
        yield f"{actions.decision}"


def merge_counts(merged: Merged, attempts: int) -> dict[str, int]:
    """What a merge did, in numbers."""
    return {
        "num_inserted_rows": sum(
            fragment.physical_rows
            for result in merged.results
            if isinstance(result, InsertedRows)
            for fragment in result.fragments
        ),
        "num_updated_rows": merged.actions.num_updated_rows,
        "num_deleted_rows": merged.actions.num_deleted_rows,
        "num_attempts": attempts,
        "bytes_written": sum(result.bytes_written for result in merged.results),
        "num_files_written": len(merged.paths),
    }
