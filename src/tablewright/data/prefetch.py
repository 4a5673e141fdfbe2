"""Ordered readahead: a few threads work ahead of the consumer, and results come in the order of the items.

1. Items are taken lazily, at most ``window`` ahead of the consumer: memory is bounded by ``window`` results.
2. A single item runs in the caller's thread: small reads pay for no thread. A caller that would have to wait runs
   items that no thread has begun.
3. When the consumer stops, or an item fails, items that have not begun are cancelled.

:func:`spread` is for callers that need all results before they continue.

All reads of a process share one pool. Its jobs never wait for each other, so they can't deadlock.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain
from typing import Generic, TypeVar

__all__ = ["computing_threads", "prefetch", "processors", "spread"]

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def computing_threads() -> int:
    """How many threads may compute at once: one per processor, but no more than ``OMP_NUM_THREADS`` says.

    Spark sets it in its Python workers, to the cores that a task has (``spark.task.cpus``).
    """
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    given = int(text) if text.isascii() and text.isdigit() else 0
    return min(processors(), given) if given else processors()


_THREADS = min(16, max(2, processors()) + 1)
_HELPERS = max(1, _THREADS - 2)
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


def spread(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """All results, in order; the calling thread works too.

    Idle threads of the pool help; if there are none, the caller runs all items. The first error is raised once the
    running items have ended.

    >>> spread(len, ["a", "", "bcd"])
    [1, 0, 3]
    """
    source = enumerate(items)
    first = list(_some(source, 2))
    if len(first) < 2:
        return [function(item) for _, item in first]
    work = _Spread(function, chain(first, source))
    pool = _pool()
    helpers = [pool.submit(work.run) for _ in range(_HELPERS)]
    try:
        work.run()
    finally:
        wait([helper for helper in helpers if not helper.cancel()])
    return work.results()


class _Spread(Generic[T, R]):
    """Items that several threads take one by one, and their results."""

    def __init__(self, function: Callable[[T], R], items: Iterator[tuple[int, T]]) -> None:
        self._function, self._items = function, items
        self._lock = threading.Lock()
        self._results: dict[int, R] = {}
        self._errors: list[BaseException] = []

    def run(self) -> None:
        """Work until nothing is left, or something failed."""
        while not self._errors:
            try:
                with self._lock:
                    taken = next(self._items, None)
                if taken is None:
                    return
                self._results[taken[0]] = self._function(taken[1])
            except BaseException as error:
                self._errors.append(error)

    def results(self) -> list[R]:
        """In the order of the items, or the first error."""
        if self._errors:
            raise self._errors[0]
        return [self._results[number] for number in range(len(self._results))]


def _ahead(function: Callable[[T], R], items: Iterator[T], window: int) -> Iterator[R]:
    pool = _pool()
    waiting: deque[_Job[T, R]] = deque(_Job(pool, function, item) for item in _some(items, window))
    try:
        while waiting:
            job = waiting.popleft()
            while not job.done and any(other.done_here() for other in waiting):
                continue
            result = job.result()
            waiting.extend(_Job(pool, function, item) for item in _some(items, 1))
            yield result
    finally:
        for job in waiting:
            job.future.cancel()


class _Job(Generic[T, R]):
    """An item that is run by a thread of the pool or by the consumer, whichever is first."""

    def __init__(self, pool: ThreadPoolExecutor, function: Callable[[T], R], item: T) -> None:
        self._function, self._item = function, item
        self.future: Future[R] = pool.submit(function, item)

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self.future.done()

    def done_here(self) -> bool:
        """Do it now, in this thread, unless it has begun; returns whether it was run."""
        if not self.future.cancel():
            return False
        self.future = Future()
        try:
            self.future.set_result(self._function(self._item))
        except Exception as error:
            self.future.set_exception(error)
        return True

    def result(self) -> R:
        """The result, or the error."""
        self.done_here()
        return self.future.result()


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
