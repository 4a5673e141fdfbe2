"""The task protocol: what travels to a worker, and what an engine promises.

A *task* is a small letter: a picklable value that holds all its worker needs (addresses and numbers, never open
clients or sessions). A *task function* is importable by name, takes one letter and returns a picklable result.
It may run twice or be lost halfway; so it writes only names that nobody else writes, and only results that came
back count.

An :class:`Engine` runs one function over many letters:

1. results come back in the order of the tasks;
2. the first error stops tasks that have not begun, and is raised with its own type; whoever asked gets the results
   of the others, to remove what they wrote;
3. Ctrl-C raises ``KeyboardInterrupt`` at once and stops what can be stopped;
4. on a terminal, work of more than a second shows its progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

__all__ = ["Engine", "ExchangeEngine"]

T = TypeVar("T")
R = TypeVar("R")


@runtime_checkable
class Engine(Protocol):
    """Where tasks run."""

    @property
    def name(self) -> str:
        """``"local"`` or ``"spark"``."""

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        describe: str = "",
        discard: Callable[[list[R]], None] | None = None,
    ) -> list[R]:
        """``[function(task) for task in tasks]``, run side by side. ``describe`` labels progress and errors.

        If a task fails, ``discard`` gets the results that came home nevertheless, before the error is raised.
        """

    def stream(self, function: Callable[[T], R], tasks: Sequence[T], *, describe: str = "") -> Iterator[R]:
        """The results of :meth:`map` one by one, as soon as they and all before them are there."""


@runtime_checkable
class ExchangeEngine(Engine, Protocol):
    """An engine that can also bring rows of many tasks together by key, without holding them all."""

    def exchange(
        self,
        produce: Callable[[T], Iterable[pa.RecordBatch]],
        tasks: Sequence[T],
        consume: Callable[[Iterator[pa.RecordBatch]], R],
        *,
        schema: pa.Schema,
        keys: Sequence[str],
        partitions: int,
        describe: str = "",
    ) -> list[R]:
        """What ``consume`` returns for every partition of the rows that ``produce`` yields for all tasks.

        Rows with equal ``keys`` are in one partition, and a partition is sorted by all columns.
        """
