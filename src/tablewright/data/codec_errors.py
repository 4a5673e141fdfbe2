"""What the codec complains about, in our families.

The codec raises ``ValueError``, ``OSError``, ``RuntimeError``, Arrow's errors, and panics (a ``BaseException``) on some
damaged files. A missing or damaged file is :class:`CorruptTable`, a refused one :class:`AccessDenied`, data that a file
can't hold :class:`InvalidRequest`; the rest is the storage's fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tablewright.errors import AccessDenied, CorruptTable, InvalidRequest, StorageError, UnsupportedFeature

__all__ = ["reading", "writing"]

_SOURCE_LINE = re.compile(r",? ?(?:\S*/)?\S+\.rs:\d+(?::\d+)?")
_WRAPPER = re.compile(r"^LanceError\(\w+\): ")
_REFUSED = ("Permission denied", "os error 13", "AccessDenied", "403 Forbidden", "Forbidden", "Unauthorized")
_STORAGE = ("Generic ", "timed out", "timeout", "connection", "Connection", "os error 5", "os error 28", "No space")
_DATA = ("Invalid argument error", "Invalid user input", "Failed to encode", "Not supported")
_NO_ITEMS = "DataBlockBuilder didn't see any data"
_CODEC = (ValueError, OSError, RuntimeError, pa.ArrowException)


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn the codec's complaints about the file at ``where`` into ours."""
    try:
        yield
    except _CODEC as error:
        raise _read_error(where, _plain(error)) from error
    except BaseException as error:
        if _is_panic(error):
            raise _read_error(where, _plain(error)) from None
        raise


@contextmanager
def writing(where: str) -> Iterator[None]:
    """Turn the codec's complaints about data for the file at ``where`` into ours."""
    try:
        yield
    except _CODEC as error:
        text = _plain(error)
        if _has(text, _REFUSED):
            raise AccessDenied(f"No permission to write {where}: {text}. Check the credentials or the mode.") from error
        if _has(text, _STORAGE) or (isinstance(error, OSError) and not _has(text, _DATA)):
            raise StorageError(f"Could not write {where}: {text}") from error
        raise InvalidRequest(f"The data can't be written to {where}: {text}") from error
    except BaseException as error:
        if _is_panic(error):
            raise InvalidRequest(f"The codec can't encode these data ({where}): {_plain(error)}") from None
        raise


def _read_error(where: str, text: str) -> Exception:
    if "Not found" in text or "os error 2)" in text:
        return CorruptTable(where, ("the data file is missing",))
    if _has(text, _REFUSED):
        return AccessDenied(f"No permission to read {where}: {text}. Check the credentials or the mode.")
    if _has(text, _STORAGE):
        return StorageError(f"Could not read {where}: {text}")
    if _NO_ITEMS in text:
        return UnsupportedFeature(
            f"The codec can't read rows of {where} whose lists of blobs or packed structs are all empty or null. Read "
            "more rows at once, or leave the column out."
        )
    return CorruptTable(where, (f"the data file can't be decoded: {text}",))


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def _plain(error: BaseException) -> str:
    """The first line that says something, without places in the codec's own source."""
    text = _WRAPPER.sub("", _SOURCE_LINE.sub("", str(error)).strip())
    return text.replace("\n", " ")[:300]
