"""A table on a local (or mounted) file system.

:mod:`.local_files` has the system calls; this module has the guarantees of the store:

- A failed write says whether it is certain that nothing was written (``StorageError.nothing_written``). A full disk,
  missing permissions or too many open files always are; only a network file system can leave it open.
- What a write left is durable when it returns: the file is synced before its name appears, the directory after.
  ``storage_options={"fsync": "false"}`` leaves that to the operating system.
- Reading follows links, as users who put ``data/`` on another disk expect. Names that are no regular files (pipes,
  devices, directories, links that lead nowhere or in circles) do not exist. Removing a tree follows no link.

Nothing here runs threads or keeps descriptors, so it works in a forked process as well. Listings leave temporary names
out. Directories are made by the first write; opening makes none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from tablewright.errors import StorageError, TablewrightError
from tablewright.storage import local_files
from tablewright.storage.address import Address, join_uri
from tablewright.storage.base import Location, ObjectInfo, check_path
from tablewright.storage.failures import cause_of, translate_error
from tablewright.storage.options import is_off
from tablewright.storage.requests import count_request, log_request

__all__ = ["LocalStore", "open_local"]

T = TypeVar("T")


class LocalStore:
    """A table's root directory."""

    __slots__ = ("__weakref__", "_durable", "_location", "_root")

    lists_in_order = False

    def __init__(self, location: Location) -> None:
        self._location = location
        self._root = location.uri.rstrip("/")
        self._durable = not is_off(location.storage_options, "fsync")

    def __repr__(self) -> str:
        return f"LocalStore({self._location.uri!r})"

    @property
    def location(self) -> Location:
        return self._location

    def get(self, path: str) -> bytes:
        return self._call("read", path, local_files.read_file)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        def read(file: str) -> bytes:
            with local_files.open_regular(file) as descriptor:
                parts, at = [], start
                while at < end and (part := os.pread(descriptor, end - at, at)):
                    parts.append(part)
                    at += len(part)
                return b"".join(parts)

        return self._call("read", path, read)

    def head(self, path: str) -> ObjectInfo:
        status = self._call("look at", path, local_files.stat_regular)
        return ObjectInfo(path, status.st_size, _modified_ns(status))

    def put(self, path: str, data: bytes) -> None:
        self._write(path, (data,), os.replace)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create ``path`` or return ``False``. On a network file system ``False`` may be wrong about our own file."""

        taken = []

        def create(temporary: str, file: str) -> bool:
            try:
                os.link(temporary, file)
            except FileExistsError:
                self._check_readable(path, file)
                taken.append(file)
            return True

        self._write(path, (data,), create)
        return not taken

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        log_request("list", self._location.uri, prefix)
        return self._walk(prefix, temporary=False)

    def _walk(self, prefix: str, *, temporary: bool) -> Iterator[ObjectInfo]:
        root = self._root + "/"
        top = (root + prefix.strip("/")).rstrip("/") or "/"
        try:
            for file, status in local_files.walk_files(top, temporary=temporary):
                yield ObjectInfo(file.removeprefix(root), status.st_size, _modified_ns(status))
        except OSError as error:
            raise translate_error(error, "list", self._location, prefix) from cause_of(error)

    def delete(self, path: str) -> None:
        def unlink(file: str) -> None:
            try:
                os.unlink(file)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise

        self._call("delete", path, unlink)

    def codec_location(self, path: str) -> Location | None:
        return Location(f"{self._root}/{path}", self._location.storage_options)

    # -- what only file systems have

    def put_advice(self, path: str, data: bytes) -> None:
        """Like ``put``, without waiting for the disk: for files that nothing depends on."""
        self._write(path, (data,), os.replace, durable=False)

    def replace_advice(self, path: str, data: bytes) -> None:
        """Like ``put_advice`` for a file that is there already; for a moment it is not.

        A rename onto an existing file makes ext4 write the new one's blocks at once, which may take milliseconds.
        """
        self._write(path, (data,), _take_place, durable=False)

    def put_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        """Like ``put``, from pieces, one of which is in memory at a time."""
        self._write(path, pieces, os.replace)

    def prepare(self, path: str) -> None:
        """Make the directory for a file that the codec is going to write; it makes none that is durable."""
        if self._durable:
            self._call("write", path, self._make_parents)

    def sync(self, path: str, size: int) -> None:
        """Make a file durable that the codec has written, after a look at its size.

        The codec of pylance 14 does not ask whether its last write succeeded: on a full disk it renames a file that
        lacks these bytes, and reports success.
        """
        there = self._call("write", path, os.path.getsize)
        if there != size:
            raise self._written_in_part(path, there, size)
        if self._durable:
            self._call("write", path, local_files.sync_file)

    def delete_tree(self, prefix: str, keep: Collection[str] = (), last: str | None = None) -> int:
        """Remove everything at and below ``prefix`` except ``keep``; no link is followed. How many files."""
        try:
            return local_files.remove_tree(self._root or "/", prefix, keep, last)
        except OSError as error:
            raise translate_error(error, "delete", self._location, prefix) from cause_of(error)

    def delete_files(self, paths: Sequence[str]) -> dict[str, TablewrightError]:
        """Delete files, and return those that could not be deleted, with the error; no link is followed."""
        count_request("delete", self._location.uri, f"{len(paths)} files")
        for path in paths:
            check_path(path, self._location.uri)
        return {
            path: translate_error(error, "delete", self._location, path)
            for path, error in local_files.remove_files(self._root or "/", paths)
        }

    def is_link(self, path: str) -> bool:
        """Whether a name below the root is a symbolic link."""
        return os.path.islink(f"{self._root}/{path}")

    def unfinished(self, prefix: str) -> Iterator[ObjectInfo]:
        """Files that are being written, or that a writer left when it was killed; listings leave them out."""
        return self._walk(prefix, temporary=True)

    def file_names(self, directory: str) -> Sequence[str]:
        """The names in one directory, of whatever kind, without looking at them; none if it is not there."""
        try:
            return os.listdir(f"{self._root}/{directory}")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise translate_error(error, "list", self._location, directory) from cause_of(error)

    def prune(self, prefix: str) -> None:
        """Remove directories without files below and at ``prefix`` (file systems keep them, object stores don't)."""
        top = os.path.join(os.path.realpath(self._root), prefix.strip("/")).rstrip("/")
        if os.path.realpath(top) == top:  # otherwise a part of the path is a link
            local_files.prune_directories(top)

    # -- inside

    def _make_parents(self, file: str) -> None:
        directory = os.path.dirname(file)
        if not os.path.isdir(directory):
            local_files.make_directories(directory, durable=True)

    def _written_in_part(self, path: str, there: int, size: int) -> StorageError:
        error = StorageError(
            f"Could not write {join_uri(self._location.uri, path)}: {there} of its {size} bytes are there. The disk is "
            "full, or a quota or limit on file sizes is reached: free some space, then run again."
        )
        error.nothing_written = True
        return error

    def _check_readable(self, path: str, file: str) -> None:
        """Raise if ``path`` exists and is no regular file: it would keep the name taken forever, and can't be read."""
        try:
            local_files.stat_regular(file)
        except FileNotFoundError:
            if os.path.lexists(file):
                where = join_uri(self._location.uri, path)
                error = StorageError(
                    f"Could not write {where}: a directory, pipe or broken link has this name. Remove it."
                )
                error.nothing_written = True
                raise error from None

    def _write(
        self,
        path: str,
        data: Iterable[bytes],
        publish: Callable[[str, str], bool | None],
        *,
        durable: bool | None = None,
    ) -> None:
        count_request("write", self._location.uri, path)
        check_path(path, self._location.uri)
        try:
            local_files.write_file(
                f"{self._root}/{path}", data, publish, durable=self._durable if durable is None else durable
            )
        except TablewrightError:
            raise  # of whoever makes the pieces
        except OSError as error:
            ours = translate_error(error, "write", self._location, path)
            if isinstance(ours, StorageError):
                ours.nothing_written = getattr(error, "certain", False)
            raise ours from cause_of(error)

    def _call(self, verb: str, path: str, function: Callable[[str], T]) -> T:
        count_request(verb, self._location.uri, path)
        check_path(path, self._location.uri)
        try:
            return function(f"{self._root}/{path}")
        except OSError as error:
            raise translate_error(error, verb, self._location, path) from cause_of(error)


def open_local(address: Address, options: dict[str, str]) -> LocalStore:
    """The store at a local path, whether or not it exists."""
    return LocalStore(Location(address.uri, options))


def _take_place(temporary: str, file: str) -> None:
    try:  # noqa: SIM105 suppress() costs three calls, in every commit
        os.unlink(file)
    except OSError:
        pass
    os.replace(temporary, file)


def _modified_ns(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1000 * 1000
