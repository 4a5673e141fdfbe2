"""An LRU cache bounded by bytes, for values that never change under their key.

Least recently used entries are evicted first. Threads may share it: two that miss at once both load, and the first
value stays.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["ByteCache"]

T = TypeVar("T")


class ByteCache(Generic[T]):
    """Values by key, of at most ``bytes_max`` bytes in total.

    >>> cache = ByteCache[str](bytes_max=10)
    >>> cache.get("a", lambda: ("first", 6)), cache.get("a", lambda: ("second", 6))
    ('first', 'first')
    >>> cache.get("b", lambda: ("big", 8)), cache.bytes_used
    ('big', 8)
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._bytes_used = 0
        self._lock = threading.Lock()

    @property
    def bytes_used(self) -> int:
        """The sizes of all entries together."""
        return self._bytes_used

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value at ``key``; if there is none, what ``load`` returns, together with its size in bytes."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        return self.put(key, *load())

    def put(self, key: Hashable, value: T, size: int) -> T:
        """Keep ``value`` unless there is one at ``key`` already. Returns the one that is kept."""
        with self._lock:
            if key in self._entries:
                return self._entries[key][0]
            if size <= self.bytes_max:
                self._entries[key] = (value, size)
                self._bytes_used += size
            while self._bytes_used > self.bytes_max:
                _, (_, gone) = self._entries.popitem(last=False)
                self._bytes_used -= gone
            return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._bytes_used = 0
