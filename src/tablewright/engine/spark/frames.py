"""Spark DataFrames in and out of a table: executors write data files, and tasks read them. Rows never pass the driver.

Writing: every partition casts its batches to the table's schema, hands them to the write function and answers with what
that returned (the fragments it wrote). A partition may be written twice, when Spark repeats a task; only answers count.
If it fails, all files of the job are removed by their mark: Spark does not say what the other partitions, or earlier
attempts, have written. If the DataFrame itself can't be computed, the caller has to correct it.

Gathering: the same job, but a partition with few rows answers with the rows themselves. So a small DataFrame costs one
job and is computed once, whatever it is made of, and none of its partitions becomes a file of its own. The limit of a
partition is the whole limit divided by its number, counted from 1: *n* equal partitions come back up to about the whole
limit, and any others up to *ln n* times that. Rows that the driver's JVM holds already (a small Arrow table or
pandas DataFrame that was made a DataFrame) are collected without a Python worker.

Reading: a DataFrame with one partition per task; each runs the read function in the worker and casts its batches to the
Spark-safe schema. Only the columns of the projection ever leave the worker.

Tests: tests/spark/test_frames.py, tests/spark/test_failed_writes.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.base import COLLECTED_BYTES, Gathered, Outcome
from tablewright.engine.detect import is_connect
from tablewright.engine.shared import require_shared
from tablewright.engine.spark.answers import ANSWER, collect_table, run_answers
from tablewright.engine.spark.marks import marked_files
from tablewright.engine.spark.payload import distribute, dump
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.types import spark_schema, struct_type
from tablewright.engine.spark.worker import FewRows, WorldAddress, fitted, read_all, write_partition
from tablewright.errors import InternalError, InvalidRequest
from tablewright.world import World

__all__ = ["gather_frame", "read_frame"]

T = TypeVar("T")
R = TypeVar("R")


def gather_frame(
    frame: Any,
    run: Callable[[Iterator[pa.RecordBatch], World], R],
    world: World,
    schema: pa.Schema,
    *,
    describe: str = "Writing",
    bytes_max: int = COLLECTED_BYTES,
) -> Gathered[R]:
    """The rows of ``frame`` in ``schema`` if they are few; otherwise executors write it.

    They call ``run(batches of schema, world)`` per partition that has rows; results come in the order of the
    partitions. ``run`` has to be picklable. A DataFrame that Spark can't compute is :class:`InvalidRequest`.
    """
    require_shared(world.store.location)
    columns = _by_position(frame, schema)
    if bytes_max and _is_on_driver(columns, bytes_max):
        table = _computed(lambda: collect_table(frame.sparkSession, columns, describe=describe))
        return Gathered(rows=pa.Table.from_batches(fitted(table.to_batches(), schema), schema))
    with marked_files(world) as mark:
        address = WorldAddress.of(world, mark)
        outcomes = _outcomes(frame, columns, run, address, schema, bytes_max, describe)
        parts = [outcome.unwrap() for outcome in outcomes]
        if all(isinstance(part, FewRows) for part in parts):
            return Gathered(rows=pa.Table.from_batches(chain.from_iterable(parts), schema))
        return Gathered(results=tuple(_without_rows(parts, run, replace(world, ids=mark.ids))))


def _without_rows(
    parts: Iterable[Any], run: Callable[[Iterator[pa.RecordBatch], World], R], world: World
) -> Iterator[R]:
    """Results in order: rows of partitions that follow each other make one more."""
    for are_rows, some in groupby(parts, lambda part: isinstance(part, FewRows)):
        if are_rows:
            yield run(chain.from_iterable(some), world)
        else:
            yield from some


def _by_position(frame: Any, schema: pa.Schema) -> Any:
    """The columns of ``schema``, named by their position.

    mapInArrow parses column names as expressions, so names like "a.b" have to stay out of it.
    """
    return frame.select(*map(_quoted, schema.names)).toDF(*(f"c{index}" for index in range(len(schema))))


def _outcomes(
    frame: Any, columns: Any, run: Any, address: WorldAddress, schema: pa.Schema, few_bytes: int, describe: str
) -> list[Outcome[Any]]:
    code = dump(run, "write task")
    job = map_in_arrow(columns, partial(write_partition, code, address, schema, few_bytes), ANSWER)
    return _computed(lambda: run_answers(frame.sparkSession, job, describe=describe))


def _computed(action: Callable[[], T]) -> T:
    try:
        return action()
    except InternalError as error:
        if _is_of_the_frame(error):
            raise InvalidRequest(f"The DataFrame can't be computed. {error}") from error.__cause__
        raise


def read_frame(
    spark: Any,
    run: Callable[[T, World], Iterable[pa.RecordBatch]],
    tasks: Sequence[T],
    world: World,
    schema: pa.Schema,
) -> Any:
    """A DataFrame of all that ``run`` yields for ``tasks``, one partition each.

    ``schema`` is that of the batches; the DataFrame has its Spark-safe form. Nothing is read before Spark asks.
    """
    return _task_frame(spark, read_all, run, tasks, world, schema)


def _task_frame(
    spark: Any,
    body: Callable[..., Iterator[pa.RecordBatch]],
    run: Callable[[T, World], Iterable[pa.RecordBatch]],
    tasks: Sequence[T],
    world: World,
    schema: pa.Schema,
) -> Any:
    """The DataFrame that ``body``, a function of :mod:`.worker`, makes of ``run`` and the tasks."""
    address, safe = WorldAddress.of(world), spark_schema(schema)
    numbers, carried = distribute(spark, [dump(task, "task") for task in tasks])
    return map_in_arrow(numbers, partial(body, dump(run, "read task"), address, carried, safe), struct_type(safe))


def _is_of_the_frame(error: InternalError) -> bool:
    """Whether Spark failed in a part of the job that is not ours: a division by zero, the caller's Python, a lost file.

    Then Spark has a name for it, and nothing of ours is in the worker's traceback.
    """
    from pyspark.errors import PySparkException

    cause = error.__cause__
    return isinstance(cause, PySparkException) and cause.getCondition() is not None and "tablewright" not in str(error)


def _is_on_driver(frame: Any, bytes_max: int) -> bool:
    """Whether the rows of a DataFrame are in the driver's JVM, and few: its plan is nothing but those rows."""
    if is_connect(frame):
        return False
    query = frame._jdf.queryExecution()
    if query.analyzed().collectLeaves().head().nodeName() != "LocalRelation":
        return False  # the plan need not be optimized to know that
    plan = query.optimizedPlan()
    return bool(plan.nodeName() == "LocalRelation") and int(plan.stats().sizeInBytes()) <= bytes_max


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
