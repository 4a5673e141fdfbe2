"""The task protocol: what an engine runs, where it opens the world, and what it promises.

A *task* is a small picklable value: addresses and numbers, never open files, clients or sessions. A *task function* is
importable by name; it takes a task and a :class:`~tablewright.world.World`, and returns a picklable result. The engine
opens the world where the task runs: in this process it is the caller's own, a worker opens the same location again. A
task may run twice or be lost halfway. So it writes only names that no other writer uses, and only results that came
back count.

An :class:`Engine` runs one function over many tasks:

1. results come back in the order of the tasks;
2. ``map`` ends at the first error, which is raised with its own type, and begins no more tasks; ``outcomes`` runs all
   tasks, and returns a result or an error for each;
3. ``keep`` gets every result that this process learns of, exactly once, also where another task fails or the caller is
   interrupted: whoever has to remove files knows them;
4. Ctrl-C raises ``KeyboardInterrupt`` at once and stops what can be stopped;
5. requests of tasks to storage are counted in this process (:mod:`tablewright.storage.requests`), wherever they ran;
6. on a terminal, work of more than a second shows its progress.

Tests: tests/unit/engine/test_local.py, tests/spark/test_tasks.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import pyarrow as pa

from tablewright.engine.exchange import Ranked
from tablewright.engine.groups import Finished, Message, OpenGroup, PlaceRows
from tablewright.world import World

__all__ = ["COLLECTED_BYTES", "Engine", "FrameEngine", "Gathered", "Outcome"]

COLLECTED_BYTES = 16 << 20
"""A DataFrame of about this size comes back to the driver, rather than being written by its executors."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What became of one task: its result, or the error that it ended with.

    >>> Outcome(result=3).unwrap()
    3
    """

    result: R | None = None
    error: Exception | None = None

    def unwrap(self) -> R:
        """The result; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return cast(R, self.result)


@dataclass(frozen=True, slots=True)
class Gathered(Generic[R]):
    """What became of a DataFrame: its ``rows`` if they were few, otherwise the results of its partitions in order."""

    rows: pa.Table | None = None
    results: tuple[R, ...] = ()


@runtime_checkable
class Engine(Protocol):
    """Where tasks run.

    ``name`` is for printing (``"local"``, ``"spark"``); ``in_process`` says whether tasks run in this process and share
    its memory, ``on_this_machine`` whether they run where this process does, and read its temporary files.
    """

    name: str
    in_process: bool

    @property
    def on_this_machine(self) -> bool: ...

    def map(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[R]:
        """``[run(task, world) for task in tasks]``, in parallel. ``describe`` labels progress and errors."""

    def outcomes(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[Outcome[R]]:
        """What became of each task. An error of one task does not stop the others."""

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
        """What ``consume`` returns for each partition that has rows, of all rows that ``produce`` yields; in no order.

        Rows with equal ``keys`` are in one partition, of which there are at most ``partitions``. A partition comes by
        ascending rank, and within a rank in no order. ``schema`` is that of the batches; ``keys`` hold 64-bit numbers
        or bytes, without nulls.
        """


class FrameEngine(Engine, Protocol):
    """An engine that also reads and writes DataFrames, whose rows stay outside this process unless few."""

    @property
    def session(self) -> Any:
        """The Spark session; asking for it starts an embedded one if there is none."""

    def gather_frame(
        self,
        frame: Any,
        run: Callable[[Iterator[pa.RecordBatch], World], R],
        world: World,
        schema: pa.Schema,
        *,
        describe: str = "Writing",
        bytes_max: int = COLLECTED_BYTES,
    ) -> Gathered[R]:
        """``run(batches, world)`` for each partition that has rows, cast to ``schema``; results in their order.

        A DataFrame of about ``bytes_max`` or less comes back as rows instead, in the same job. It is computed once in
        either case. Partitions that came back from a larger one are given to ``run`` here. With 0 no row comes back.

        :class:`~tablewright.errors.InvalidRequest` if ``frame`` can't be computed, or if workers can't reach the
        location. If it fails, all files that it wrote are removed.
        """

    def read_frame(
        self, run: Callable[[T, World], Iterable[pa.RecordBatch]], tasks: Sequence[T], world: World, schema: pa.Schema
    ) -> Any:
        """A DataFrame of all that ``run`` yields, one partition per task. Nothing is read before Spark asks.

        ``schema`` is that of the batches; the DataFrame has the types that Spark knows.
        """

    @property
    def shuffle_partitions(self) -> int:
        """How many partitions a shuffle has in the session."""

    def add_group_column(
        self,
        frame: Any,
        columns: Sequence[str],
        place: PlaceRows,
        open_group: OpenGroup,
        name: str,
        kind: pa.DataType,
        *,
        partitions: int,
        messages: Sequence[Message] = (),
    ) -> Any:
        """``frame`` with one column more, whose values depend on the other rows of a group. Nothing runs yet.

        ``place`` gets the ``columns`` of a batch of rows, and says which group each row belongs to.
        """

    def finish_groups(
        self,
        frame: Any,
        columns: Sequence[str],
        place: PlaceRows,
        open_group: OpenGroup,
        *,
        partitions: int,
        messages: Sequence[Message] = (),
        describe: str = "",
    ) -> list[Finished]:
        """What each group that has rows returns after its last one. Only ``columns`` are read."""
