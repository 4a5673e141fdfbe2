"""Versions that are never the latest: readable by their number, invisible otherwise.

Tests: ``tests/unit/transaction/test_commit.py``.
"""

from __future__ import annotations

from dataclasses import replace

from tablewright.errors import CommitConflict
from tablewright.format.envelope import ManifestFile, encode_manifest_file
from tablewright.format.flags import check_writable
from tablewright.format.naming import detached_path
from tablewright.format.transaction import Transaction, encode_transaction
from tablewright.snapshot.files import write_transaction
from tablewright.snapshot.locate import VersionEntry
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.apply import apply
from tablewright.transaction.committer import Published, publish
from tablewright.transaction.deferral import caught_up
from tablewright.world import World

__all__ = ["commit_detached"]


def commit_detached(world: World, transaction: Transaction, base: Snapshot) -> Snapshot:
    """Commit a version that is never the latest: readable by its number, invisible otherwise."""
    check_writable(base.manifest.writer_flags, world.store.location.uri)
    name = write_transaction(world.store, transaction)
    after = apply(caught_up(base), transaction, timestamp_ns=world.clock.now_ns(), transaction_file=name)
    after = replace(after, version=world.ids.u64() | 1 << 63)
    path = detached_path(after.version)
    data = encode_transaction(transaction)
    encoded = encode_manifest_file(after, data)
    if publish(world, path, encoded, transaction, after.version) is Published.THEIRS:
        ours = type(transaction.operation).__name__
        raise CommitConflict(ours, "unknown", after.version, reason="the number was taken")
    entry = VersionEntry(version=after.version, path=path, v2=True, size=len(encoded), modified_ns=after.timestamp_ns)
    return Snapshot(world=world, entry=entry, file=ManifestFile(manifest=after, transaction_bytes=data, path=path))
