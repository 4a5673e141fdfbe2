"""Create, append and overwrite as a job: data files first, then one commit.

An append that another writer's cast came before is planned again on the newest version, and its rows are written again
in the new type. A write that found no table commits on the one that another writer created meanwhile, if its files
carry the same field ids.

Tests: ``tests/unit/api/test_write.py``, ``tests/concurrency/test_cast_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tablewright.errors import CommitConflict, CommitUnknown, StorageError, TableExists, TableNotFound
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.jobs.attempt import GiveUp, attempts
from tablewright.operations.write import WritePlan, WriteSettings, finish_write, plan_again, plan_write, run_again
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.storage.base import exists
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.transaction.commit import CommitOptions, commit
from tablewright.transaction.retry import RetryOptions
from tablewright.transaction.written import check_written
from tablewright.world import World

__all__ = ["RowWriter", "WriteJob", "latest_or_none"]

RowWriter = Callable[[WritePlan], Iterable[Fragment]]
"""Writes the data files of a plan, in this process or by Spark's executors."""


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """Data files that are in no version yet, and the plan that they were written by."""

    plan: WritePlan
    fragments: tuple[Fragment, ...]
    base: Snapshot | None
    files: UncommittedFiles


@dataclass(frozen=True, kw_only=True)
class WriteJob:
    """One write. ``incoming`` is the schema of the rows, ``write`` makes data files of them.

    ``lock`` is the caller's commit lock: a function of the version that returns a context manager.
    """

    world: World
    settings: WriteSettings
    incoming: pa.Schema
    write: RowWriter
    properties: Mapping[str, str] = field(default_factory=dict)
    lock: Callable[[int], AbstractContextManager[Any]] | None = None

    def base_for(self, given: Snapshot | None) -> Snapshot | None:
        """The version that was given for an append, else the latest one; ``None`` where the write creates the table.

        A branch is not created by a write: one that was deleted meanwhile has no name that leads to the new rows.
        """
        if given is None or (given.branch is None and self.settings.mode != "append"):
            return latest_or_none(self.world)
        return given if self.settings.mode == "append" else open_newest(given)

    def plan(self, base: Snapshot | None) -> WritePlan:
        """Decide how the rows enter the table."""
        return plan_write(base, self.world.store.location.uri, self.incoming, self.settings)

    def run(self, base: Snapshot | None, plan: WritePlan) -> Snapshot:
        """Write the rows and commit them; ``plan`` is that of ``base``."""
        last: _Written | None = None
        began = self.world.clock.monotonic()

        def make(number: int) -> _Written:
            nonlocal last
            last = self._written(plan, base) if last is None else self._written_again(last)
            return last

        retries = None if self.settings.mode == "append" else RetryOptions(conflict_retries=0)
        try:
            return attempts(self.world, make, lambda made, _: self._commit(made, began), _keep, retries)
        except CommitUnknown:
            raise  # the version may exist: its files have to stay
        except Exception:
            if last is not None:
                last.files.remove()
            raise

    # ---- writing

    def _written(self, plan: WritePlan, base: Snapshot | None) -> _Written:
        return self._recorded(plan, tuple(self.write(plan)), base)

    def _recorded(self, plan: WritePlan, fragments: tuple[Fragment, ...], base: Snapshot | None) -> _Written:
        files = UncommittedFiles(self.world.store)
        files.add(data_paths(fragments))
        return _Written(plan, fragments, base, files)

    def _written_again(self, before: _Written) -> _Written:
        """Plan on the newest version, and write the rows again if they belong into other columns there."""
        newest = open_snapshot(self.world) if before.base is None else open_newest(before.base)
        plan = plan_again(before.plan, newest, self.settings)
        if not all(exists(self.world.store, path) for path in data_paths(before.fragments)):
            raise StorageError(
                f"Data files that were written for {plan.uri} are gone: it was dropped or cleaned up meanwhile. "
                "Nothing was committed. Open the table, and write the rows again."
            )
        if plan.columns.fields == before.plan.columns.fields and plan.options == before.plan.options:
            return replace(before, plan=plan, base=newest)
        fragments = run_again(plan, before.plan, before.fragments, self.world)
        before.files.remove()
        return self._recorded(plan, fragments, newest)

    # ---- committing

    def _commit(self, made: _Written, began: float) -> Snapshot:
        try:
            return self._commit_onto(made.base, made.plan, made, began)
        except TableExists:
            if self.settings.mode == "create":
                raise
        try:
            return self._commit_on_theirs(made, began)
        except CommitConflict as conflict:
            raise GiveUp(conflict) from conflict

    def _commit_onto(self, base: Snapshot | None, plan: WritePlan, made: _Written, began: float) -> Snapshot:
        transaction = finish_write(plan, made.fragments, self.world.ids.uuid(), self.properties)
        settings = self.settings
        check_written(self.world, transaction, base, began)
        options = CommitOptions(v2_manifest_names=settings.enable_v2_manifest_paths, creation=settings.creation)
        with self.lock(plan.read_version + 1) if self.lock is not None else nullcontext():
            snapshot = commit(self.world, transaction, base=base, options=options).snapshot
            made.files.release()  # a lock that fails when it is left fails after the commit
            return snapshot

    def _commit_on_theirs(self, made: _Written, began: float) -> Snapshot:
        """Another writer created the table while we wrote: our files join it if they carry the same field ids."""
        theirs = open_snapshot(self.world)
        again = self.plan(theirs)
        if again.columns.fields != made.plan.columns.fields or again.options != made.plan.options:
            reason = "the table was created with other columns"
            raise CommitConflict("Append", "Overwrite", theirs.version, reason=reason)
        return self._commit_onto(theirs, replace(again, options=made.plan.options), made, began)


def latest_or_none(world: World) -> Snapshot | None:
    """The latest version, ``None`` if there is no table."""
    try:
        return open_snapshot(world)
    except TableNotFound:
        return None


def _keep(made: _Written, error: Exception) -> None:
    """The next attempt commits the same files, or reads the rows from them; at the end they are removed."""
