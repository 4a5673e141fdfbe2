"""Files of a local (or mounted) file system: written whole, made durable, removed without following links.

A file appears under its name only when it is complete:

1. Write ``name#<number>`` in the same directory, created with ``O_EXCL``; ``fsync`` it.
2. ``rename`` it to its name, or hard-link it there if the name must be free (``link`` fails if it is taken), and
   remove the temporary name.
3. ``fsync`` the directory, so that the name survives a power loss as well.

Lance's own writers use the same temporary names and leave them out of listings. A failure in 1, and nearly every one in
2, is *certain*: nothing is visible under the name, and the temporary file is removed. After a failure in 3 the name is
there, and may or may not survive a power loss.

Tests: ``tests/unit/storage/test_local.py``, ``tests/unit/storage/test_durability.py``.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

__all__ = [
    "is_temporary",
    "make_directories",
    "open_regular",
    "prune_directories",
    "read_file",
    "remove_files",
    "remove_tree",
    "stat_regular",
    "sync_directory",
    "sync_file",
    "walk_files",
    "write_file",
]

_TEMPORARY = re.compile(r"#\d+$")
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_CAN_NOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES, errno.EPERM, errno.EROFS)
"""What file systems without ``fsync`` for directories answer, and directories that may be written but not read."""
_UNANSWERED = (errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR)
"""After these a rename or link may have happened: the server of a network file system did not answer."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITE_BYTES = 1 << 17
"""Bytes per write. Recent Linux takes one block of memory per write for its file cache, up to 2 MiB, and some virtual
machines give large free blocks back to their host: there 5 MB take 13.6 ms by writes of 1 MiB, 1.1 by 128 KiB."""


def is_temporary(name: str) -> bool:
    """Whether a file of this name is being written, or was left by a writer that crashed."""
    return _TEMPORARY.search(name) is not None


# --------------------------------------------------------------------------------------------------------- reading
@contextmanager
def open_regular(path: str) -> Iterator[int]:
    """The descriptor of a regular file. ``FileNotFoundError`` for anything else: a pipe would wait for its writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # ENXIO: a socket, or a device without a driver
        raise _absent(path) if error.errno in (*_ABSENT, errno.ENXIO) else error from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _absent(path)
        yield descriptor
    finally:
        os.close(descriptor)


def stat_regular(path: str) -> os.stat_result:
    """Size and times of a regular file. ``FileNotFoundError`` for anything else."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise _absent(path) if error.errno in _ABSENT else error from None
    if not stat.S_ISREG(status.st_mode):
        raise _absent(path)
    return status


def read_file(path: str) -> bytes:
    """All bytes of a regular file."""
    with open_regular(path) as descriptor, io.FileIO(descriptor, closefd=False) as file:
        return file.readall()


def walk_files(directory: str, *, temporary: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file below ``directory`` except temporary ones, in no order; none if it is not there.

    ``temporary``: only the temporary ones.

    A link to a file counts as that file. Links to directories below ``directory`` are not followed, so loops end.
    """
    waiting = [directory]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError as error:
            if error.errno in (*_ABSENT, errno.ENAMETOOLONG):
                continue
            raise
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif ("#" in entry.name and is_temporary(entry.name)) == temporary:
                    try:
                        status = entry.stat()
                    except OSError as error:
                        if error.errno in _ABSENT or entry.is_symlink():
                            continue  # deleted while we were reading, or a link to nothing that we could read
                        raise
                    if stat.S_ISREG(status.st_mode):
                        yield entry.path, status


# --------------------------------------------------------------------------------------------------------- writing
def write_file(path: str, data: Iterable[bytes], publish: Callable[[str, str], bool | None], *, durable: bool) -> None:
    """Write pieces of data under a temporary name, then ``publish(temporary, path)``.

    That renames the file, as ``os.replace`` does; or it answers ``True``, and the temporary name is removed.

    An ``OSError`` after which nothing can be visible at ``path`` has the attribute ``certain``. One of ``publish`` is,
    unless a server of a network file system did not answer; one of the directory's ``fsync`` never is.
    """
    temporary = f"{path}#{int.from_bytes(os.urandom(4))}"
    is_written, stays = False, True
    try:
        _write_new(temporary, data, durable=durable)
        is_written = True
        stays = bool(publish(temporary, path))
    except OSError as error:
        error.certain = not is_written or error.errno not in _UNANSWERED  # type: ignore[attr-defined]
        raise
    finally:
        if stays:
            with suppress(OSError):  # gone already, if it was renamed after all
                os.unlink(temporary)
    if durable:
        sync_directory(os.path.dirname(path))


def _write_new(path: str, data: Iterable[bytes], *, durable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileNotFoundError:
        make_directories(os.path.dirname(path), durable=durable)
        descriptor = os.open(path, flags, 0o666)
    try:
        for piece in data:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest[:_WRITE_BYTES]) :]
        if durable:
            os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise
    os.close(descriptor)  # network file systems report a full disk here


def make_directories(directory: str, *, durable: bool) -> None:
    """Create a directory and its parents where they are missing; durable ones survive a power loss."""
    parent = os.path.dirname(directory)
    try:
        is_new = _made(directory)
    except FileNotFoundError:
        if not parent or parent == directory:
            raise
        make_directories(parent, durable=durable)
        is_new = _made(directory)  # fails again where a file system takes no directories
    if is_new and durable:
        sync_directory(parent)


def _made(directory: str) -> bool:
    """Make one directory; false if it is there already."""
    try:
        os.mkdir(directory)
    except FileNotFoundError:
        raise
    except OSError:  # a file system that can't be written to says so before it says that the directory is there
        if not os.path.isdir(directory):
            raise
        return False
    return True


def sync_file(path: str) -> None:
    """Return when all bytes of a file, and its name, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(os.path.dirname(path))


def sync_directory(directory: str) -> None:
    """Return when the names in a directory are on the disk, where the file system can tell."""
    try:
        descriptor = os.open(directory, _DIRECTORY)
    except OSError as error:
        if error.errno in _CAN_NOT_SYNC:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CAN_NOT_SYNC:
            raise
    finally:
        os.close(descriptor)


# -------------------------------------------------------------------------------------------------------- removing
def remove_tree(root: str, prefix: str, keep: Collection[str] = (), last: str | None = None) -> int:
    """Remove everything at and below ``prefix`` of the directory ``root``, and return how many files that were.

    No link is followed: links themselves are removed, what they point to stays, also if a directory becomes a link
    meanwhile (CWE-59). ``root`` itself and its parents may be links. ``keep`` lists directories, relative to
    ``root``, that stay with all they hold. An entry called ``last`` goes after the others of its directory, on every
    level; names go in descending order.
    """
    try:
        descriptor = os.open(root, _DIRECTORY)
    except FileNotFoundError:
        return 0
    names = [name for name in prefix.split("/") if name]
    opened = [descriptor]
    try:
        for name in names[:-1]:
            inner = _open_real_directory(name, opened[-1])
            if inner is None:
                return 0
            opened.append(inner)
        if names:
            return _remove(names[-1], opened[-1], "/".join(names), frozenset(keep), last)
        count = _remove_inside(descriptor, "", frozenset(keep), last)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    with suppress(OSError):
        os.rmdir(root)
    return count


def remove_files(root: str, paths: Iterable[str]) -> Iterator[tuple[str, OSError]]:
    """Remove files below the directory ``root``, and yield those that could not be removed; absent ones are fine.

    No link is followed, whatever a directory on the way has become meanwhile (CWE-59): a file behind a link stays, and
    is yielded. ``root`` itself and its parents may be links. Each directory is opened once.
    """
    by_directory: dict[str, list[str]] = {}
    for path in paths:
        by_directory.setdefault(path.rpartition("/")[0], []).append(path)
    for directory, inside in by_directory.items():
        try:
            with _opened_below(root, directory) as descriptor:
                yield from _unlinked(descriptor, inside)
        except OSError as error:
            if error.errno != errno.ENOENT:
                yield from ((path, error) for path in inside)


@contextmanager
def _opened_below(root: str, directory: str) -> Iterator[int]:
    """A directory below ``root`` that is reached through no link."""
    opened = [os.open(root, _DIRECTORY)]
    try:
        for name in directory.split("/") if directory else ():
            opened.append(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _unlinked(directory: int, paths: Iterable[str]) -> Iterator[tuple[str, OSError]]:
    for path in paths:
        try:
            os.unlink(path.rpartition("/")[2], dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ENOENT:
                yield path, error


def _remove(name: str, parent: int, path: str, keep: frozenset[str], last: str | None = None) -> int:
    inner = _open_real_directory(name, parent)
    if inner is None:
        try:
            os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            return 0
        return 1
    try:
        count = _remove_inside(inner, path, keep, last)
    finally:
        os.close(inner)
    with suppress(OSError):  # not empty: something is kept, or another process writes here
        os.rmdir(name, dir_fd=parent)
    return count


def _remove_inside(directory: int, path: str, keep: frozenset[str], last: str | None = None) -> int:
    with os.scandir(directory) as entries:
        names = sorted((entry.name for entry in entries), reverse=True)
    names.sort(key=lambda name: name == last)
    inside = ((name, f"{path}/{name}" if path else name) for name in names)
    return sum(_remove(name, directory, inner, keep, last) for name, inner in inside if inner not in keep)


def _open_real_directory(name: str, parent: int) -> int | None:
    """A directory that is no link; ``None`` for a file, a link, or nothing."""
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def prune_directories(top: str) -> None:
    """Remove directories without files at and below ``top``. No link is followed."""
    with suppress(OSError):  # it is not there
        for _, names, _, descriptor in os.fwalk(top, topdown=False):
            for name in names:
                with suppress(OSError):  # not empty, a link, or another process was quicker
                    os.rmdir(name, dir_fd=descriptor)
        os.rmdir(top)


def _absent(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
