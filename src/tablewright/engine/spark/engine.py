"""The Spark engine: the same tasks as the local one, on the workers of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.spark.exchange import exchange
from tablewright.engine.spark.session import embedded_session
from tablewright.engine.spark.tasks import run_tasks

__all__ = ["SparkEngine"]

T = TypeVar("T")
R = TypeVar("R")


class SparkEngine:
    """Tasks on Spark. Without a session, the active one is used, or an embedded one starts with the first task."""

    name = "spark"

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

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        describe: str = "",
        discard: Callable[[list[R]], None] | None = None,
    ) -> list[R]:
        """Results in the order of the tasks."""
        return run_tasks(self.session, function, tasks, describe=describe, discard=discard) if tasks else []

    def stream(self, function: Callable[[T], R], tasks: Sequence[T], *, describe: str = "") -> Iterator[R]:
        """The results one by one. Spark hands them over together, so they have to fit this process's memory."""
        yield from self.map(function, tasks, describe=describe)

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
        """The rows of all tasks by key, each partition sorted."""
        return exchange(
            self.session, produce, tasks, consume, schema=schema, keys=keys, partitions=partitions, describe=describe
        )
