"""Delete: matching rows are added to deletion vectors, which the next snapshot refers to.

1. *match*: a task per data file finds the positions of its live rows that match.
2. *plan*: what was deleted before and what goes now, united per data file; which index files that changes, and what
   they and the snapshot will be. :mod:`.delete_plan` decides all of it without touching the table; here the vectors
   are read that it asks for.
3. *commit*: the new files are written, and the snapshot is made visible by put-if-absent. If another writer was
   first, all that was written is removed and the table is read again.

A data file never changes, and its vector only grows; so what a task found stays true on newer snapshots, less what
others have deleted meanwhile. Only files that came since then are searched after a lost race; if the columns changed,
all are.

Format: ``docs/format/paimon.md#which-deletion-vectors-apply``.

Tests: ``tests/concurrency/test_paimon_delete.py``, ``tests/differential/paimon/test_deleting.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablewright.errors import CommitConflict
from tablewright.expressions import Filter
from tablewright.format.row_set import RowSet
from tablewright.jobs.attempt import attempts
from tablewright.paimon.delete_plan import DeletePlan, Ending, FileKey, Growth, finish_delete, plan_delete
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.kinds import check_deletable
from tablewright.paimon.metadata import TableState, read_state
from tablewright.paimon.places import Places
from tablewright.paimon.publish import publish_snapshot, write_hint
from tablewright.paimon.read import FileTask, ReadPlan, StoredVector, plan_read, read_vector, stored_vectors
from tablewright.storage.base import Store
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World

__all__ = ["DeleteResult", "delete_rows", "explain_delete"]

Matcher = Callable[[ReadPlan, Sequence[FileTask]], list[RowSet]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """What a delete did. ``files`` are the index files that it wrote, below the table's directory.

    Where nothing matched nothing was committed, and ``snapshot_id`` is the one that was searched (``None`` in a table
    without snapshots).
    """

    num_deleted_rows: int
    snapshot_id: int | None
    num_attempts: int
    files: tuple[str, ...] = ()


@dataclass
class _Matches:
    """What was found so far, by data file; it holds for one schema."""

    schema_id: int | None = None
    found: dict[tuple[Any, ...], RowSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """A plan, the table that it is for, and where that table's vectors lie."""

    state: TableState
    stored: Mapping[FileKey, StoredVector]
    plan: DeletePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The snapshot that an attempt is about to publish, and its files; without ``ending`` no row matched."""

    state: TableState
    files: UncommittedFiles
    num_deleted_rows: int = 0
    ending: Ending | None = None

    def done(self, attempts: int) -> tuple[DeleteResult, TableState]:
        """What was done, and the table after it."""
        ending, before = self.ending, self.state.snapshot
        if ending is None:
            id = None if before is None else before.id
            return DeleteResult(num_deleted_rows=0, snapshot_id=id, num_attempts=attempts), self.state
        result = DeleteResult(
            num_deleted_rows=self.num_deleted_rows,
            snapshot_id=ending.snapshot.id,
            num_attempts=attempts,
            files=ending.index_files,
        )
        return result, replace(self.state, snapshot=ending.snapshot, index=ending.index)


def delete_rows(
    world: World, predicate: Filter, match: Matcher, retries: RetryOptions
) -> tuple[DeleteResult, TableState]:
    """Delete the rows that match from the newest snapshot; what was done, and the table after it.

    ``match`` runs the tasks that look for rows.
    """
    user, now_ns, matches = str(world.ids.uuid()), world.clock.now_ns(), _Matches()

    def make(number: int) -> _Made:
        state = read_state(world.store)
        decided = _decide(world.store, state, predicate, now_ns, match, matches)
        with removed_on_failure(world.store) as files:
            if decided is None or not decided.plan.growths:
                return _Made(state=state, files=files)
            ending = _finish(world, decided, user)
            for file in ending.files:
                files.add([file.path])
                world.store.put(file.path, file.data)
            return _Made(state=state, files=files, num_deleted_rows=decided.plan.num_deleted_rows, ending=ending)

    def commit(made: _Made, number: int) -> tuple[DeleteResult, TableState]:
        if made.ending is not None:
            _publish(world, made.ending)
        return made.done(number + 1)

    return attempts(world, make, commit, lambda made, _: made.files.remove(), retries)


def explain_delete(world: World, predicate: Filter, match: Matcher) -> str:
    """What a delete would do now. Rows are looked for, nothing is written."""
    state = read_state(world.store)
    decided = _decide(world.store, state, predicate, world.clock.now_ns(), match, _Matches())
    return f"Delete: uri={state.location.uri}\n  no snapshot yet" if decided is None else str(decided.plan)


def _decide(
    store: Store, state: TableState, predicate: Filter, now_ns: int, match: Matcher, matches: _Matches
) -> _Decided | None:
    """Look for the rows and plan; ``None`` if the table has no snapshot yet."""
    check_deletable(state)
    reading = plan_read(state, store, (), predicate, now_ns=now_ns)
    if state.snapshot is None:
        return None
    _match(reading, state, matches, match)
    stored = stored_vectors(state, store)
    growths = _growths(store, reading.files, matches, stored)
    plan = plan_delete(state, Places(state, store), state.snapshot, growths)
    return _Decided(state=state, stored=stored, plan=plan)


def _match(plan: ReadPlan, state: TableState, matches: _Matches, match: Matcher) -> None:
    """Search the files that were not searched yet."""
    if matches.schema_id != state.schema.id:
        matches.schema_id, matches.found = state.schema.id, {}
    new = [
        (file, task) for file, task in zip(plan.files, plan.tasks, strict=True) if file.identity not in matches.found
    ]
    for (file, _), vector in zip(new, match(plan, [task for _, task in new]), strict=True):
        matches.found[file.identity] = vector


def _growths(
    store: Store, files: Sequence[DataFile], matches: _Matches, stored: Mapping[FileKey, StoredVector]
) -> list[Growth]:
    """The data files that lose rows."""
    growths = []
    for file in files:
        found, key = matches.found[file.identity], (file.partition, file.bucket, file.name)
        if not len(found):
            continue
        before = read_vector(store, stored[key]) if key in stored else RowSet()
        growth = Growth(file=file, before=before, after=before | found)
        if growth.rows:
            growths.append(growth)
    return growths


def _finish(world: World, decided: _Decided, user: str) -> Ending:
    """Read the vectors that are carried on, and make of the plan what is to be written."""
    kept = {key: read_vector(world.store, decided.stored[key]) for key in decided.plan.kept}
    unique = (str(world.ids.uuid()), str(world.ids.uuid()), str(world.ids.uuid()))
    millis = world.clock.now_ns() // 1_000_000
    return finish_delete(decided.plan, decided.state, kept, user=user, time_millis=millis, unique=unique)


def _publish(world: World, ending: Ending) -> None:
    """Make the snapshot visible; :class:`CommitConflict` if another writer was first."""
    if not publish_snapshot(world, ending.snapshot):
        raise CommitConflict("delete", "another commit", ending.snapshot.id)
    write_hint(world, ending.snapshot.id)
