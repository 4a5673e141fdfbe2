"""Publishing a snapshot file by put-if-absent.

Put-if-absent of ``snapshot/snapshot-<n>`` is the commit point. (Paimon's own writers rename a temporary file to that
name if it does not exist, so the first writer wins in either way.) A snapshot names the user and the identifier of the
commit that made it, and each of our commits uses a unique user.

Tests: ``tests/concurrency/test_paimon_delete.py``.
"""

from __future__ import annotations

from functools import partial

from tablewright.errors import CorruptTable, StorageError, UnsupportedFeature
from tablewright.paimon.format.layout import LATEST_HINT, snapshot_path
from tablewright.paimon.format.snapshot import Snapshot, decode_snapshot, encode_snapshot
from tablewright.storage.subtree import put_advice
from tablewright.transaction.settle import put_once
from tablewright.world import World

__all__ = ["publish_snapshot", "write_hint"]


def publish_snapshot(world: World, snapshot: Snapshot) -> bool:
    """Make a snapshot visible if its name is free: ``True`` if it is ours now, ``False`` if another writer holds it.

    :class:`~tablewright.errors.CommitUnknown` if the store answers neither; then the snapshot may be there.
    """
    path = snapshot_path(snapshot.id)
    is_ours = partial(_is_ours, path=path, snapshot=snapshot)
    return put_once(world, path, encode_snapshot(snapshot), is_ours, version=snapshot.id, name=snapshot.commit_user)


def write_hint(world: World, id: int) -> None:
    """Write the hint ``LATEST``. It is advisory, so a failure is ignored."""
    try:
        put_advice(world.store, LATEST_HINT, str(id).encode())
    except StorageError:
        return


def _is_ours(data: bytes, *, path: str, snapshot: Snapshot) -> bool:
    try:
        there = decode_snapshot(data, path)
    except (CorruptTable, UnsupportedFeature):
        return False
    return (there.commit_user, there.commit_identifier) == (snapshot.commit_user, snapshot.commit_identifier)
