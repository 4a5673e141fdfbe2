"""The local engine: tasks on threads of this process. The reference that the Spark engine has to agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from tablewright.engine.base import Outcome
from tablewright.engine.exchange import Ranked, parts_of
from tablewright.engine.flow import Flow, default_threads
from tablewright.engine.progress import Progress
from tablewright.world import World

__all__ = ["LocalEngine"]

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Tasks on threads of this process, with the caller's own world.

    >>> from tablewright.testing.worlds import memory_world
    >>> LocalEngine().map(lambda task, world: len(task), ["a", "bcd"], memory_world())
    [1, 3]
    """

    name = "local"
    in_process = True
    on_this_machine = True

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    @property
    def threads(self) -> int:
        """At most this many; unless told, as many as there are processors, which is looked up at each use."""
        return self._threads or default_threads()

    def __repr__(self) -> str:
        return f"LocalEngine(threads={self.threads})"

    def map(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Results in the order of the tasks. On an error the tasks under way are awaited, then it is raised."""
        return self._results(partial(_kept, run, world, keep), tasks, describe)

    def outcomes(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[Outcome[R]]:
        """What became of each task, in the order of the tasks: any :class:`Exception` is an outcome."""
        return self._results(partial(_outcome, partial(_kept, run, world, keep)), tasks, describe)

    def exchange(
        self,
        produce: Callable[[T, World], Iterable[Ranked]],
        tasks: Sequence[T],
        consume: Callable[[Iterator[Ranked]], R],
        world: World,
        *,
        schema: pa.Schema,
        keys: Sequence[str],
        partitions: int,
        describe: str = "",
    ) -> list[R]:
        """The rows of all tasks by key. They are held in memory, so they have to fit there."""
        produced = self._results(lambda task: list(parts_of(produce(task, world), keys, partitions)), tasks, describe)
        gathered: dict[int, list[Ranked]] = {}
        for part in sorted(chain.from_iterable(produced), key=lambda part: part.rank):
            gathered.setdefault(part.partition, []).append((part.rank, part.rows))
        return self._results(lambda parts: consume(iter(parts)), list(gathered.values()), describe)

    def _results(self, function: Callable[[T], R], tasks: Sequence[T], describe: str) -> list[R]:
        threads = 1 if len(tasks) <= 1 else min(len(tasks), self.threads)
        with Progress(describe, len(tasks)) as progress:
            if threads <= 1:
                return _in_turn(function, tasks, progress)
            flow = Flow(lambda task: (function(task),), tasks, threads=threads, window=len(tasks), depth=1)
            flow.on_finished = progress.update
            try:
                return list(flow.items())
            except Exception:
                flow.join()
                raise


def _in_turn(function: Callable[[T], R], tasks: Sequence[T], progress: Progress) -> list[R]:
    """One thread is enough: the calling one."""
    results: list[R] = []
    for task in tasks:
        results.append(function(task))
        progress.update(len(results))
    return results


def _kept(run: Callable[[T, World], R], world: World, keep: Callable[[R], None] | None, task: T) -> R:
    """Run a task, and hand its result to ``keep`` in the same thread: also after the caller was interrupted."""
    result = run(task, world)
    if keep is not None:
        keep(result)
    return result


def _outcome(function: Callable[[T], R], task: T) -> Outcome[R]:
    try:
        return Outcome(result=function(task))
    except Exception as error:
        return Outcome(error=error)
