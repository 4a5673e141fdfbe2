"""Local files that are mapped into memory: the last few of a process wait for the next search.

A search at thousands of places spends most of its time on the first touch of each page, and on giving the pages back.

1. At most :data:`MAPPINGS_MAX` files are kept mapped, the longest unused goes first; none if the cache is off.
2. A mapping is found by what identifies the file (:mod:`tablewright.storage.identity`): a file that was removed, or
   written again, is mapped as if for the first time.
3. Mappings belong to the store that asked for them. When the last dataset that uses it is gone, they go.

A file that was removed uses its disk space until its mapping goes.
"""

from __future__ import annotations

import ctypes
import mmap
import resource
import weakref
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.cache import process_cache
from tablewright.data.number_files import NumberFile
from tablewright.storage.base import Store
from tablewright.storage.identity import is_settled

__all__ = [
    "MAPPINGS_MAX",
    "FileBytes",
    "are_in_memory",
    "are_mapped",
    "can_tell_memory",
    "kept_mapping",
    "map_file",
    "mappings",
]

FileBytes = npt.NDArray[np.uint8]

MAPPINGS_MAX = 4


class _Mappings:
    """There are no locks, since the end of a store may come at any moment: each step is one operation on a ``dict``."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[weakref.ref[Store], FileBytes]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, store: Store, key: Hashable) -> FileBytes | None:
        found = self._kept.pop(key, None)
        if found is None or found[0]() is not store:
            return None
        self._kept[key] = found  # the last one, for it was used last
        return found[1]

    def keep(self, store: Store, key: Hashable, data: FileBytes) -> None:
        try:
            owner = weakref.ref(store, self._forget)
        except TypeError:
            return
        self._kept[key] = owner, data
        while len(self._kept) > MAPPINGS_MAX:
            self._kept.pop(next(iter(self._kept.copy()), None), None)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def _forget(self, gone: weakref.ref[Store]) -> None:
        for key, (owner, _) in self._kept.copy().items():
            if owner is gone:
                self._kept.pop(key, None)


mappings = _Mappings()
"""The mapped files of this process."""


def kept_mapping(store: Store, file: NumberFile) -> FileBytes | None:
    """The bytes of a file of this store, mapped before or now; ``None`` if it can't be mapped."""
    key = (file.path, file.identity)
    data = mappings.find(store, key)
    if data is None:
        data = map_file(file.descriptor, file.identity[2])
        if data is not None and is_settled(file.identity) and process_cache().bytes_max:
            mappings.keep(store, key, data)
    return data


def map_file(descriptor: int, size: int) -> FileBytes | None:
    """The bytes of an open file of this size; ``None`` if it can't be mapped."""
    try:
        mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, np.uint8)


def are_mapped(data: FileBytes, positions: npt.NDArray[np.int64]) -> bool:
    """Whether most of the pages of a mapped file at these positions were used since it was mapped.

    They are read to find out: the first access to a page is a page fault, and Linux counts those of each thread.
    """
    before = _page_faults()
    data.take(positions)
    return 2 * (_page_faults() - before) < len(positions)


def _page_faults() -> int:
    used = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
    return used.ru_minflt + used.ru_majflt


def can_tell_memory() -> bool:
    """Whether the system tells which pages of a mapped file are in memory (``mincore``)."""
    return _mincore() is not None


def are_in_memory(data: FileBytes, positions: npt.NDArray[np.int64]) -> bool:
    """Whether the pages of a mapped file at these positions can be read without a disk.

    Precondition: the system can tell (:func:`can_tell_memory`).
    """
    ask, answer, address = _mincore(), ctypes.create_string_buffer(1), data.ctypes.data
    pages = np.unique(positions // mmap.PAGESIZE * mmap.PAGESIZE).tolist()
    return all(not ask(address + page, 1, answer) and answer.raw[0] & 1 for page in pages)


@lru_cache(maxsize=1)
def _mincore() -> Any:
    try:
        call = ctypes.CDLL(None, use_errno=True).mincore
    except (OSError, AttributeError, TypeError):
        return None
    call.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    return call
