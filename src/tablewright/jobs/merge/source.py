"""The source while its merge runs: read once, fitted to the table, one row per key, and where every engine finds it.

Tests: ``tests/unit/api/test_merge_insert_calls.py``, ``tests/spark/test_merge_insert.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablewright.engine.choose import Choice
from tablewright.engine.costs import Workload
from tablewright.jobs.report import Report
from tablewright.jobs.workloads import keys_work
from tablewright.operations.merge_insert.keys.key_table import KeyTable
from tablewright.operations.merge_insert.match.strategy import key_ranges, too_many_for_a_worker
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.distinct import check_distinct, with_distinct_keys
from tablewright.operations.merge_insert.source.fit import fitted_batches
from tablewright.operations.merge_insert.source.kept import KeptSource, keep, to_file
from tablewright.operations.merge_insert.source.shared import (
    FileSource,
    KeyRange,
    SharedKeys,
    SharedSource,
    StoredSource,
    share,
    source_keys,
)
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.world import World

__all__ = ["Incoming", "Kept", "SourceInUse"]

Kept = tuple[KeptSource, StoredSource | None]


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows to be merged: their schema, and how they are kept once it is known how they fit the table.

    ``spark`` is the session that they belong to, if they are a Spark DataFrame.
    """

    schema: pa.Schema
    keep: Callable[[MergePlan, World], Kept]
    spark: Any = None


class SourceInUse:
    """The rows of a source, read once, unless the table's types change meanwhile.

    ``shuffles_on`` is the engine that matches keys which are too many for one of its workers, ``keys`` are those that
    fit into memory together.
    """

    def __init__(self, incoming: Incoming, world: World, report: Report) -> None:
        self._incoming, self._world, self._report = incoming, world, report
        self._kept: KeptSource | None = None
        self._shared: SharedSource | None = None
        self._file: KeptSource | None = None
        self._shared_files = UncommittedFiles(world.store)
        self._is_settled = False
        self.keys: KeyTable | None = None
        self.ranges: tuple[KeyRange, ...] = ()
        self.shuffles_on: Choice | None = None

    def close(self) -> None:
        """Forget the rows, and remove the files that workers read them from."""
        if self._kept is not None:
            self._kept.close()
        if self._file is not None:
            self._file.close()
        self._shared_files.remove()

    @property
    def schema(self) -> pa.Schema:
        """The columns in the order in which they came; once they are kept, in the table's types, and those only."""
        given = self._incoming.schema
        if self._kept is None:
            return given
        kept = self._kept.schema
        return pa.schema([kept.field(name) for name in given.names if name in kept.names])

    @property
    def rows(self) -> KeptSource:
        """The rows, once they are kept."""
        assert self._kept is not None
        return self._kept

    def keep(self, plan: MergePlan) -> None:
        """Keep the rows in the table's types."""
        if self._kept is not None and self._kept.schema.types == plan.fitted.schema.types:
            return
        with self._report.stage("Source"):
            if self._kept is None:
                self._kept, shared = self._incoming.keep(plan, self._world)
                self._share(shared)
            else:
                old = self._kept
                self._kept = keep(plan.fitted.schema, fitted_batches(plan.fitted, old.batches()), plan.limits.source)
                self._shared = None
                old.close()
        self._is_settled = False

    def settle(self, plan: MergePlan, choose: Callable[[Workload], Choice]) -> None:
        """Make sure that there is one row per key; where the keys are shuffled, the shuffle checks it."""
        if self._is_settled:
            return
        size, limits = self.rows.nbytes_of(plan.key.columns), plan.limits.match
        self.ranges, self.keys, self.shuffles_on = key_ranges(self.rows.num_rows, size, limits), None, None
        if too_many_for_a_worker(self.rows.num_rows, size, limits):
            choice = choose(keys_work(plan, self.rows, self.shipped_bytes))
            self.shuffles_on = None if choice.engine.in_process else choice
        if self.shuffles_on is None:
            with self._report.stage("Keys"):
                self._distinct(plan, size)
        self._is_settled = True

    def _distinct(self, plan: MergePlan, size: int) -> None:
        if plan.clauses.kept_duplicate is not None:
            left = with_distinct_keys(self.rows, plan.key, plan.clauses.kept_duplicate or "first", self.ranges)
            if left is not self._kept:
                self._kept, self._shared = left, None
                self.ranges = key_ranges(left.num_rows, size, plan.limits.match)
        self.keys = check_distinct(self.rows, plan.key, self.ranges)

    # -------------------------------------------------------------------------------------------------------- engines
    def where(self, choice: Choice, plan: MergePlan) -> KeptSource | SharedSource:
        """The rows as tasks of an engine can read them: workers find them in storage."""
        return self.rows if choice.engine.in_process else self.shared(choice, plan)

    @property
    def shipped_bytes(self) -> int:
        """How much would have to be written before workers find the rows."""
        return self.rows.nbytes if self._shared is None else 0

    def shared(self, choice: Choice, plan: MergePlan) -> SharedSource:
        """The rows as the workers of an engine find them, which is the same in all stages that leave this process."""
        if self._shared is None:
            with self._report.stage("Sharing the source"):
                if choice.engine.on_this_machine:
                    self._shared = self._in_a_file()
                else:
                    self._share(share(self._world, self.rows, plan.file_version))
        assert self._shared is not None
        return self._shared

    def _in_a_file(self) -> FileSource:
        if self._file is not None and self._file is not self._kept:
            self._file.close()
        self._file = to_file(self.rows)
        assert self._file.path is not None
        return FileSource(
            path=self._file.path, schema=self.rows.schema, num_rows=self.rows.num_rows, nbytes=self.rows.nbytes
        )

    def _share(self, shared: StoredSource | None) -> None:
        """The files stay until the end, also when another form takes their place."""
        if shared is not None:
            self._shared_files.add(shared.paths)
        self._shared = shared

    def keys_for(self, where: KeptSource | SharedSource, plan: MergePlan, rows: KeyRange) -> KeyTable | SharedKeys:
        """The keys of some rows, as tasks can read them."""
        if not isinstance(where, KeptSource):
            return SharedKeys(source=where, key=plan.key, rows=rows)
        return self.keys or KeyTable(source_keys(self.rows, plan.key, rows), rows[0])
