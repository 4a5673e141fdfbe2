"""How one manifest becomes visible exactly once.

Put-if-absent of the manifest's name is the only way to make a version. When the reply is lost, or says that something
is there already, the answer is in the store: the manifest at that name carries the uuid of the transaction
that made it. Nothing is ever written at that name twice, so asking again is safe:

1. put-if-absent. *Created* → ours.
2. Otherwise look: a manifest with our uuid → ours; with another → theirs; nothing there → back to 1.
3. Give up looking after some tries: :class:`~tablewright.errors.CommitUnknown`.
"""

from __future__ import annotations

from enum import Enum

from tablewright.errors import AccessDenied, CommitUnknown, CorruptTable, StorageError
from tablewright.format.envelope import decode_manifest_file
from tablewright.format.transaction import Transaction
from tablewright.storage.base import ObjectNotFound
from tablewright.world import World

__all__ = ["Published", "publish"]

_LOOKS = 8


class Published(Enum):
    """Whose manifest stands at the name we tried to take."""

    OURS = "ours"
    THEIRS = "theirs"


def publish(world: World, path: str, data: bytes, transaction: Transaction, version: int) -> Published:
    """Make ``data`` visible at ``path`` if nothing is there, and learn for certain who holds the name."""
    unanswered: StorageError | None = None
    for look in range(_LOOKS):
        try:
            if world.store.put_if_absent(path, data):
                return Published.OURS
            return _whose(world, path, transaction)
        except AccessDenied:
            if unanswered is None:
                raise
        except ObjectNotFound:
            continue  # it was there and is gone again: a store that settles late; ask once more
        except StorageError as error:
            unanswered = error
            holder = _look(world, path, transaction)
            if holder is not None:
                return holder
        world.clock.sleep(min(2.0, 0.05 * 2**look) * (0.5 + world.jitter()))
    raise CommitUnknown(
        world.store.location.uri, version, transaction.uuid, str(unanswered or "the store contradicts itself")
    )


def _look(world: World, path: str, transaction: Transaction) -> Published | None:
    try:
        return _whose(world, path, transaction)
    except (ObjectNotFound, StorageError):
        return None


def _whose(world: World, path: str, transaction: Transaction) -> Published:
    try:
        file = decode_manifest_file(world.store.get(path), path)
    except CorruptTable:
        return Published.THEIRS
    if file.transaction is not None and file.transaction.uuid == transaction.uuid:
        return Published.OURS
    return Published.OURS if file.manifest.transaction_file.endswith(f"-{transaction.uuid}.txn") else Published.THEIRS
