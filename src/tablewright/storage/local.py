"""A table on a local (or mounted) file system.

Files appear under their final names only when complete: obstore writes ``name#1`` in the same directory, then renames
(``put``) or hard-links it (``put_if_absent``; the link fails if the name is taken), which is what Lance does. Listings
leave such temporary names out; they read directories directly, at a third of the cost. Directories are made by the
first write; opening makes none.

The client is rooted at ``/``, because obstore wants the root of a store to exist already. Like the data-file codec,
obstore runs threads of its own, so a process that has used it must not go on in a ``fork``: start workers afresh
(``spawn``, as Spark does).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache

from obstore.store import LocalStore as LocalClient

from tablewright.storage.address import Address
from tablewright.storage.base import Location, ObjectInfo
from tablewright.storage.objects import ObjectStore, translate_error

__all__ = ["LocalStore", "open_local"]

_TEMPORARY = re.compile(r"#\d+$")


class LocalStore(ObjectStore):
    """A table's root directory."""

    __slots__ = ()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        root = self._location.uri.rstrip("/") + "/"
        try:
            for entry in _walk((root + prefix.strip("/")).rstrip("/") or "/"):
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue  # deleted while we were reading
                yield ObjectInfo(entry.path.removeprefix(root), status.st_size, status.st_mtime_ns // 1000 * 1000)
        except OSError as error:
            raise translate_error(error, "list", self._location, prefix) from error

    def file_names(self, directory: str) -> Sequence[str]:
        """The names in one directory, of whatever kind, without looking at them; none if it is not there."""
        try:
            return os.listdir(os.path.join(self._location.uri, directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise translate_error(error, "list", self._location, directory) from error

    def prune(self, prefix: str) -> None:
        """Remove directories without files below and at ``prefix`` (file systems keep them, object stores don't)."""
        top = os.path.join(self._location.uri, prefix)
        for directory, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(directory)
            except OSError:
                continue  # Not empty, or another process was quicker: either way nothing is lost.


def open_local(address: Address, options: dict[str, str]) -> LocalStore:
    """The store at a local path, whether or not it exists."""
    return LocalStore(_client(), address.key, Location(address.uri, options))


def _walk(directory: str) -> Iterator[os.DirEntry[str]]:
    """Every file below ``directory`` except temporary ones, in no order; none if it is not there."""
    try:
        entries = os.scandir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir():
                yield from _walk(entry.path)
            elif not _TEMPORARY.search(entry.name):
                yield entry


@cache
def _client() -> LocalClient:
    return LocalClient()
