"""Small data files of a slow store, fetched whole: one request for each file, instead of those that the codec makes.

The codec asks for the size of a file, then for its end, then for its pages; where a request takes 30 ms, that is most
of the time of a small file. The manifest knows that it is small, so its bytes are fetched at once, and the codec reads
them from a local file, which exists while the block does. All of them are in one directory: files of one directory
share what the codec needs to open them.

Tests: ``tests/unit/data/test_held.py``.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from tablewright.data.context import ReadContext
from tablewright.data.spool import present
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_ids import RowIdSequence
from tablewright.format.row_set import RowSet
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, Store
from tablewright.storage.subtree import SubtreeStore
from tablewright.storage.temporary import new_temporary_directory, temporary_space
from tablewright.storage.together import answers_slowly

__all__ = ["small_files_held"]

_HELD_BYTES_MAX = 256 * 1024


class _Held(SubtreeStore):
    """A store of which one data file is a local file for the codec."""

    def __init__(self, store: Store, file: str) -> None:
        super().__init__(store, "")
        self._file = file

    @property
    def location(self) -> Location:
        return self.parent.location

    def codec_location(self, path: str) -> Location | None:
        return Location(self._file)

    def _up(self, path: str) -> str:
        return path


class _Context:
    """The surroundings of fragments, with small data files that are fetched whole."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._files: dict[tuple[int | None, str], str] = {}

    @property
    def place(self) -> Hashable | None:
        return self._context.place

    def data_place(self, file: DataFile) -> tuple[Store, str]:
        store, path = self._context.data_place(file)
        if not 0 < file.file_size_bytes <= _HELD_BYTES_MAX or not answers_slowly(store):
            return store, path
        key = (file.base_id, file.path)
        if key not in self._files:
            self._files[key] = _fetched(store, path)
        return _Held(store, self._files[key]), path

    def store_of(self, base_id: int | None) -> Store:
        return self._context.store_of(base_id)

    def deletion_vector(self, fragment: Fragment) -> RowSet | None:
        return self._context.deletion_vector(fragment)

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        return self._context.row_ids(fragment)

    def remove(self) -> None:
        """Remove the local files."""
        for file in self._files.values():
            with suppress(OSError):
                os.unlink(file)


@contextmanager
def small_files_held(context: ReadContext) -> Iterator[ReadContext]:
    """The same surroundings; if the table's store answers slowly, those in which small files cost one request."""
    if not answers_slowly(context.store_of(None)):
        yield context
        return
    held = _Context(context)
    try:
        yield held
    finally:
        held.remove()


def _fetched(store: Store, path: str) -> str:
    with present(join_uri(store.location.uri, path)):
        data = store.get(path)
    file = Path(_directory(os.getpid())) / f"{secrets.token_hex(8)}.lance"
    with temporary_space():
        file.write_bytes(data)
    return str(file)


@lru_cache(maxsize=1)
def _directory(process: int) -> str:
    """The directory of this process; a child that was forked makes its own."""
    directory = new_temporary_directory()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
