"""Open data files that wait for the next read of the same columns: opening one costs more than reading a small column.

1. Only local files are kept, at most :data:`READERS_MAX` of a process, the longest unused closed first: each holds a
   descriptor, and some kilobytes of what the codec knows of the file.
2. A reader is used again only if its path still leads to the file that was opened
   (:mod:`tablewright.storage.identity`): a file that was removed, or written again, is opened as if for the first time.
3. Readers belong to the store that opened them. When the last dataset that uses it is gone, they are closed.
4. There are no locks, since the end of a store may come at any moment: each step is one operation on a ``dict``
   (``copy`` is one, ``list(….items())`` is not: a collection of garbage in between may end a store).

A file that was removed uses its disk space until its readers are closed.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from tablewright.cache import process_cache
from tablewright.data.encoder import DataFileReader
from tablewright.storage.base import Store
from tablewright.storage.identity import FileIdentity, is_local, is_settled, local_identity

__all__ = ["READERS_MAX", "Idle", "IdleReaders", "for_one_read", "process_readers"]

READERS_MAX = 32
_DESCRIPTOR_BYTES_MAX = 256 * 1024
_FILE_BYTES_MAX = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class Idle:
    """An open file that may wait for another read. Without an identity it can't."""

    store: weakref.ref[Store] | None
    path: str
    columns: tuple[str, ...] | None
    describe: bool
    identity: FileIdentity | None
    reader: DataFileReader


class IdleReaders:
    """The open files of one process that are not being read."""

    def __init__(self, readers_max: int = READERS_MAX) -> None:
        self._readers_max = readers_max
        self._waiting: dict[int, Idle] = {}
        self._numbers = count()
        self._process = os.getpid()
        self._inherited: list[object] = []

    def __len__(self) -> int:
        return len(self._own())

    def open(self, store: Store, path: str, columns: Sequence[str] | None, *, describe: bool) -> Idle:
        """A reader of these columns: one that waits, or a new one."""
        identity = _identity(store, path)
        wanted = None if columns is None else tuple(columns)
        if identity is not None:
            found = self._found(store, (path, wanted, describe, identity))
            if found is not None:
                return found
        reader = DataFileReader(store, path, columns, describe=describe)
        owner = None
        if identity is not None and is_settled(identity) and _is_small(reader, identity):
            owner = self._reference(store)
        return Idle(owner, path, wanted, describe, identity, reader)

    def keep(self, idle: Idle) -> None:
        """Keep a reader whose last read has ended, and all of whose rows were taken; unless the cache is off."""
        if idle.store is None or not process_cache().bytes_max:
            return
        self._own()[next(self._numbers)] = idle
        while len(self._waiting) > self._readers_max:
            self._waiting.pop(next(iter(self._waiting), -1), None)

    def clear(self) -> None:
        """Close all that wait."""
        self._own().clear()

    def _found(self, store: Store, key: tuple[object, ...]) -> Idle | None:
        for number, idle in reversed(self._own().copy().items()):
            if (idle.path, idle.columns, idle.describe, idle.identity) != key or idle.store is None:
                continue
            if idle.store() is store and self._waiting.pop(number, None) is not None:
                return idle
        return None

    def _reference(self, store: Store) -> weakref.ref[Store] | None:
        try:
            return weakref.ref(store, self._close_those_of)
        except TypeError:
            return None

    def _close_those_of(self, gone: weakref.ref[Store]) -> None:
        for number, idle in self._waiting.copy().items():
            if idle.store is gone:
                self._waiting.pop(number, None)

    def _own(self) -> dict[int, Idle]:
        """What this process has opened. A forked one can't use, and must not close, what its parent had."""
        if self._process != os.getpid():
            self._inherited.append(self._waiting)
            self._waiting, self._process = {}, os.getpid()
        return self._waiting


def for_one_read(reader: DataFileReader, path: str) -> Idle:
    """A reader that does not wait for another read: what it reads is cached, or it is one of very many."""
    return Idle(None, path, None, False, None, reader)


def _identity(store: Store, path: str) -> FileIdentity | None:
    location = store.codec_location(path)
    return None if location is None or not is_local(location) else local_identity(location.uri)


def _is_small(reader: DataFileReader, identity: FileIdentity) -> bool:
    if reader.has_own_copy or identity[2] > _FILE_BYTES_MAX:
        return False
    return len(reader.descriptor) <= _DESCRIPTOR_BYTES_MAX


process_readers = IdleReaders()
"""The idle readers of this process."""
