"""Errors of the codec, by what they say. Those that the codec really raises: tests/unit/data/test_encoder.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tablewright.data.codec_errors import reading, writing
from tablewright.errors import AccessDenied, CorruptTable, InvalidRequest, StorageError, UnsupportedFeature

Raised = type[BaseException]


class PanicException(BaseException):
    """A panic by its name, which is how those of the codec are known."""


def raised(within: Callable[[str], Any], error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as caught, within("t/data/x.lance"):  # noqa: PT011
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ValueError("LanceError(IO): Not found: x, /src/a.rs:10:5"), CorruptTable, "the data file is missing"),
        (OSError("No such file (os error 2)"), CorruptTable, "the data file is missing"),
        (OSError("Permission denied (os error 13)"), AccessDenied, "No permission to read t/data/x.lance"),
        (RuntimeError("Generic S3 error: timed out"), StorageError, "Could not read"),
        (pa.ArrowInvalid("odd"), CorruptTable, "can't be decoded: odd"),
        (ValueError("DataBlockBuilder didn't see any data"), UnsupportedFeature, "all empty or null"),
        (PanicException("index out of bounds"), CorruptTable, "can't be decoded: index out of bounds"),
        (PanicException("Too many open files"), StorageError, "ulimit -n"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_reading(error: BaseException, kind: Raised, words: str) -> None:
    found = raised(reading, error)
    assert type(found) is kind
    assert words in str(found) and ".rs" not in str(found)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError("AccessDenied"), AccessDenied, "No permission to write t/data/x.lance"),
        (OSError("No space left (os error 28)"), StorageError, "The disk is full: free some space"),
        (OSError("Generic S3 error: timed out"), StorageError, "Could not write"),
        (OSError("Read-only file system (os error 30)"), AccessDenied, "No permission to write"),
        (OSError("Failed to encode: too long"), InvalidRequest, "can't be written"),
        (ValueError("Invalid user input: nulls"), InvalidRequest, "can't be written"),
        (PanicException("unimplemented"), InvalidRequest, "can't encode these data"),
        (PanicException("OutOfMemory"), StorageError, "Could not write"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_writing(error: BaseException, kind: Raised, words: str) -> None:
    found = raised(writing, error)
    assert type(found) is kind and words in str(found)
    assert getattr(found, "nothing_written", True)


@pytest.mark.parametrize("within", [reading, writing])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("ours"), MemoryError()], ids=repr)
def test_others_pass(within: Callable[[str], Any], error: BaseException) -> None:
    assert raised(within, error) is error
