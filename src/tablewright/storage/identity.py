"""What tells the bytes of a stored file from any other bytes that its path ever had or will have.

Tables never change a file in place and give new files random names, so a path nearly identifies its bytes. It does not
where a table is dropped and copied back, where a test seeds its ids, or where a disk damages a file. On a local disk
one ``stat`` tells: device, inode, size, modification and change time. The change time can't be set by a program, so a
copy that preserves times differs too. File systems count time in steps, so two writes in one step look alike: a file is
*settled* once its last change lies :data:`SETTLED_NS` back, and what was read from it before must not be kept. A small
file that this process has just written itself is settled at once (:func:`trust_written`): it has a name that nothing
else uses. Else the next changes of a loop would read what the last ones wrote again and again.

Elsewhere asking would cost a request for each file. There the address (with the storage options, so that what one
set of credentials may read is not shown to another) and what the manifest says of the file have to do.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Hashable, Iterable

from tablewright.cache import process_cache
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
    "trust_written",
    "written",
]

FileIdentity = tuple[int, int, int, int, int]
"""Device, inode, size, modification time and change time (both in ns)."""

SETTLED_NS = 50_000_000
_WRITTEN_MIN = 1024


class _Written:
    """The last files that this process has written, at least 1,024 of them. There are no locks: it may fork."""

    def __init__(self) -> None:
        self._last: set[FileIdentity] = set()
        self._before: set[FileIdentity] = set()

    def has(self, identity: FileIdentity) -> bool:
        """Whether it is one of them."""
        return identity in self._last or identity in self._before

    def add(self, identity: FileIdentity) -> None:
        """Remember one more."""
        if len(self._last) >= _WRITTEN_MIN:
            self._before, self._last = self._last, set()
        self._last.add(identity)

    def clear(self) -> None:
        """Forget all, as if another process had written them."""
        self._last, self._before = set(), set()


written = _Written()
"""The files that this process has written."""


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
    return written.has(identity) or max(identity[3], identity[4]) + SETTLED_NS <= time.time_ns()


def trust_written(location: Location | None) -> FileIdentity | None:
    """A local file of a name that nothing else uses was written by this process, which does not change it any more.

    Returns its identity. Should it be that of another file that was written before, what was kept of that one goes.
    """
    identity = local_identity(location.uri) if location is not None and is_local(location) else None
    if identity is None:
        return None
    if written.has(identity):
        process_cache().clear()
    written.add(identity)
    return identity


def place_of(location: Location) -> Hashable:
    """An address with its storage options, as a key."""
    return location.uri, tuple(sorted(location.storage_options.items()))
