"""Forked processes: what a child can't do is said at once, instead of waiting for ever or crashing.

``fork`` copies one thread. obstore, the data-file codec and DataFusion run threads of their own; in the child of a
process that has used them these threads are missing, and calls hang or end in a segmentation fault (measured: one scan
in three). So the first use of each is remembered with the process id, and a child is refused. A parent that has only
imported this package, or opened local tables without reading rows, may fork: nothing runs yet.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from tablewright.errors import ForkedProcess

__all__ = ["Library", "check_not_forked"]

Library: TypeAlias = Literal["obstore", "the data-file codec", "DataFusion"]

_used_by: dict[Library, int] = {}


def check_not_forked(library: Library) -> None:
    """Raise ``ForkedProcess`` if a parent of this process has used ``library`` before the fork."""
    process = os.getpid()
    if _used_by.setdefault(library, process) != process:
        raise ForkedProcess(
            f"This process was forked from one (process {_used_by[library]}) that had used {library} already, whose "
            "threads do not exist in a fork. Start workers afresh instead: multiprocessing.get_context('spawn'), or "
            "multiprocessing_context='spawn' of a PyTorch DataLoader; or fork before the first rows are read."
        )
