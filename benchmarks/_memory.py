"""Memory that the host of a virtual machine has given already.

Some hosts give a page of memory when it is touched for the first time: 15 to 27 us each on the machines where that was
found out, 1 to 3 us once the host has given it. A write of 5 MB then takes 1.4 ms or 40, whoever does it, and ratios
say which of two libraries took pages that had been used before. So memory is touched before anything is measured; it
is free again afterwards, and the kernel uses such pages first.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path

__all__ = ["touch_memory"]

BYTES_MAX = 8 << 30
SHARE_MAX = 0.5
_STEP = 1 << 20


def touch_memory() -> float:
    """Touch 8 GiB, or half of what is available; returns the microseconds that a page took."""
    nbytes = int(min(BYTES_MAX, SHARE_MAX * _available())) // _STEP * _STEP
    if not nbytes:
        return 0.0
    content = b"\1" * _STEP
    started = time.perf_counter()
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for _ in range(nbytes // _STEP):
            memory.write(content)
    return (time.perf_counter() - started) / (nbytes / mmap.PAGESIZE) * 1e6


def _available() -> int:
    """Bytes that processes can have, as Linux estimates them; 0 elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    found = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return 1024 * found[0] if found else 0
