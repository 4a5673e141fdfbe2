"""What runs inside a Spark worker around the work itself: batches are cast, results and errors of ours become bytes."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from tablewright.engine.spark.types import cast_batch
from tablewright.errors import TablewrightError

__all__ = ["answer", "answer_all", "consume_partition", "freeze_once", "read_all", "write_partition"]

T = TypeVar("T")


def answer(number: int, function: Callable[[T], object], task: T) -> pa.RecordBatch:
    """One row ``(number, ok, bytes)``: the pickled result, or the pickled error if it is one of ours.

    >>> answer(7, len, "abc").to_pylist()[0]["ok"]
    True
    """
    try:
        ok, result = True, pickle.dumps(function(task))
    except TablewrightError as error:
        ok, result = False, pickle.dumps(error)
    return pa.record_batch(
        {"number": pa.array([number], pa.int64()), "ok": [ok], "result": pa.array([result], pa.binary())}
    )


def answer_all(code: bytes, carried: Sequence[bytes], posted: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers to this partition's letters."""
    function = pickle.loads(code)
    for number, letter in _opened(carried, posted):
        yield answer(number, function, pickle.loads(letter))
    freeze_once()


def write_partition(code: bytes, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write one partition's rows, whose columns are those of ``schema`` by position; no answer if it has none."""

    def fitted(batch: pa.RecordBatch) -> pa.RecordBatch:
        return cast_batch(batch.rename_columns(schema.names), schema, exact=True)

    yield from consume_partition(code, batches, fitted)


def consume_partition(
    code: bytes,
    batches: Iterator[pa.RecordBatch],
    prepare: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> Iterator[pa.RecordBatch]:
    """What a function answers to one partition's rows, each batch prepared for it; no answer if there are none."""
    from pyspark import TaskContext

    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    if first is not None:
        context = TaskContext.get()
        rows = map(prepare, _chained(first, full))
        yield answer(context.partitionId() if context else 0, pickle.loads(code), rows)
    freeze_once()


def read_all(
    code: bytes, carried: Sequence[bytes], safe: pa.Schema, posted: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of this partition's scan tasks, as Spark takes them."""
    function = pickle.loads(code)
    for _, letter in _opened(carried, posted):
        for batch in function(pickle.loads(letter)):
            if batch.num_rows:
                yield cast_batch(batch, safe, exact=False)
    freeze_once()


def freeze_once() -> None:
    """Take what is alive now out of garbage collection, once per worker process.

    Spark's daemon collects garbage after every task, which costs more than a small task. Freezing again and again
    would pin garbage, so it happens once.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def _opened(carried: Sequence[bytes], posted: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Number and letter of each row: the letter is its second column, or among those that the function carried."""
    for batch in posted:
        numbers = batch.column(0).to_pylist()
        letters = batch.column(1).to_pylist() if batch.num_columns > 1 else [carried[number] for number in numbers]
        yield from zip(numbers, letters, strict=True)


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
