"""A table on a local (or mounted) file system.

Files appear under their final names only when complete: obstore writes ``name#1`` in the same directory, then renames
(``put``) or hard-links it (``put_if_absent``; the link fails if the name is taken), which is what Lance does. Listings
leave such temporary names out. Directories are made by the first write; opening makes none.

The client is rooted at ``/``, because obstore wants the root of a store to exist already.
"""

from __future__ import annotations

import os
from functools import cache

from obstore.store import LocalStore as LocalClient

from tablewright.storage.address import Address
from tablewright.storage.base import Location
from tablewright.storage.objects import ObjectStore

__all__ = ["LocalStore", "open_local"]


class LocalStore(ObjectStore):
    """A table's root directory."""

    __slots__ = ()

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


@cache
def _client() -> LocalClient:
    return LocalClient()
