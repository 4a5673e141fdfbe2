"""Storage failures as our error classes: ``ObjectNotFound``, ``AccessDenied`` or ``StorageError``, and what to do."""

from __future__ import annotations

from obstore.exceptions import NotFoundError, PermissionDeniedError, UnauthenticatedError

from tablewright.errors import AccessDenied, StorageError, TablewrightError
from tablewright.redact import redact
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, ObjectNotFound

__all__ = ["advice_for", "cause_of", "is_panic", "translate_error"]

_REFUSED = ("(os error 13)", "(os error 1)", "(os error 30)", "AccessDenied", "403 Forbidden", "401 Unauthorized")
_CERTAIN = ("NoSuchBucket",)
"""What a write answers that certainly did nothing, besides refusals."""

_ADVICE = (
    ("NoSuchBucket", "The bucket does not exist: create it, or correct the address."),
    ("(os error 28)", "The disk is full: free some space, then run again."),
    ("(os error 20)", "A part of this path is a file where a directory should be: choose another address."),
    ("(os error 17)", "A part of this path is a file where a directory should be: choose another address."),
    ("(os error 122)", "The quota of this user or directory is used up: free some space, then run again."),
    ("(os error 27)", "The file would be larger than this process or file system allows (ulimit -f)."),
    ("(os error 24)", "This process has too many files open: close some, or raise the limit (ulimit -n)."),
    ("code: 24,", "This process has too many files open: close some, or raise the limit (ulimit -n)."),
    ("(os error 36)", "The name is too long for this file system: choose a shorter one."),
    ("redirect", 'The bucket seems to be in another region: set storage_options={"region": …}.'),
    ("169.254.169.254", "No credentials were found: give them in storage_options or in the environment."),
    ("URL scheme is not allowed", 'To use plain http, set storage_options={"allow_http": "true"}.'),
)


def translate_error(error: BaseException, verb: str, location: Location, path: str) -> TablewrightError:
    """Our error for a failure of the file system or of obstore."""
    text = _text_of(error)
    where = join_uri(location.uri, path)
    absent = isinstance(error, (NotFoundError, FileNotFoundError)) and "NoSuchBucket" not in text
    if absent and verb != "write":
        return ObjectNotFound(f"There is no object at {where}.")
    cause = redact(text).split("\n", 1)[0].strip().rstrip(".")
    if absent:
        return StorageError(f"Could not write {where}: {cause}. Check that the bucket or directory exists.")
    refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError, PermissionError))
    if refused or any(mark in text for mark in _REFUSED):
        return AccessDenied(f"Not allowed to {verb} {where}: {cause}. {_how_to_get_access(location)}")
    advice = advice_for(text) or "Run again when the store answers."
    ours = StorageError(f"Could not {verb} {where}: {cause}. {advice}")
    ours.nothing_written = any(mark in text for mark in _CERTAIN)
    return ours


def advice_for(text: str) -> str:
    """What to do about a failure that says ``text``; empty if that is not known.

    >>> advice_for("No space left on device (os error 28)")
    'The disk is full: free some space, then run again.'
    """
    return next((advice for mark, advice in _ADVICE if mark in text), "")


def cause_of(error: BaseException) -> BaseException | None:
    """What our error may name as its cause: ``error``, unless its text has secrets or it is a panic.

    An absent file needs no cause, and is common.

    >>> cause_of(ValueError("GET https://host/x?sig=abc failed")) is None
    True
    """
    if isinstance(error, FileNotFoundError) or is_panic(error):
        return None
    return None if redact(str(error)) != str(error) else error


def is_panic(error: BaseException) -> bool:
    """Whether it is the panic of a Rust library: no ``Exception``, and of another class in each library."""
    return type(error).__name__ == "PanicException"


def _text_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return f"{error.strerror} (os error {error.errno})"
    return str(error)


def _how_to_get_access(location: Location) -> str:
    if "://" in location.uri:
        return "Check the credentials in storage_options or the environment, and what they may do here."
    return "Check who owns the directory and its permissions, or choose another address."
