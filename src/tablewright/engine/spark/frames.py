"""Spark DataFrames in and out of a table: executors write data files, and tasks read them. Rows never pass the driver.

Writing: every partition casts its batches to the table's schema, hands them to ``write_task`` and answers with what
that returned (the fragments it wrote), pickled. A partition may be written twice, when Spark repeats a task; only
answers count. If a partition fails with an error of ours, the others' answers come home too, so ``discard`` can remove
what they wrote. If the DataFrame itself can't be computed, that is the caller's to mend.

Reading: a DataFrame with one partition per scan task; each runs ``read_task`` in the worker and casts its batches to
the Spark-safe schema. Only the columns of the projection ever leave the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.tasks import ANSWER, answers, dump, post
from tablewright.engine.spark.types import spark_schema, struct_type
from tablewright.errors import InternalError, InvalidRequest

__all__ = ["read_frame", "write_frame"]

T = TypeVar("T")
R = TypeVar("R")


def write_frame(
    frame: Any,
    write_task: Callable[[Iterator[pa.RecordBatch]], R],
    schema: pa.Schema,
    *,
    describe: str = "Writing",
    discard: Callable[[list[R]], None] | None = None,
) -> list[R]:
    """Let executors write ``frame``: ``write_task(batches of schema)`` per partition that has rows.

    Returns the results in the order of the partitions. ``write_task`` has to be picklable. A DataFrame that Spark can't
    compute is :class:`InvalidRequest`.
    """
    code = dump(write_task, "write task")
    # mapInArrow parses column names as expressions, so names like "a.b" have to stay out of it: columns go by position.
    columns = frame.select(*map(_quoted, schema.names)).toDF(*(f"c{index}" for index in range(len(schema))))
    job = map_in_arrow(columns, _write_body(code, schema), ANSWER)
    try:
        rows = answers(frame.sparkSession, job, describe=describe, on_error=_discarder(discard))
    except InternalError as error:
        if _is_of_the_frame(error):
            raise InvalidRequest(f"The DataFrame can't be computed. {error}") from error.__cause__
        raise
    return [pickle.loads(result) for _, _, result in rows]


def read_frame(
    spark: Any, read_task: Callable[[T], Iterable[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema
) -> Any:
    """A DataFrame of all that ``read_task`` yields for ``tasks``, one partition each.

    ``schema`` is that of the batches; the DataFrame has its Spark-safe form. Nothing is read before Spark asks.
    """
    safe = spark_schema(schema)
    posted, carried = post(spark, [dump(task, "scan task") for task in tasks])
    return map_in_arrow(posted, _read_body(dump(read_task, "read task"), carried, safe), struct_type(safe))


def _write_body(code: bytes, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.spark.worker import write_partition

        yield from write_partition(code, schema, batches)

    return body


def _read_body(
    code: bytes, carried: Sequence[bytes], safe: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(posted: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.spark.worker import read_all

        yield from read_all(code, carried, safe, posted)

    return body


def _is_of_the_frame(error: InternalError) -> bool:
    """Whether Spark failed in a part of the job that is not ours: a division by zero, the caller's Python, a lost file.

    Then Spark has a name for it, and nothing of ours is in what the worker said.
    """
    from pyspark.errors import PySparkException

    cause = error.__cause__
    return isinstance(cause, PySparkException) and cause.getCondition() is not None and "tablewright" not in str(error)


def _discarder(discard: Callable[[list[R]], None] | None) -> Callable[[list[bytes]], None]:
    def on_error(results: list[bytes]) -> None:
        if discard is not None:
            discard([pickle.loads(result) for result in results])

    return on_error


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
