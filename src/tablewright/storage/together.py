"""Requests that do not depend on each other, under way at the same time where a store answers slowly.

A request to an object store takes tens of milliseconds, nearly all of them waiting; a local disk answers in
microseconds, less than a thread costs. So calls to the first kind run on threads, and to all other stores one after the
other, in the order given: tests that stop a writer at its nth call depend on that order.

Tests: ``tests/unit/storage/test_together.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tablewright.storage.base import ObjectNotFound, Store

__all__ = ["answers_slowly", "read_each", "together"]

T = TypeVar("T")
_REQUESTS_AT_ONCE = 32


def answers_slowly(store: Store) -> bool:
    """Whether it pays to have several requests under way."""
    return bool(getattr(store, "answers_slowly", False))


def together(store: Store, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """What the calls return. If some fail, the others are awaited, and the first error in their order is raised.

    On a store that answers quickly, the calls after one that failed are not made.
    """
    if not answers_slowly(store) or len(calls) <= 1:
        return tuple(call() for call in calls)
    with ThreadPoolExecutor(min(len(calls), _REQUESTS_AT_ONCE)) as pool:
        waiting = [pool.submit(call) for call in calls]
    return tuple(future.result() for future in waiting)


def read_each(store: Store, paths: Iterable[str]) -> Iterator[bytes | None]:
    """The bytes of each object, in order, some read ahead; ``None`` where there is none."""
    if not answers_slowly(store):
        yield from (_read(store, path) for path in paths)
        return
    waiting: deque[Future[bytes | None]] = deque()
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        try:
            for path in paths:
                waiting.append(pool.submit(_read, store, path))
                if len(waiting) == _REQUESTS_AT_ONCE:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _read(store: Store, path: str) -> bytes | None:
    try:
        return store.get(path)
    except ObjectNotFound:
        return None
