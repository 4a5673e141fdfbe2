"""The cache of a process: what was read from files that never change, within one budget of bytes.

1. *One budget.* Entries of all kinds (:class:`CacheKind`) share it; the least recently used one goes first, whatever
   its kind. A value that alone exceeds the budget is not kept. A budget of 0 turns the cache off.
2. *Keys that can't repeat.* A path may be written again: a table is dropped and made once more, or copied over. So a
   key holds what identifies the bytes (:mod:`tablewright.storage.identity`), never a path alone.
3. *Values are immutable*, and no value refers to an open dataset, reader or connection.
4. *Threads* share the cache. Two that miss at once both load; their values are equal, and the last one is kept.
5. *A fork* leaves the child an empty cache. The parent's values are not freed there: their memory belongs to libraries
   whose threads do not exist in the child.

The budget is ``TABLEWRIGHT_CACHE_BYTES`` or :data:`DEFAULT_BYTES`. A Spark worker, of which a machine runs one for each
core, has :data:`WORKER_BYTES`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar

from tablewright.errors import InvalidRequest

__all__ = ["DEFAULT_BYTES", "WORKER_BYTES", "Cache", "CacheKind", "CacheStats", "KindStats", "process_cache"]

T = TypeVar("T")
Key = tuple[str, Hashable]

DEFAULT_BYTES = 256 * 1024 * 1024
WORKER_BYTES = 64 * 1024 * 1024
_VARIABLE = "TABLEWRIGHT_CACHE_BYTES"
_SPARK_WORKER_VARIABLES = "PYTHON_WORKER_FACTORY_"  # Spark sets some of these in the processes of its workers
_ENTRY_BYTES = 256  # the entry itself: key, links, size


@dataclass(frozen=True, slots=True, kw_only=True)
class KindStats:
    """One kind of entry: how many there are and their bytes, and how often a key was found or not."""

    entries: int = 0
    bytes_used: int = 0
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStats:
    """The cache of this process at one moment. Hits and misses count from its start."""

    bytes_max: int
    bytes_used: int
    entries: int
    hits: int
    misses: int
    evictions: int
    kinds: Mapping[str, KindStats] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """The share of lookups that found their key; 0 before the first one."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class Cache:
    """Values by kind and key, of at most ``bytes_max`` bytes in total.

    >>> cache = Cache(bytes_max=1000)
    >>> cache.keep(("words", "a"), "first", 300)
    True
    >>> cache.find(("words", "a")), cache.find(("words", "b"))
    ('first', None)
    >>> cache.keep(("words", "b"), "big", 700)
    True
    >>> cache.find(("words", "a")), cache.stats().evictions
    (None, 1)
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._inherited: list[object] = []
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._bytes_used = self._evictions = 0
        self._hits: dict[str, int] = {}
        self._misses: dict[str, int] = {}

    @property
    def bytes_max(self) -> int:
        """The budget; 0 turns the cache off."""
        return self._bytes_max

    def resize(self, bytes_max: int) -> None:
        """Set the budget; entries beyond it go at once."""
        with self._lock:
            self._bytes_max = bytes_max
            gone = self._evict()
        gone.clear()

    def find(self, key: Key) -> Any:
        """The value at ``key``, ``None`` if there is none."""
        return self.find_all((key,))[0]

    def find_all(self, keys: Iterable[Key]) -> list[Any]:
        """The values at several keys of one kind, ``None`` for those that are not there."""
        if not self._bytes_max:
            return [None for _ in keys]
        found: list[Any] = []
        kind, misses = "", 0
        with self._lock:
            entries = self._entries
            for key in keys:
                entry = entries.get(key)
                if entry is None:
                    misses += 1
                    found.append(None)
                else:
                    entries.move_to_end(key)
                    found.append(entry[0])
                kind = key[0]
            if misses:
                self._misses[kind] = self._misses.get(kind, 0) + misses
            if misses < len(found):
                self._hits[kind] = self._hits.get(kind, 0) + len(found) - misses
        return found

    def count_held(self, keys: Iterable[Key]) -> int:
        """How many of these keys are there; that counts as no use of them."""
        with self._lock:
            return sum(key in self._entries for key in keys)

    def keep(self, key: Key, value: object, size: int) -> bool:
        """Keep ``value``, of this many bytes, at ``key``; it replaces one that is there. Whether it is kept: not if it
        alone exceeds the budget.
        """
        size += _ENTRY_BYTES
        if size > self._bytes_max:
            return False
        with self._lock:
            before = self._entries.pop(key, None)
            self._entries[key] = (value, size)
            self._bytes_used += size - (0 if before is None else before[1])
            gone = self._evict()
        gone.clear()
        return True

    def drop(self, key: Key) -> None:
        """Forget the value at ``key``, if there is one."""
        with self._lock:
            gone = self._entries.pop(key, None)
            self._bytes_used -= 0 if gone is None else gone[1]

    def _evict(self) -> list[object]:
        """Take out the least recently used entries beyond the budget; the caller frees them without the lock."""
        gone: list[object] = []
        while self._bytes_used > self._bytes_max:
            _, entry = self._entries.popitem(last=False)
            self._bytes_used -= entry[1]
            self._evictions += 1
            gone.append(entry)
        return gone

    def clear(self) -> None:
        """Forget all values; the counts of hits and misses stay."""
        with self._lock:
            gone, self._entries, self._bytes_used = self._entries, OrderedDict(), 0
        gone.clear()

    def stats(self) -> CacheStats:
        """Sizes and counts now."""
        with self._lock:
            sizes: dict[str, list[int]] = {}
            for (kind, _), (_, size) in self._entries.items():
                sizes.setdefault(kind, []).append(size)
            kinds = {
                kind: KindStats(
                    entries=len(sizes.get(kind, ())),
                    bytes_used=sum(sizes.get(kind, ())),
                    hits=self._hits.get(kind, 0),
                    misses=self._misses.get(kind, 0),
                )
                for kind in sorted({*sizes, *self._hits, *self._misses})
            }
            return CacheStats(
                bytes_max=self._bytes_max,
                bytes_used=self._bytes_used,
                entries=len(self._entries),
                hits=sum(self._hits.values()),
                misses=sum(self._misses.values()),
                evictions=self._evictions,
                kinds=kinds,
            )

    def start_in_child(self) -> None:
        """Begin empty in a forked process. What the parent kept stays referenced, so that nothing frees it here."""
        self._inherited.append(self._entries)
        self._start_empty()


class CacheKind(Generic[T]):
    """The entries of one kind in the cache of the process.

    >>> words = CacheKind[str]("words of a doctest")
    >>> words.get("a", lambda: ("first", 6)), words.get("a", lambda: ("second", 6))
    ('first', 'first')
    >>> words.drop("a")
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def find(self, key: Hashable) -> T | None:
        """The value at ``key``, ``None`` if there is none."""
        found: T | None = process_cache().find((self.name, key))
        return found

    def find_all(self, keys: Iterable[Hashable]) -> list[T | None]:
        """The values at several keys, ``None`` for those that are not there."""
        name = self.name
        return process_cache().find_all([(name, key) for key in keys])

    def count_held(self, keys: Iterable[Hashable]) -> int:
        """How many of these keys are there; that counts as no use of them."""
        name = self.name
        return process_cache().count_held([(name, key) for key in keys])

    def get(self, key: Hashable, load: Callable[[], tuple[T, int]]) -> T:
        """The value at ``key``; if there is none, what ``load`` returns, together with its size in bytes."""
        found = self.find(key)
        if found is not None:
            return found
        value, size = load()
        self.keep(key, value, size)
        return value

    def keep(self, key: Hashable, value: T, size: int) -> bool:
        """Keep ``value``, of this many bytes, at ``key``; it replaces one that is there. Whether it is kept."""
        return process_cache().keep((self.name, key), value, size)

    def drop(self, key: Hashable) -> None:
        """Forget the value at ``key``, if there is one."""
        process_cache().drop((self.name, key))


@lru_cache(maxsize=1)
def process_cache() -> Cache:
    """The cache of this process; made when it is first used."""
    cache = Cache(_bytes_at_start())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=cache.start_in_child)
    return cache


def _bytes_at_start() -> int:
    text = os.environ.get(_VARIABLE, "").strip()
    if text:
        if text.isdecimal():
            return int(text)
        raise InvalidRequest(f"The environment variable {_VARIABLE} must be a whole number of bytes, not {text!r}.")
    in_worker = any(name.startswith(_SPARK_WORKER_VARIABLES) for name in os.environ)
    return WORKER_BYTES if in_worker else DEFAULT_BYTES
