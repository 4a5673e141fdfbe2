"""Ordered readahead: a few threads work ahead of whoever consumes, and results come in the order of the items.

1. Items are taken lazily, at most ``window`` ahead of the consumer: memory is bounded by ``window`` results.
2. A single item is worked on by the caller itself: small reads pay for no thread.
3. When the consumer leaves, or an item fails, what has not begun is cancelled.

All reads of a process share one pool. Its jobs never wait for each other, so they can't block one another for good.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

__all__ = ["prefetch"]

T = TypeVar("T")
R = TypeVar("R")

_THREADS = min(
    16, max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2) + 1
)
_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def prefetch(function: Callable[[T], R], items: Iterable[T], *, window: int = _THREADS + 1) -> Iterator[R]:
    """``function`` of each item, in order.

    >>> list(prefetch(len, ["a", "", "bcd"]))
    [1, 0, 3]
    """
    source = iter(items)
    first = list(_some(source, 2))
    if len(first) < 2:
        yield from map(function, first)
        return
    yield from _ahead(function, chain(first, source), window)


def _ahead(function: Callable[[T], R], items: Iterator[T], window: int) -> Iterator[R]:
    pool = _pool()
    waiting: deque[Future[R]] = deque(pool.submit(function, item) for item in _some(items, window))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(function, item) for item in _some(items, 1))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def _some(items: Iterator[T], count: int) -> Iterator[T]:
    for _ in range(count):
        try:
            yield next(items)
        except StopIteration:
            return


def _pool() -> ThreadPoolExecutor:
    """The pool of this process; a child that was forked makes its own."""
    process = os.getpid()
    with _lock:
        pool = _pools.get(process)
        if pool is None:
            _pools.clear()
            pool = _pools[process] = ThreadPoolExecutor(_THREADS, thread_name_prefix="tablewright-read")
        return pool
