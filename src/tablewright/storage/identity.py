"""What tells the bytes of a stored file from any other bytes that its path ever had or will have.

Tables never change a file in place and give new files random names, so a path nearly identifies its bytes. It does not
where a table is dropped and copied back, where a test seeds its ids, or where a disk damages a file. On a local disk
one ``stat`` tells: device, inode, size, modification and change time. The change time can't be set by a program, so a
copy that preserves times differs too. File systems count time in steps, so two writes in one step look alike: a file is
*settled* once its last change lies :data:`SETTLED_NS` back, and what was read from it before must not be kept.

Elsewhere asking would cost a request for each file. There the address (with the storage options, so that what one
set of credentials may read is not shown to another) and what the manifest says of the file have to do.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Hashable, Iterable

from tablewright.storage.base import Location

__all__ = [
    "SETTLED_NS",
    "FileIdentity",
    "are_unchanged",
    "is_local",
    "is_settled",
    "local_identity",
    "place_of",
    "read_identified",
]

FileIdentity = tuple[int, int, int, int, int]
"""Device, inode, size, modification time and change time (both in ns)."""

SETTLED_NS = 50_000_000


def is_local(location: Location) -> bool:
    """Whether an address is a path of a local (or mounted) file system."""
    return "://" not in location.uri


def local_identity(path: str | int) -> FileIdentity | None:
    """The identity of a local file, or of an open one by its descriptor.

    ``None`` if there is no regular file, or it can't be looked at.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return _identity(found)


def are_unchanged(files: Iterable[tuple[str, FileIdentity]]) -> bool:
    """Whether all of these local files, given by path, have the identity that they had.

    It runs for each small fragment of each read, so it calls nothing but the system.
    """
    look = os.stat
    try:
        for path, identity in files:
            now = look(path)
            if (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) != identity:
                return False
    except (OSError, ValueError):
        return False
    return True


def _identity(found: os.stat_result) -> FileIdentity | None:
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_identified(path: str, size_max: int) -> tuple[FileIdentity, bytes] | None:
    """The identity of a local file and its bytes, which are those of that very file.

    ``None`` if it has more than ``size_max`` bytes, if there is no regular file, or if it can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        identity = _identity(os.fstat(descriptor))
        if identity is None or identity[2] > size_max:
            return None
        data = os.read(descriptor, identity[2])
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return (identity, data) if len(data) == identity[2] else None


def is_settled(identity: FileIdentity) -> bool:
    """Whether any later change of the file would change its identity."""
    return max(identity[3], identity[4]) + SETTLED_NS <= time.time_ns()


def place_of(location: Location) -> Hashable:
    """An address with its storage options, as a key."""
    return location.uri, tuple(sorted(location.storage_options.items()))
