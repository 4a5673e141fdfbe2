"""Temporary local copies of data files in stores that the codec can't open by itself.

Readers of one object share one copy for as long as any of them exists. Data files never change and their names are
random, so a copy can't be stale.

Tests: ``tests/unit/data/test_encoder.py``.
"""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tablewright.errors import CorruptTable
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.temporary import new_temporary_directory, temporary_space

__all__ = ["Spool", "fetch", "present"]

_copies: weakref.WeakValueDictionary[tuple[str, str], Spool] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Spool:
    """A temporary file that vanishes with this value."""

    def __init__(self) -> None:
        directory = new_temporary_directory()
        self.path = str(Path(directory) / "spooled.lance")
        self._finalizer = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    def read(self) -> bytes:
        """All bytes of the file."""
        return Path(self.path).read_bytes()

    def remove(self) -> None:
        """Remove the file now."""
        self._finalizer()


def fetch(store: Store, path: str) -> Spool:
    """A local copy of a stored object; it exists as long as the returned value."""
    key = (store.location.uri, path)
    with _lock:
        spool = _copies.get(key)
    if spool is None:
        spool = Spool()
        data = store.get(path)
        with temporary_space():
            Path(spool.path).write_bytes(data)
        with _lock:
            _copies[key] = spool
    return spool


@contextmanager
def present(where: str) -> Iterator[None]:
    """A data file that is not at ``where`` is :class:`CorruptTable`: a version names it."""
    try:
        yield
    except ObjectNotFound:
        raise CorruptTable(where, ("the data file is missing",)) from None
