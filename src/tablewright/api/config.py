"""Settings of this process, and what its cache holds."""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.cache import CacheStats, process_cache
from tablewright.checks import whole_number

__all__ = ["Config", "cache_stats", "config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings in force. ``cache_bytes`` is the budget of the cache; 0 means that it is off."""

    cache_bytes: int


def config(*, cache_bytes: int | None = None) -> Config:
    """Change settings of this process; those that are ``None`` stay. Returns all settings as they are then.

    ``cache_bytes`` is how much memory may hold what was read from files that never change: decoded columns of small
    files, deletion vectors. 0 turns the cache off and empties it. At the start it is what the environment variable
    ``TABLEWRIGHT_CACHE_BYTES`` says, else 256 MiB, and 64 MiB in a Spark worker.

    >>> before = config()
    >>> config(cache_bytes=64_000_000)
    Config(cache_bytes=64000000)
    >>> config(cache_bytes=before.cache_bytes) == before
    True
    """
    cache = process_cache()
    if cache_bytes is not None:
        cache.resize(whole_number(cache_bytes, "cache_bytes"))
    return Config(cache_bytes=cache.bytes_max)


def cache_stats() -> CacheStats:
    """Size, budget, hits and misses of this process's cache, in total and by kind.

    >>> stats = cache_stats()
    >>> stats.bytes_used <= stats.bytes_max
    True
    """
    return process_cache().stats()
