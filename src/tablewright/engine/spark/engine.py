"""The Spark engine: the same tasks as the local one, on the workers of a Spark session; and DataFrames.

Tests: tests/spark/test_tasks.py, tests/spark/test_exchange.py, tests/spark/test_frames.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.base import COLLECTED_BYTES, Gathered, Outcome
from tablewright.engine.exchange import Ranked
from tablewright.engine.groups import Finished, Message, OpenGroup, PlaceRows
from tablewright.engine.shared import require_shared
from tablewright.engine.spark.exchange import exchange
from tablewright.engine.spark.frames import gather_frame, read_frame
from tablewright.engine.spark.groups import add_group_column, finish_groups
from tablewright.engine.spark.session import embedded_session
from tablewright.engine.spark.spool import is_on_this_machine
from tablewright.engine.spark.tasks import run_tasks
from tablewright.world import World

__all__ = ["SparkEngine"]

T = TypeVar("T")
R = TypeVar("R")


class SparkEngine:
    """Tasks on Spark. Without a session, the active one is used, or an embedded one starts with the first task."""

    name = "spark"
    in_process = False

    def __init__(self, session: Any = None) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"SparkEngine({'not started' if self._session is None else self._session!r})"

    @property
    def session(self) -> Any:
        """The Spark session; asking for it starts an embedded one if there is none."""
        if self._session is None:
            self._session = embedded_session()
        return self._session

    @property
    def on_this_machine(self) -> bool:
        """Whether workers read this process's temporary files; asking for it starts a session, as for tasks."""
        return is_on_this_machine(self.session)

    def map(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Results in the order of the tasks."""
        return [outcome.unwrap() for outcome in self._run(run, tasks, world, describe, keep)]

    def outcomes(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[R], None] | None = None,
    ) -> list[Outcome[R]]:
        """What became of each task: errors of ours are outcomes, other exceptions end the Spark job and are raised."""
        return list(self._run(run, tasks, world, describe, keep))

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
        """The rows of all tasks by key, each partition by rank."""
        if not tasks:
            return []
        require_shared(world.store.location)
        return exchange(
            self.session,
            produce,
            tasks,
            consume,
            world,
            schema=schema,
            keys=keys,
            partitions=partitions,
            describe=describe,
        )

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
        """The rows of a small DataFrame; a larger one is written by its executors."""
        return gather_frame(frame, run, world, schema, describe=describe, bytes_max=bytes_max)

    def read_frame(
        self, run: Callable[[T, World], Iterable[pa.RecordBatch]], tasks: Sequence[T], world: World, schema: pa.Schema
    ) -> Any:
        """A DataFrame of all that ``run`` yields, one partition per task."""
        require_shared(world.store.location)
        return read_frame(self.session, run, tasks, world, schema)

    @property
    def shuffle_partitions(self) -> int:
        """How many partitions a shuffle has in the session."""
        return int(self.session.conf.get("spark.sql.shuffle.partitions"))

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
        """``frame`` with one column more, whose values depend on the other rows of a group."""
        return add_group_column(frame, columns, place, open_group, name, kind, partitions=partitions, messages=messages)

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
        """The results of all groups that have rows."""
        return finish_groups(
            frame, columns, place, open_group, partitions=partitions, messages=messages, describe=describe
        )

    def _run(
        self,
        run: Callable[[T, World], R],
        tasks: Sequence[T],
        world: World,
        describe: str,
        keep: Callable[[R], None] | None,
    ) -> Iterator[Outcome[R]]:
        """No tasks start no session, and neither do tasks that can't run there."""
        if not tasks:
            return iter(())
        require_shared(world.store.location)
        return run_tasks(self.session, run, tasks, world, describe=describe, keep=keep)
