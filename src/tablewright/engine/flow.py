"""Ordered parallel streams on threads of this process: bounded readahead, results in the order of the tasks.

Arrow, the data-file codec and the object stores release the interpreter lock while they work, so threads suffice.

1. Threads take tasks in order. Task *k* begins only when fewer than ``window`` tasks from the first unconsumed one
   on have begun, so readahead is bounded.
2. What a task yields goes into its own buffer of at most ``depth`` items; a full buffer makes its thread wait.
   Memory is therefore at most ``window × (depth + 1)`` items.
3. The consumer empties the buffers in the order of the tasks. The task it waits for is always the oldest one begun,
   so no thread can wait for another in a ring.
4. The first error, or a consumer that leaves, stops everything: no task begins, and a task that yields stops at
   its next item.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tablewright.data.prefetch import processors

__all__ = ["Flow", "default_threads", "flow"]

T = TypeVar("T")
R = TypeVar("R")

EXIT_PATIENCE_SECONDS = 5.0
_live: weakref.WeakSet[Flow[Any, Any]] = weakref.WeakSet()


def default_threads() -> int:
    """As many threads as this process may use processors."""
    return processors()


def flow(
    function: Callable[[T], Iterable[R]],
    tasks: Sequence[T],
    *,
    threads: int | None = None,
    window: int | None = None,
    depth: int = 2,
) -> Iterator[R]:
    """All that ``function`` yields for each task, in order, produced by threads ahead of the consumer.

    ``window`` bounds how many tasks are under way or finished but not consumed (default: one per thread and one
    more), ``depth`` how many items each of them holds ready.

    >>> list(flow(range, [2, 0, 3]))
    [0, 1, 0, 1, 2]
    """
    threads = min(len(tasks), threads or default_threads())
    return Flow(function, tasks, threads=threads, window=window or threads + 1, depth=depth).items()


class Flow(Generic[T, R]):
    """The shared state of one run; every field below ``_change`` is guarded by it.

    ``on_finished`` is called with the number of finished tasks whenever one more has ended.
    """

    def __init__(
        self, function: Callable[[T], Iterable[R]], tasks: Sequence[T], *, threads: int, window: int, depth: int
    ) -> None:
        self._function, self._tasks, self._window, self._depth = function, tasks, window, depth
        self._threads = [
            threading.Thread(target=self._work, name=f"tablewright-{number}", daemon=True) for number in range(threads)
        ]
        self.on_finished: Callable[[int], None] = lambda finished: None
        self._change = threading.Condition()
        self._next = 0  # the first task that has not begun
        self._head = 0  # the first task that is not consumed
        self._buffers: dict[int, deque[R]] = {}
        self._finished: set[int] = set()
        self._finished_count = 0
        self._stop = False
        self._errors: dict[int, BaseException] = {}

    def items(self) -> Iterator[R]:
        """All items, in the order of the tasks. Leaving early stops the threads."""
        _live.add(self)
        try:
            for thread in self._threads:
                thread.start()
            while self._head < len(self._tasks):
                yield from self._take()
        finally:
            self.stop()

    def stop(self) -> None:
        """Begin no more tasks, and end those under way at their next item."""
        with self._change:
            self._stop = True
            self._change.notify_all()

    def join(self, deadline: float | None = None) -> None:
        """Wait for the tasks under way, at most until ``deadline`` on the monotonic clock."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _take(self) -> tuple[R, ...]:
        """The next item of the head task; none if that task has just come to its end."""
        with self._change:
            while True:
                if self._errors:
                    raise self._errors[min(self._errors)]
                buffer = self._buffers.get(self._head)
                if buffer:
                    item = buffer.popleft()
                    self._change.notify_all()
                    return (item,)
                if self._head in self._finished:
                    self._finished.discard(self._head)
                    self._buffers.pop(self._head, None)
                    self._head += 1
                    self._change.notify_all()
                    return ()
                self._change.wait()

    def _work(self) -> None:
        while (index := self._begin()) is not None:
            try:
                self._run(index)
            except BaseException as error:
                with self._change:
                    self._errors[index] = error
                    self._stop = True
                    self._change.notify_all()
                return

    def _begin(self) -> int | None:
        with self._change:
            while not self._stop and self._next < len(self._tasks) and self._next >= self._head + self._window:
                self._change.wait()
            if self._stop or self._next >= len(self._tasks):
                return None
            index, self._next = self._next, self._next + 1
            self._buffers[index] = deque()
            return index

    def _run(self, index: int) -> None:
        produced = self._function(self._tasks[index])
        try:
            for item in produced:
                if not self._put(index, item):
                    return
        finally:
            close = getattr(produced, "close", None)
            if close is not None:
                close()
        with self._change:
            self._finished.add(index)
            self._finished_count += 1
            self.on_finished(self._finished_count)
            self._change.notify_all()

    def _put(self, index: int, item: R) -> bool:
        with self._change:
            buffer = self._buffers[index]
            while len(buffer) >= self._depth and not self._stop:
                self._change.wait()
            if self._stop:
                return False
            buffer.append(item)
            self._change.notify_all()
            return True


def _leave() -> None:
    """At exit: a thread must not be inside native code while the interpreter shuts down, so wait a moment for it."""
    deadline = time.monotonic() + EXIT_PATIENCE_SECONDS
    for run in list(_live):
        run.stop()
        run.join(deadline)


atexit.register(_leave)
