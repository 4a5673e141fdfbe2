"""The store protocol on obstore: one adapter, shared by the memory and remote stores.

It adds what obstore leaves open, so that every store gives the guarantees of :mod:`tablewright.storage.base`:

1. Keys are the root's key plus the relative path; listings are cut back to relative paths.
2. Deleting what is absent succeeds, listing a missing prefix is empty, a range is cut at the object's end.
3. Every failure becomes ``ObjectNotFound``, ``AccessDenied`` or ``StorageError``, and says what to do.

``put_if_absent`` is obstore's ``mode="create"``, a conditional put. One reply can be wrong: when the answer to our own
conditional put is lost, the client underneath tries again and finds our own object, and we return ``False`` for
something that we created. An S3 "conflict" answer can give ``False`` with nothing there at all. So ``False`` means
*look*: the commit loop reads the version that is there and compares the transaction's uuid.

obstore runs threads of its own, which a forked child does not have: its calls would wait for ever. So a child of a
process that has used obstore is refused at once (:func:`.libraries.check_usable`).

Tests: ``tests/unit/storage/test_conformance.py``, ``tests/unit/storage/test_failures.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from tablewright.errors import StorageError, TablewrightError
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, ObjectInfo, ObjectNotFound, check_path, delete_each
from tablewright.storage.failures import cause_of, is_panic, translate_error
from tablewright.storage.libraries import check_usable
from tablewright.storage.requests import count_request, log_request

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

    Client = AzureStore | GCSStore | MemoryStore | S3Store

__all__ = ["ObjectStore"]

T = TypeVar("T")

_LIST_CHUNK = 1000
_DELETE_CHUNK = 1000  # objects in one request of S3


class ObjectStore:
    """A table's root at ``key`` of an obstore client."""

    __slots__ = ("_client", "_key", "_location")

    answers_slowly = False
    lists_in_order = False
    """Whether ``list`` yields paths in lexicographic order (object stores do, file systems don't)."""

    def __init__(self, client: Client, key: str, location: Location) -> None:
        self._client: Any = client
        self._key = key
        self._location = location

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._location.uri!r})"

    @property
    def location(self) -> Location:
        return self._location

    def get(self, path: str) -> bytes:
        key = self._key_of(path)
        return self._call("read", path, lambda: bytes(self._client.get(key).bytes()))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        key = self._key_of(path)
        if end <= start:
            self.head(path)
            return b""
        try:
            return self._call("read", path, lambda: bytes(self._client.get_range(key, start=start, end=end)))
        except StorageError:
            # A start beyond the end is an error in obstore, and a different one for each kind of store.
            if start >= self.head(path).size:
                return b""
            raise

    def head(self, path: str) -> ObjectInfo:
        key = self._key_of(path)
        meta = self._call("look at", path, lambda: self._client.head(key))
        return ObjectInfo(path, meta["size"], _nanoseconds(meta["last_modified"]))

    def put(self, path: str, data: bytes) -> None:
        key = self._key_of(path)
        self._call("write", path, lambda: self._client.put(key, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create ``path`` or return ``False``; see the module's text on lost replies."""
        key = self._key_of(path)

        def create() -> bool:
            try:
                self._client.put(key, data, mode="create")
            except (AlreadyExistsError, PreconditionError, FileExistsError):
                return False
            return True

        return self._call("write", path, create)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        root = f"{self._key}/" if self._key else ""
        check_usable("obstore")
        log_request("list", self._location.uri, prefix)
        try:
            for chunk in self._client.list((root + prefix.strip("/")).rstrip("/") or None, chunk_size=_LIST_CHUNK):
                for meta in chunk:
                    relative = meta["path"].removeprefix(root)
                    yield ObjectInfo(relative, meta["size"], _nanoseconds(meta["last_modified"]))
        except BaseException as error:
            if not _is_failure(error):
                raise
            translated = translate_error(error, "list", self._location, prefix)
            if not isinstance(translated, ObjectNotFound):
                raise translated from cause_of(error)

    def delete(self, path: str) -> None:
        key = self._key_of(path)
        try:
            self._call("delete", path, lambda: self._client.delete(key))
        except ObjectNotFound:
            return

    def delete_files(self, paths: Sequence[str]) -> dict[str, TablewrightError]:
        """Delete many objects in few requests, and return those that could not be deleted, with the error.

        A failed request does not say which of its objects are left, so these are deleted one by one.
        """
        failed: dict[str, TablewrightError] = {}
        for start in range(0, len(paths), _DELETE_CHUNK):
            chunk = paths[start : start + _DELETE_CHUNK]
            keys = [self._key_of(path) for path in chunk]
            try:
                self._call("delete", chunk[0], partial(self._client.delete, keys))
            except (ObjectNotFound, StorageError):
                failed |= delete_each(self, chunk)
        return failed

    def codec_location(self, path: str) -> Location | None:
        return Location(join_uri(self._location.uri, path), self._location.storage_options)

    def _key_of(self, path: str) -> str:
        check_path(path, self._location.uri)
        return f"{self._key}/{path}" if self._key else path

    def _call(self, verb: str, path: str, function: Callable[[], T]) -> T:
        count_request(verb, self._location.uri, path)
        check_usable("obstore")
        try:
            return function()
        except BaseException as error:
            if not _is_failure(error):
                raise
            raise translate_error(error, verb, self._location, path) from cause_of(error)


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000


def _is_failure(error: BaseException) -> bool:
    return isinstance(error, (BaseError, OSError, ValueError)) or is_panic(error)
