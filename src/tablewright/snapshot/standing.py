"""Whether a version that was read before is still part of the table's history.

A table (or a branch) may be dropped, and another one created at its address, while a writer holds a version of the old
one. Version numbers begin at 1 again, so a number proves nothing. The transaction file does: its name holds a random
uuid, it is removed with the table, and cleanup keeps it as long as the version. Where it is missing the manifest is
read again and compared.

A branch exists as long as its description does; deleting one begins with the description.
"""

from __future__ import annotations

from enum import Enum

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.inside import stays_inside
from tablewright.format.naming import branch_path, transaction_file_path
from tablewright.snapshot.files import read_manifest
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound, exists
from tablewright.world import World

__all__ = ["Standing", "standing"]


class Standing(Enum):
    """What became of a version: it is there, it is gone, or its number belongs to another table now."""

    SAME = "same"
    GONE = "gone"
    REPLACED = "replaced"


def standing(world: World, snapshot: Snapshot) -> Standing:
    """Look whether a version is still there. One request, two on a branch, one more where no transaction file is."""
    if not _is_described(world, snapshot.branch):
        return Standing.GONE
    store, name = world.store, snapshot.manifest.transaction_file
    if name and stays_inside(name) and exists(store, transaction_file_path(name)):
        return Standing.SAME
    try:
        now = read_manifest(store, snapshot.entry).manifest
    except ObjectNotFound:
        return Standing.GONE
    except CorruptTable:
        return Standing.REPLACED
    then = snapshot.manifest
    same = (now.transaction_file, now.timestamp_ns) == (then.transaction_file, then.timestamp_ns)
    return Standing.SAME if same else Standing.REPLACED


def _is_described(world: World, branch: str | None) -> bool:
    if branch is None:
        return True
    try:
        main = main_world(world, branch)
    except InvalidRequest:  # the directory of a branch, copied elsewhere: nobody describes it there
        return True
    return exists(main.store, branch_path(branch))
