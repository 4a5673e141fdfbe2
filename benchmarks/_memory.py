"""Memory that stays with a virtual machine while something is measured, and tables in memory.

Some machines give free memory back to their host in blocks of 2 MiB, and get each page of it again when it is touched:
17 to 54 us each where that was found out, 3 us otherwise. A write of 5 MB then takes 1.4 ms or 40, whoever does it, and
a ratio says which of two libraries got pages that had been used a moment ago.

:func:`kept_memory` touches memory and frees it, all but a page in each half MiB: so there is no whole block to give
back, and the kernel hands out the pages of broken blocks first.

:func:`memory_directory` is for workloads that change copies of a table and remove them. A file system can make that
part of the next run: ext4 without a journal looks at each inode that was removed in the last minutes whenever a file is
created. 50 files took 2 ms on a disk like that, and 23 ms once some dozens of copies had been removed.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["kept_memory", "memory_directory"]

BYTES_MAX = 4 << 30
SHARE_MAX = 0.5
ROOM_BYTES = 12 << 30
_IN_MEMORY = "/dev/shm"
_STEP = 1 << 19
_FREE = getattr(mmap, "MADV_DONTNEED", None)


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep 4 GiB, or half of what is available, from going back to the host; it takes up to a minute."""
    nbytes = int(min(BYTES_MAX, SHARE_MAX * _available())) // _STEP * _STEP
    if not nbytes or _FREE is None:
        yield
        return
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        content = b"\1" * _STEP
        started = time.perf_counter()
        for _ in range(nbytes // _STEP):
            memory.write(content)
        per_page = (time.perf_counter() - started) / (nbytes / mmap.PAGESIZE)
        for begin in range(0, nbytes, _STEP):
            memory.madvise(_FREE, begin + mmap.PAGESIZE, _STEP - mmap.PAGESIZE)
        print(f"memory: {nbytes >> 30} GiB at hand, touched in {per_page * 1e6:.1f} us a page", flush=True)
        yield


def memory_directory() -> str | None:
    """A file system in memory; ``None`` where ``TMPDIR`` says where to work, or less than 12 GiB are available."""
    has_room = _available() > ROOM_BYTES and os.access(_IN_MEMORY, os.W_OK)
    return _IN_MEMORY if has_room and "TMPDIR" not in os.environ else None


def _available() -> int:
    """Bytes that processes can have, as Linux estimates them; 0 elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    found = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return 1024 * found[0] if found else 0
