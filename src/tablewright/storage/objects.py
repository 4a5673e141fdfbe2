"""The store protocol on obstore: one adapter, shared by the local, memory and remote stores.

It adds what obstore leaves open, so that every store keeps the promises in :mod:`tablewright.storage.base`:

1. Keys are the root's key plus the relative path; listings are cut back to relative paths.
2. Deleting what is absent succeeds, listing a missing prefix is empty, a range is cut at the object's end.
3. Every failure becomes ``ObjectNotFound``, ``AccessDenied`` or ``StorageError``, and says what to do.

``put_if_absent`` is obstore's ``mode="create"``: a hard link on disk (written under a temporary name first, so a
crash shows nothing), a conditional put elsewhere. One reply can still be wrong: when the answer to our own
conditional put is lost, the client underneath tries again and finds our own object, and we return ``False`` for
something that we created. An S3 "conflict" answer can give ``False`` with nothing there at all. So ``False`` means
*look*: the commit loop reads the version that is there and compares the transaction's uuid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from tablewright.errors import AccessDenied, InternalError, StorageError, TablewrightError
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, ObjectInfo, ObjectNotFound

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store

    Client = AzureStore | GCSStore | LocalStore | MemoryStore | S3Store
from tablewright.storage.requests import count_request

__all__ = ["ObjectStore", "translate_error"]

T = TypeVar("T")

_LIST_CHUNK = 1000
_REFUSED = ("(os error 13)", "(os error 1)", "(os error 30)", "AccessDenied", "403 Forbidden", "401 Unauthorized")
_SECRETS = re.compile(r"((?:sig|X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token)=)[^&\s\"]+", re.IGNORECASE)

_ADVICE = (
    ("NoSuchBucket", "The bucket does not exist: create it, or correct the address."),
    ("(os error 28)", "The disk is full: make room, then run again."),
    ("(os error 20)", "A part of this path is a file where a directory should be: choose another address."),
    ("(os error 17)", "A part of this path is a file where a directory should be: choose another address."),
    ("(os error 36)", "The name is too long for this file system: choose a shorter one."),
    ("redirect", 'The bucket seems to be in another region: set storage_options={"region": …}.'),
    ("169.254.169.254", "No credentials were found: give them in storage_options or in the environment."),
    ("URL scheme is not allowed", 'To use plain http, set storage_options={"allow_http": "true"}.'),
)


class ObjectStore:
    """A table's root at ``key`` of an obstore client."""

    __slots__ = ("_client", "_key", "_location")

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
        try:
            for chunk in self._client.list((root + prefix.strip("/")).rstrip("/") or None, chunk_size=_LIST_CHUNK):
                for meta in chunk:
                    relative = meta["path"].removeprefix(root)
                    yield ObjectInfo(relative, meta["size"], _nanoseconds(meta["last_modified"]))
        except (BaseError, OSError, ValueError) as error:
            translated = translate_error(error, "list", self._location, prefix)
            if not isinstance(translated, ObjectNotFound):
                raise translated from error

    def delete(self, path: str) -> None:
        key = self._key_of(path)
        try:
            self._call("delete", path, lambda: self._client.delete(key))
        except ObjectNotFound:
            return

    def codec_location(self, path: str) -> Location | None:
        return Location(join_uri(self._location.uri, path), self._location.storage_options)

    def _key_of(self, path: str) -> str:
        if not path or path.startswith("/") or path.endswith("/"):
            raise InternalError(f"{path!r} is not the path of an object below {self._location.uri}.")
        return f"{self._key}/{path}" if self._key else path

    def _call(self, verb: str, path: str, function: Callable[[], T]) -> T:
        count_request()
        try:
            return function()
        except (BaseError, OSError, ValueError) as error:
            raise translate_error(error, verb, self._location, path) from error


def translate_error(error: Exception, verb: str, location: Location, path: str) -> TablewrightError:
    """Our error for a failure of obstore: ``ObjectNotFound``, ``AccessDenied`` or ``StorageError``."""
    text = _SECRETS.sub(r"\1…", str(error))
    cause = text.split("\n", 1)[0].strip().rstrip(".")
    where = join_uri(location.uri, path)
    missing_bucket = "NoSuchBucket" in text
    if isinstance(error, (NotFoundError, FileNotFoundError)) and not missing_bucket:
        if verb == "write":
            return StorageError(f"Could not write {where}: {cause}. Check that the bucket or directory exists.")
        return ObjectNotFound(f"There is no object at {where}.")
    refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError, PermissionError))
    if refused or any(mark in text for mark in _REFUSED):
        return AccessDenied(f"Not allowed to {verb} {where}: {cause}. {_how_to_get_access(location)}")
    advice = next((advice for mark, advice in _ADVICE if mark in text), "Run again when the store answers.")
    return StorageError(f"Could not {verb} {where}: {cause}. {advice}")


def _how_to_get_access(location: Location) -> str:
    if "://" in location.uri:
        return "Check the credentials in storage_options or the environment, and what they may do here."
    return "Check who owns the directory and its permissions, or choose another address."


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
