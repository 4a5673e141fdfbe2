"""Tasks of an operation on the engine that its plan chose.

Here they run with the caller's own world (its store, clock and ids); on Spark each worker opens the table's store from
the address inside the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tablewright.engine.base import Engine
from tablewright.engine.choose import Choice, choose_engine
from tablewright.engine.local import LocalEngine
from tablewright.operations.marked import Mark
from tablewright.storage import open_store
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["choose_for", "run_tasks"]


class Letter(Protocol):
    """What every task says: where its table is."""

    @property
    def location(self) -> Location: ...


T = TypeVar("T", bound=Letter)
R = TypeVar("R")


def choose_for(world: World, estimated_bytes: int, engine: Any, spark: Any, *, stays_here: str | None = None) -> Choice:
    """The engine for work on a table. ``stays_here`` is a reason why the work can't travel to other processes."""
    if world.store.location.is_of_this_process:
        stays_here = "the table lives in this process"
    if stays_here is not None:
        return Choice(LocalEngine(), stays_here)
    return choose_engine(estimated_bytes, engine, spark=spark)


def run_tasks(
    engine: Engine,
    run: Callable[[T, World], R],
    tasks: Sequence[T],
    world: World,
    *,
    describe: str,
    discard: Callable[[list[R]], None] | None = None,
) -> list[R]:
    """``[run(task, world) for task in tasks]``. ``run`` is importable by name.

    If a task fails, ``discard`` gets the results of the others, to remove the files that they wrote.
    """
    if engine.name == "local":
        return engine.map(lambda task: run(task, world), tasks, describe=describe, discard=discard)
    return _run_on_workers(engine, run, tasks, world, describe, discard)


def _run_on_workers(
    engine: Engine,
    run: Callable[[T, World], R],
    tasks: Sequence[T],
    world: World,
    describe: str,
    discard: Callable[[list[R]], None] | None,
) -> list[R]:
    """If Spark fails, no results come home: then all files of the job are removed, by their mark."""
    mark = Mark()
    told: list[R] = []

    def tell(results: list[R]) -> None:
        told.extend(results)
        if discard is not None:
            discard(results)

    try:
        return engine.map(_OnWorker(run, mark), tasks, describe=describe, discard=tell)
    except BaseException:
        if not told:  # the caller may go on with results that came home
            mark.discard(world)
        raise


@dataclass(frozen=True, slots=True)
class _OnWorker(Generic[T, R]):
    """A task function with the world that a worker opens for itself."""

    run: Callable[[T, World], R]
    mark: Mark

    def __call__(self, task: T) -> R:
        store = open_store(task.location.uri, task.location.storage_options)
        return self.run(task, World(store=store, ids=self.mark.ids))
