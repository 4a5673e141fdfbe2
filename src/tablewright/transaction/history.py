"""The operations that others committed between two versions.

Tests: ``tests/unit/transaction/test_history.py``.
"""

from __future__ import annotations

from tablewright.format.transaction import Operation
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound, Store

__all__ = ["operations_between"]


def operations_between(since: int, newest: Snapshot) -> dict[int, Operation | None]:
    """By version, what was committed after ``since`` up to ``newest``.

    ``None`` where a version was cleaned up meanwhile, or does not say what it changed.
    """
    store = newest.world.store
    return {version: _operation(store, version) for version in range(since + 1, newest.version + 1)}


def _operation(store: Store, version: int) -> Operation | None:
    entry = find_version(store, version)
    if entry is None:
        return None
    try:
        transaction = read_transaction(store, read_manifest(store, entry))
    except ObjectNotFound:
        return None
    return None if transaction is None else transaction.operation
