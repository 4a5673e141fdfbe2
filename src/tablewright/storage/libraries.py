"""Libraries that run threads of their own (obstore, the data-file codec, DataFusion): when they may not be used.

1. After a ``fork``. It copies one thread; in the child of a process that has used them their threads are missing, and
   calls hang or end in a segmentation fault (measured: one scan in three). So the first use of each is remembered with
   the process id, and a child is refused at once. A parent that has only imported this package, or opened local tables
   without reading rows, may fork: nothing runs yet.
2. Without file descriptors. They open some when they start, and panic if they can't; the codec then waits for ever at
   its next use. So before the first use we look whether there are enough.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from tablewright.errors import ForkedProcess, StorageError

__all__ = ["Library", "check_usable"]

Library: TypeAlias = Literal["obstore", "the data-file codec", "DataFusion"]

_DESCRIPTORS_MIN = 16

_used_by: dict[Library, int] = {}


def check_usable(library: Library) -> None:
    """Raise ``ForkedProcess`` or ``StorageError`` if ``library`` can't be used in this process (now)."""
    process = os.getpid()
    if library not in _used_by:
        _check_descriptors(library)
    if _used_by.setdefault(library, process) != process:
        raise ForkedProcess(
            f"This process was forked from one (process {_used_by[library]}) that had used {library} already, whose "
            "threads do not exist in a fork. Start workers afresh instead: multiprocessing.get_context('spawn'), or "
            "multiprocessing_context='spawn' of a PyTorch DataLoader; or fork before the first rows are read."
        )


def _check_descriptors(library: Library) -> None:
    opened: list[int] = []
    try:
        for _ in range(_DESCRIPTORS_MIN):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise StorageError(
            f"Could not start {library}: {error.strerror} (os error {error.errno}). This process has too many files "
            "open: close some, or raise the limit (ulimit -n)."
        ) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)
