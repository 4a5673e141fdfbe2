"""Errors of the codec as our error classes.

The codec raises ``ValueError``, ``OSError``, ``RuntimeError``, Arrow's errors, and panics (a ``BaseException``) on some
damaged files. A missing or damaged file is :class:`CorruptTable`, a refused one :class:`AccessDenied`, data that a file
can't hold :class:`InvalidRequest`; the rest :class:`StorageError`.

A data file that could not be written is in no version, whatever became of it: ``nothing_written`` of these errors is
``True``.
"""

from __future__ import annotations

import re

import pyarrow as pa

from tablewright.errors import (
    AccessDenied,
    CorruptTable,
    InvalidRequest,
    StorageError,
    TablewrightError,
    UnsupportedFeature,
)
from tablewright.redact import redact
from tablewright.storage.failures import advice_for, cause_of, is_panic

__all__ = ["reading", "uncommitted", "writing"]

_SOURCE_LINE = re.compile(r",? ?(?:\S*/)?\S+\.rs:\d+(?::\d+)?")
_WRAPPER = re.compile(r"^LanceError\(\w+\): ")
_REFUSED = (
    "Permission denied",
    "os error 13",
    "os error 30",
    "AccessDenied",
    "403 Forbidden",
    "Forbidden",
    "Unauthorized",
)
_STORAGE = ("Generic ", "timed out", "timeout", "connection", "Connection", "os error 5", "os error 28", "No space")
_MACHINE = ("TooManyOpenFiles", "Too many open files", "os error 24", "os error 11", "os error 12", "OutOfMemory")
_DATA = ("Invalid argument error", "Invalid user input", "Failed to encode", "Not supported")
_NO_ITEMS = "DataBlockBuilder didn't see any data"
_CODEC = (ValueError, OSError, RuntimeError, pa.ArrowException)


class _AtFile:
    """A context for what is done with the file at ``where``. As a class it costs a third of a generator."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None


class reading(_AtFile):
    """Turn the codec's errors about the file at ``where`` into ours."""

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        where = self._where
        if isinstance(error, _CODEC):
            raise _read_error(where, _plain(error)) from cause_of(error)
        if is_panic(error):
            _check_machine(error, f"Could not read {where}")
            raise _read_error(where, _plain(error)) from None


class writing(_AtFile):
    """Turn the codec's errors about data for the file at ``where``, which is in no version yet, into ours."""

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        with uncommitted:
            if isinstance(error, _CODEC):
                raise _write_error(self._where, error) from cause_of(error)
            if is_panic(error):
                _check_machine(error, f"Could not write {self._where}")
                text = f"The codec can't encode these data ({self._where}): {_plain(error)}"
                raise InvalidRequest(text) from None
        if isinstance(error, StorageError):
            error.nothing_written = True


class _Uncommitted:
    """Context for writing a file that no version names yet: a failure certainly had no effect."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, StorageError):
            error.nothing_written = True


uncommitted = _Uncommitted()


def _write_error(where: str, error: BaseException) -> TablewrightError:
    text = _plain(error)
    if _has(text, _REFUSED):
        return AccessDenied(f"No permission to write {where}: {text}. Check the credentials or the mode.")
    if _has(text, _STORAGE) or (isinstance(error, OSError) and not _has(text, _DATA)):
        advice = advice_for(str(error))
        return StorageError(f"Could not write {where}: {text}" + (f". {advice}" if advice else ""))
    return InvalidRequest(f"The data can't be written to {where}: {text}")


def _read_error(where: str, text: str) -> Exception:
    if "Not found" in text or "os error 2)" in text:
        return CorruptTable(where, ("the data file is missing",))
    if _has(text, _REFUSED):
        return AccessDenied(f"No permission to read {where}: {text}. Check the credentials or the mode.")
    if _has(text, _STORAGE) or _has(text, _MACHINE):
        return StorageError(f"Could not read {where}: {text}")
    if _NO_ITEMS in text:
        return UnsupportedFeature(
            f"The codec can't read rows of {where} whose lists of blobs or packed structs are all empty or null. Read "
            "more rows at once, or leave the column out."
        )
    return CorruptTable(where, (f"the data file can't be decoded: {text}",))


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _check_machine(panic: BaseException, what: str) -> None:
    """Some panics are about this process, not about the file: no descriptors, threads or memory left."""
    text = _plain(panic)
    if _has(text, _MACHINE):
        raise StorageError(f"{what}: {text}. Close files, or raise the limits of this process (ulimit -n).") from None


def _plain(error: BaseException) -> str:
    """The first line that says something, without secrets and places in the codec's own source."""
    text = _WRAPPER.sub("", _SOURCE_LINE.sub("", str(error)).strip())
    return redact(text.replace("\n", " "))[:300]
