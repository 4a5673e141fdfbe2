"""The operations that others committed between two versions, and the rewrites among them.

Tests: ``tests/unit/transaction/test_history.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablewright.errors import VersionNotFound
from tablewright.format.transaction import Operation, Rewrite
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.transaction.crossing import Crossing

__all__ = ["crossings_between", "operations_between"]


def operations_between(since: int, newest: Snapshot) -> dict[int, Operation | None]:
    """By version, what was committed after ``since`` up to ``newest``.

    ``None`` where a version was cleaned up meanwhile, or does not say what it changed.
    """
    store = newest.world.store
    return {version: _operation(store, version) for version in range(since + 1, newest.version + 1)}


def crossings_between(base: Snapshot, newest: Snapshot) -> Iterator[Crossing]:
    """The steps over rewrites from ``base`` to ``newest``, in order.

    It ends early at a version that was cleaned up, or does not say what it changed.
    """
    world = newest.world
    for version, operation in operations_between(base.version, newest).items():
        if operation is None:
            return
        if isinstance(operation, Rewrite):
            try:
                yield Crossing(open_snapshot(world, version - 1), open_snapshot(world, version), operation)
            except VersionNotFound:
                return


def _operation(store: Store, version: int) -> Operation | None:
    entry = find_version(store, version)
    if entry is None:
        return None
    try:
        transaction = read_transaction(store, read_manifest(store, entry))
    except ObjectNotFound:
        return None
    return None if transaction is None else transaction.operation
