"""Publishing a manifest by put-if-absent; the uuid in the name of its transaction file shows whose it is.

The inline transaction is not used for that: a large one is not inline, and the name is always there.
"""

from __future__ import annotations

from enum import Enum
from functools import partial

from tablewright.errors import CorruptTable
from tablewright.format.envelope import decode_manifest_file
from tablewright.format.transaction import Transaction
from tablewright.storage.base import ObjectNotFound
from tablewright.transaction.settle import put_once
from tablewright.world import World

__all__ = ["Published", "publish", "withdraw"]


class Published(Enum):
    """Whose manifest has the name that we tried to create."""

    OURS = "ours"
    THEIRS = "theirs"


def publish(world: World, path: str, data: bytes, transaction: Transaction, version: int) -> Published:
    """Put-if-absent ``data`` at ``path``, and find out for certain whose manifest has the name."""
    is_ours = partial(_is_ours, path=path, uuid=transaction.uuid)
    ours = put_once(world, path, data, is_ours, version=version, name=transaction.uuid)
    return Published.OURS if ours else Published.THEIRS


def withdraw(world: World, path: str, transaction: Transaction) -> None:
    """Remove our manifest at ``path``, which is in a table that it does not belong to; others' stay."""
    try:
        if _is_ours(world.store.get(path), path=path, uuid=transaction.uuid):
            world.store.delete(path)
    except ObjectNotFound:
        return


def _is_ours(data: bytes, *, path: str, uuid: str) -> bool:
    try:
        file = decode_manifest_file(data, path)
    except CorruptTable:
        return False
    _, _, made_by = file.manifest.transaction_file.partition("-")  # the version that it read, and its uuid
    return made_by == f"{uuid}.txn"
