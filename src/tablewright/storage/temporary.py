"""Temporary files of this process: where they are, and the error when the disk is full."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tablewright.errors import StorageError, TablewrightError

__all__ = ["new_temporary_directory", "temporary_space"]


def new_temporary_directory(parent: str | None = None) -> str:
    """A directory of our own, which the caller removes; by default in the directory for temporary files."""
    with temporary_space():
        return tempfile.mkdtemp(prefix="tablewright-", dir=parent)


@contextmanager
def temporary_space() -> Iterator[None]:
    """Context for writing temporary files: failures are :class:`StorageError`, and name the variable to set."""
    try:
        yield
    except OSError as error:
        if isinstance(error, TablewrightError):
            raise
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StorageError(
            f"Could not write a temporary file in {tempfile.tempdir or 'the directory for temporary files'}: {reason}. "
            "Free some space there, or set TMPDIR to another directory."
        ) from error
