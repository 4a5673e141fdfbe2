"""Whether a filter reads small batches, because the memory of this process is fresh.

A page of memory costs a page fault when it is first used, 2.5 to 5 us, which is more than decoding 512 numbers into it.
Small batches are freed as they are judged, and the allocator gives the same pages out again; but each costs some 0.2 ms
more, probably for waking threads. The first filter of a process on two columns of 500,000 numbers has 2,400 faults
instead of 3,500 and takes 5 to 9 % less processor time. Once the allocator holds enough pages, large batches have no
faults either: then they take 10 ms, small ones 13. So small batches are for the first bytes that a process reads
through filters.
"""

from __future__ import annotations

__all__ = ["FreshMemory", "fresh_memory"]

_FRESH_BYTES = 32 * 1024 * 1024


class FreshMemory:
    """Counts the bytes that were read, up to a limit. Threads may share it: a count that is lost does no harm.

    >>> memory = FreshMemory(10)
    >>> memory.used_for(8), memory.used_for(8), memory.used_for(8)
    (True, True, False)
    """

    def __init__(self, limit: int = _FRESH_BYTES) -> None:
        self._left = limit

    def used_for(self, size: int) -> bool:
        """Whether a read of this many bytes begins while memory is fresh. It is counted."""
        if self._left <= 0:
            return False
        self._left -= size
        return True


fresh_memory = FreshMemory()
"""That of this process."""
