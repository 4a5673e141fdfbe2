"""Rows of many tasks, brought together by key: Spark moves, sorts and spills them, so no side has to fit into memory.

1. Every task *produces* rows in a worker, as :func:`~tablewright.engine.spark.frames.read_frame` reads a table.
2. Spark sends the rows with equal keys to one partition, and sorts each partition by all columns.
3. Every partition's rows are *consumed* in a worker, as a stream; what that returns comes home.

An error of ours on the way in travels with the rows, so that it comes home with its type.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.engine.spark.frames import read_frame
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.tasks import ANSWER, answers, dump
from tablewright.errors import TablewrightError

__all__ = ["exchange"]

T = TypeVar("T")
R = TypeVar("R")

_FAILURE = "failure"


def exchange(
    spark: Any,
    produce: Callable[[T], Iterable[pa.RecordBatch]],
    tasks: Sequence[T],
    consume: Callable[[Iterator[pa.RecordBatch]], R],
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
    if not tasks:
        return []
    carried = schema.append(pa.field(_FAILURE, pa.binary()))
    rows = read_frame(spark, _Guarded(produce, carried), tasks, carried)
    together = rows.repartition(partitions, *keys).sortWithinPartitions(*schema.names)
    job = map_in_arrow(together, _consume_body(dump(_Checked(consume), "task function")), ANSWER)
    return [pickle.loads(result) for _, _, result in answers(spark, job, describe=describe)]


class _Guarded:
    """A producer whose errors become a row."""

    def __init__(self, produce: Callable[[Any], Iterable[pa.RecordBatch]], schema: pa.Schema) -> None:
        self._produce, self._schema = produce, schema

    def __call__(self, task: Any) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._produce(task):
                arrays = [*batch.columns, pa.nulls(batch.num_rows, pa.binary())]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except TablewrightError as error:
            nothing = [pa.nulls(1, field.type) for field in self._schema]
            yield pa.RecordBatch.from_arrays([*nothing[:-1], pa.array([pickle.dumps(error)])], schema=self._schema)


class _Checked:
    """A consumer that raises what went wrong on the way in."""

    def __init__(self, consume: Callable[[Iterator[pa.RecordBatch]], Any]) -> None:
        self._consume = consume

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Any:
        return self._consume(map(self._checked, batches))

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        failures = batch.column(batch.num_columns - 1)
        if failures.null_count < len(failures):
            raise pickle.loads(failures.drop_null()[0].as_py())
        return batch


def _consume_body(code: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.spark.worker import consume_partition

        yield from consume_partition(code, batches)

    return body
