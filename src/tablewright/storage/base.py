"""The store protocol: all access to stored bytes goes through these eight methods.

Guarantees that every store gives, and that ``tablewright.testing.store_conformance`` checks:

1. ``put_if_absent`` is atomic: of any number of callers at most one gets ``True``; a reader sees the whole
   object or none. ``True`` means ours was created, ``False`` that something was there already. Any other outcome
   is an exception, and then the object may or may not exist, unless ``nothing_written`` of the error is ``True``.
2. ``put`` replaces atomically. ``get`` after a ``put`` that returned sees it.
3. ``delete`` of what is not there succeeds.
4. ``list`` yields every object below a directory prefix (recursively), in any order, paths relative to the root.
5. Absent objects raise ``ObjectNotFound`` (a ``KeyError``) — never another error.
   A refused one raises ``AccessDenied``, any other failure ``StorageError``, panics of libraries included.
6. What ``put`` and ``put_if_absent`` wrote is durable when they return, as far as the store can tell.
7. A failed ``put`` leaves no part of the object behind, under any name.

Paths are relative to the table's root, ``/`` separated, without a leading slash.

Tests: ``tests/unit/storage/test_conformance.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tablewright.errors import InternalError, StorageError, TablewrightError
from tablewright.redact import redact

__all__ = ["Location", "ObjectInfo", "ObjectNotFound", "Store", "check_path", "delete_each", "exists"]


_NO_NAMES = frozenset(("", ".", ".."))


class ObjectNotFound(TablewrightError, KeyError):
    """No object at this path. Internal: callers turn it into an error that the user understands.

    Every commit asks for files that are not there, so secrets are looked for when the text is shown, not before.
    """

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)

    def __str__(self) -> str:
        return redact(str(self.args[0]))

    def __repr__(self) -> str:
        return f"ObjectNotFound({str(self)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Location:
    """The location of a table: address and storage options. Picklable and small: part of every task.

    Options hold credentials, so only their names are printed:

    >>> Location("s3://bucket/t", {"secret_access_key": "abc"})
    Location('s3://bucket/t', storage_options: secret_access_key)
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.storage_options))
        return f"Location({redact(self.uri)!r}{', storage_options: ' if names else ''}{names})"

    @property
    def is_of_this_process(self) -> bool:
        """Whether the location is visible in this process only."""
        return self.uri.startswith("memory://")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object: path relative to the root, size in bytes, last modification (ns since the epoch)."""

    path: str
    size: int
    modified_ns: int


def check_path(path: str, uri: str) -> None:
    """Refuse what is no path of an object below ``uri``: paths in metadata are untrusted input."""
    if not path or path.startswith("/") or path.endswith("/"):
        raise InternalError(f"{path!r} is not the path of an object below {uri}.")
    if not _NO_NAMES.isdisjoint(path.split("/")) or "\0" in path:
        raise StorageError(f"{path!r} can't be a file of {uri}: it has empty, '.' or '..' parts.")


class Store(Protocol):
    """A table's root directory in some storage."""

    @property
    def location(self) -> Location: ...

    def get(self, path: str) -> bytes: ...

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``start`` (inclusive) to ``end`` (exclusive), cut at the object's end."""

    def head(self, path: str) -> ObjectInfo: ...

    def put(self, path: str, data: bytes) -> None: ...

    def put_if_absent(self, path: str, data: bytes) -> bool: ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]: ...

    def delete(self, path: str) -> None: ...

    def codec_location(self, path: str) -> Location | None:
        """How the data-file codec can open ``path`` by itself; ``None`` if it can't (memory, test stores)."""


def exists(store: Store, path: str) -> bool:
    """Whether there is an object at ``path``."""
    try:
        store.head(path)
    except ObjectNotFound:
        return False
    return True


def delete_each(store: Store, paths: Iterable[str]) -> dict[str, TablewrightError]:
    """Delete objects one by one, and return those that could not be deleted, with the error."""
    failed: dict[str, TablewrightError] = {}
    for path in paths:
        try:
            store.delete(path)
        except StorageError as error:
            failed[path] = error
    return failed
