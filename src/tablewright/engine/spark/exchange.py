"""Rows of many tasks, brought together by key: Spark moves, sorts and spills them, so no side has to fit into memory.

1. Every task *produces* rows in a worker.
2. Spark sends the rows with equal keys to one partition, and sorts each partition by all columns.
3. Every partition's rows are *consumed* in a worker, as a stream; what that returns comes back to the driver.

An error of ours while rows are produced travels with them, so that it is raised with its type. Requests that are made
while rows are produced are not counted: only step 3 answers.

Tests: tests/spark/test_exchange.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.spark.answers import ANSWER, run_answers
from tablewright.engine.spark.frames import task_frame
from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.worker import consume_checked, consume_partition, produce_all
from tablewright.world import World

__all__ = ["exchange"]

T = TypeVar("T")
R = TypeVar("R")

_FAILURE = "failure"


def exchange(
    spark: Any,
    produce: Callable[[T, World], Iterable[pa.RecordBatch]],
    tasks: Sequence[T],
    consume: Callable[[Iterator[pa.RecordBatch]], R],
    world: World,
    *,
    schema: pa.Schema,
    keys: Sequence[str],
    partitions: int,
    describe: str = "",
) -> list[R]:
    """The results of ``consume`` for all partitions that have rows, in no order.

    ``schema`` is that of the produced batches, in types that Spark has too; ``keys`` are the columns that bring rows
    together. Both functions have to be picklable.
    """
    carried = schema.append(pa.field(_FAILURE, pa.binary()))
    rows = task_frame(spark, produce_all, produce, tasks, world, carried)
    together = rows.repartition(partitions, *keys).sortWithinPartitions(*schema.names)
    code = dump(partial(consume_checked, consume), "task function")
    job = map_in_arrow(together, partial(consume_partition, code), ANSWER)
    return [outcome.unwrap() for outcome in run_answers(spark, job, describe=describe)]
