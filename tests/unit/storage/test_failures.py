from __future__ import annotations

import pickle

import pytest
from obstore.exceptions import GenericError

from tablewright.errors import AccessDenied, InternalError, StorageError, TablewrightError
from tablewright.storage import Location, ObjectNotFound, open_store
from tablewright.storage.failures import translate_error

LOCAL, REMOTE = Location("/data/t"), Location("s3://bucket/t")


@pytest.mark.parametrize(
    ("error", "location", "kind", "words"),
    [
        (FileNotFoundError("gone"), LOCAL, ObjectNotFound, "no object at /data/t/a b"),
        (FileNotFoundError("gone"), REMOTE, ObjectNotFound, "no object at s3://bucket/t/a%20b"),
        (FileNotFoundError("<Code>NoSuchBucket</Code>"), REMOTE, StorageError, "create it"),
        (PermissionError("no"), LOCAL, AccessDenied, "permissions"),
        (
            GenericError("Unable to open file: Permission denied (os error 13)"),
            LOCAL,
            AccessDenied,
            "owns the directory",
        ),
        (GenericError("Read-only file system (os error 30)"), LOCAL, AccessDenied, "another address"),
        (GenericError("status 403 Forbidden: AccessDenied"), REMOTE, AccessDenied, "credentials"),
        (GenericError("No space left on device (os error 28)"), LOCAL, StorageError, "free some space"),
        (GenericError("Received redirect without LOCATION"), REMOTE, StorageError, "region"),
        (GenericError("GET http://169.254.169.254/latest/api/token"), REMOTE, StorageError, "credentials"),
        (GenericError("connection refused\n\nDebug source: ..."), REMOTE, StorageError, "Run again"),
        (TimeoutError("too slow"), REMOTE, StorageError, "too slow"),
    ],
)
def test_failures_say_what_to_do(error: Exception, location: Location, kind: type, words: str) -> None:
    ours = translate_error(error, "read", location, "a b")
    assert type(ours) is kind
    assert words in str(ours)
    assert "\n" not in str(ours)
    assert isinstance(ours, TablewrightError)
    again = pickle.loads(pickle.dumps(ours))
    assert (type(again), str(again)) == (type(ours), str(ours))


def test_signatures_stay_out_of_messages() -> None:
    error = GenericError("PUT https://a.blob.core.windows.net/c/x?sv=1&sig=SECRET%3D&se=2 failed")
    text = str(translate_error(error, "write", REMOTE, "x"))
    assert "SECRET" not in text
    assert "core.windows.net/c/x?***" in text


def test_a_missing_parent_of_a_write_is_no_absent_object() -> None:
    error = translate_error(FileNotFoundError("404"), "write", REMOTE, "x")
    assert isinstance(error, StorageError) and not isinstance(error, ObjectNotFound)


@pytest.mark.parametrize("path", ["", "/absolute", "dir/"])
def test_paths_are_relative(path: str) -> None:
    with pytest.raises(InternalError):
        open_store("memory://objects").get(path)


class PanicException(BaseException):
    """As libraries in Rust raise it."""


def test_panics_are_storage_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://panics")

    class Client:
        def get(self, key: str) -> bytes:
            raise PanicException('Unable to build Tokio runtime: Os { code: 24, message: "Too many open files" }')

        def list(self, *arguments: object, **options: object) -> object:
            raise PanicException("no threads")

        def head(self, key: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "_client", Client())
    with pytest.raises(StorageError, match="ulimit -n"):
        store.get("a")
    with pytest.raises(StorageError, match="no threads"):
        list(store.list(""))
    with pytest.raises(KeyboardInterrupt):
        store.head("a")


def test_what_is_certain() -> None:
    assert translate_error(GenericError("<Code>NoSuchBucket</Code>"), "write", REMOTE, "a").nothing_written  # type: ignore[attr-defined]
    assert not translate_error(GenericError("timed out"), "write", REMOTE, "a").nothing_written  # type: ignore[attr-defined]
