"""The columns that a merge adds: a version of its own, directly before that of the rows.

The columns of a merge that fails should not stay. So they are committed on the version that the merge was made from; if
another writer committed first, that is a conflict, and the merge runs again with nothing changed. On a busy table that
may happen many times. Then (``past_others``) the columns are committed past versions that change neither the schema nor
a row with one of the merge's keys, and the next attempt finds them there.

Tests: ``tests/concurrency/test_merge_evolves.py``.
"""

from __future__ import annotations

import pyarrow as pa

from tablewright.errors import CommitConflict
from tablewright.operations.columns.add import Nulls
from tablewright.operations.columns.plan import finish_columns
from tablewright.operations.merge_insert.match.recheck import Recheck
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.transaction.commit import commit

__all__ = ["commit_columns"]

_TRIES_MAX = 20


def commit_columns(base: Snapshot, added: pa.Schema, recheck: Recheck, *, past_others: bool) -> Snapshot:
    """Commit the columns, null in all rows, as the version after ``base``, or a later one where others came first.

    In the second case (``past_others`` only) the merge has to look again. So it has where this raises
    :class:`~tablewright.errors.CommitConflict`: then the columns are not there.
    """
    newest = base
    for _ in range(_TRIES_MAX):
        try:
            return _commit(base, newest, added, recheck, past_others=past_others)
        except CommitConflict as conflict:
            reason, newest = f"{conflict}", open_snapshot(base.world)
            if not _may_pass(base, newest, recheck, past_others=past_others):
                break
    raise CommitConflict("Merge", "unknown", newest.version, reason=reason)


def _commit(base: Snapshot, newest: Snapshot, added: pa.Schema, recheck: Recheck, *, past_others: bool) -> Snapshot:
    def look(at: Snapshot) -> None:
        if not _may_pass(base, at, recheck, past_others=past_others):
            raise CommitConflict("Merge", "unknown", at.version, reason="others came before our new columns")

    world = base.world
    transaction = finish_columns(Nulls(added).plan(newest), {}, world.ids.uuid())
    return commit(world, transaction, base=newest, recheck=look).snapshot


def _may_pass(base: Snapshot, newest: Snapshot, recheck: Recheck, *, past_others: bool) -> bool:
    """Whether the columns may come after ``newest``, a version of others: the merge will go on there as it is."""
    if not past_others or newest.schema != base.schema:
        return False
    try:
        recheck(newest)
    except CommitConflict:
        return False
    return True
