"""Whether a version that was read before is still part of the table's history.

A table (or a branch) may be dropped, and another one created at its address, while a writer holds a version of the old
one. Version numbers begin at 1 again, so a number proves nothing. The transaction file does: its name holds a random
uuid, it is removed with the table, and cleanup keeps it as long as the version. Where it is missing the manifest is
read again and compared.

A branch exists as long as its description does; deleting one begins with the description.

An operation that runs again after a conflict looks at the newest version (:func:`open_newest`). It must not be one of
another table. If the version that the operation had read was cleaned up meanwhile, a data file that both versions refer
to shows that they belong together: its name is random. A writer that has published its version looks for a file that it
wrote before (:func:`stands_with`), because the version below may have been cleaned up in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from tablewright.errors import CorruptTable, InvalidRequest, VersionNotFound
from tablewright.format.inside import stays_inside
from tablewright.format.naming import branch_path, transaction_file_path
from tablewright.snapshot.files import read_manifest
from tablewright.snapshot.refs import main_world
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage.base import ObjectNotFound, exists
from tablewright.world import World

__all__ = [
    "Standing",
    "check_standing",
    "open_newest",
    "replaced",
    "shares_files",
    "standing",
    "stands_with",
    "while_it_stands",
]


class Standing(Enum):
    """The state of a version: it exists, it is gone, or its number belongs to another table now."""

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


@contextmanager
def while_it_stands(snapshot: Snapshot) -> Iterator[None]:
    """Read a version. If files are missing because it was cleaned up, the error says so: :class:`VersionNotFound`."""
    try:
        yield
    except CorruptTable as error:
        if standing(snapshot.world, snapshot) is not Standing.GONE:
            raise
        hint = "It was cleaned up since it was opened, and its files are gone. Open it again; a tag keeps a version."
        raise VersionNotFound(snapshot.location.uri, f"Version {snapshot.version}", hint) from error


def stands_with(world: World, snapshot: Snapshot, path: str) -> bool:
    """Whether the table of a version that is gone still exists: it was cleaned up, not dropped.

    ``path`` is a file of ours that was written while the version was there. Dropping a table, or deleting a branch,
    removes all files; cleanup keeps those that are younger than seven days.
    """
    return _is_described(world, snapshot.branch) and exists(world.store, path)


def shares_files(one: Snapshot, other: Snapshot) -> bool:
    """Whether two versions refer to a data file of their own directory in common: then they are of one table."""
    return bool(_own_files(one) & _own_files(other))


def open_newest(known: Snapshot) -> Snapshot:
    """The latest version of the table that ``known`` is a version of.

    Raises :class:`VersionNotFound` if the table (or branch) was dropped or replaced since ``known`` was read.
    """
    world = known.world
    newest = open_snapshot(world)
    found = standing(world, known)  # after the newest version was read: then both are versions of one table
    if found is Standing.SAME or (found is Standing.GONE and shares_files(known, newest)):
        return newest
    raise replaced(known)


def check_standing(known: Snapshot) -> None:
    """Refuse to act on tags and branches through a version whose table (or branch) was dropped or replaced.

    One request (two on a branch) where the version is still there; else the newest one is read and compared.
    """
    if standing(known.world, known) is not Standing.SAME:
        open_newest(known)


def replaced(known: Snapshot) -> VersionNotFound:
    """The error of an operation that had read ``known``, where that is no version of the table any more."""
    what = "The table" if known.branch is None else f"Branch {known.branch}"
    hint = (
        f"{what} was dropped or replaced since it was opened, or cleaned up until no file of this version was left; "
        "nothing of this operation is there. Open it again."
    )
    return VersionNotFound(known.location.uri, f"Version {known.version}", hint)


def _own_files(snapshot: Snapshot) -> set[str]:
    """The data files of a version that lie in its own directory; a branch shares the others with its table."""
    return {file.path for fragment in snapshot.fragments for file in fragment.files if file.base_id is None}


def _is_described(world: World, branch: str | None) -> bool:
    if branch is None:
        return True
    try:
        main = main_world(world, branch)
    except InvalidRequest:  # the directory of a branch, copied elsewhere: there is no description of it there
        return True
    return exists(main.store, branch_path(branch))
