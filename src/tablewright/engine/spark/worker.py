"""What runs inside a Spark worker around a task function: the world is opened, batches are cast, results are pickled.

All functions here are importable by name. They are sent with their first arguments bound, and get the batches of one
partition (:func:`~tablewright.engine.spark.python.map_in_arrow`).

Tests: tests/spark/test_tasks.py, tests/spark/test_frames.py, tests/spark/test_exchange.py
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from tablewright.data.conform import conform
from tablewright.engine.exchange import Ranked, parts_of, read_rows
from tablewright.engine.groups import add_values
from tablewright.engine.shared import require_shared
from tablewright.engine.spark.marks import Mark
from tablewright.engine.spark.spool import Spool, Spooled
from tablewright.engine.spark.types import to_spark
from tablewright.errors import TablewrightError
from tablewright.storage import open_store
from tablewright.storage.base import Location
from tablewright.storage.requests import requests_made
from tablewright.world import World

__all__ = [
    "PART",
    "FewRows",
    "WorldAddress",
    "add_group_values",
    "answer",
    "answer_all",
    "consume_partition",
    "consume_parts",
    "few_rows",
    "fitted",
    "produce_parts",
    "read_all",
    "write_partition",
]

Batches = Iterator[pa.RecordBatch]

PART = "partition int, rank int, content binary"
_ANSWER_BYTES_MAX = 1 << 20
_FAILED = -1  # the rank of errors

_frozen: set[int] = set()  # ids of processes: a fork inherits those of others


@dataclass(frozen=True, slots=True)
class WorldAddress:
    """What a worker needs to open its world: the table's location, and the mark in the names of its files."""

    location: Location
    mark: Mark

    @classmethod
    def of(cls, world: World, mark: Mark | None = None) -> WorldAddress:
        """The address of a world on the driver; :class:`InvalidRequest` if no other process can reach it."""
        require_shared(world.store.location)
        return cls(world.store.location, mark or Mark())

    def open(self) -> World:
        """The world, on a worker: the only place where a worker opens the store of a table."""
        return World(store=open_store(self.location.uri, self.location.storage_options), ids=self.mark.ids)


# ------------------------------------------------------------------------------------------------------------ answering
def answer(number: int, work: Callable[[], object], spool: Spool | None = None) -> pa.RecordBatch:
    """One row ``(number, ok, requests, bytes)``: the pickled result, or the pickled error if it is one of ours.

    A worker does one task at a time, so the requests of its process are those of the task. A large result goes to the
    spool, if there is one.

    >>> answer(7, list).to_pylist()[0]["ok"]
    True
    """
    before = requests_made()
    try:
        ok, result = True, pickle.dumps(work())
    except TablewrightError as error:
        ok, result = False, pickle.dumps(error)
    if spool is not None and len(result) > _ANSWER_BYTES_MAX:
        result = pickle.dumps(spool.write([result])[0])
    return pa.record_batch(
        {
            "number": pa.array([number], pa.int64()),
            "ok": [ok],
            "requests": pa.array([requests_made() - before], pa.int64()),
            "result": pa.array([result], pa.binary()),
        }
    )


def answer_all(
    code: bytes, address: WorldAddress, carried: Sequence[bytes | Spooled], spool: Spool | None, rows: Batches
) -> Batches:
    """The answers to this partition's tasks."""
    run = pickle.loads(code)
    for number, payload in _payloads(carried, rows):
        yield answer(number, partial(_run_task, run, payload, address), spool)
    _freeze_once()


def _run_task(run: Callable[[Any, World], object], payload: bytes, address: WorldAddress) -> object:
    return run(pickle.loads(payload), address.open())


class FewRows(tuple[pa.RecordBatch, ...]):
    """The rows of a partition, as its answer."""


def write_partition(code: bytes, address: WorldAddress, schema: pa.Schema, few_bytes: int, batches: Batches) -> Batches:
    """Write one partition's rows, whose columns are those of ``schema`` by position; no answer if it has none.

    The answer is the rows themselves if they have at most ``few_bytes``, divided by the partition's number from 1 on.
    """

    def write(rows: Batches) -> object:
        first, rest = few_rows(fitted(rows, schema), few_bytes // (_partition() + 1))
        return FewRows(first) if rest is None else pickle.loads(code)(chain(first, rest), address.open())

    yield from _answer_partition(write, batches)


def fitted(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Batches:
    """Batches in the columns of ``schema``, which are theirs by position."""
    return (conform(batch.rename_columns(schema.names), schema) for batch in batches)


def few_rows(batches: Batches, bytes_max: int) -> tuple[list[pa.RecordBatch], Batches | None]:
    """The first batches, up to one more than ``bytes_max`` allows, and the others; ``None`` if these are all and few.

    >>> few_rows(iter([pa.record_batch({"x": [1]})]), 8)[1] is None
    True
    """
    first: list[pa.RecordBatch] = []
    size = 0
    if not bytes_max:
        return first, batches
    for batch in batches:
        first.append(batch)
        size += batch.nbytes
        if size > bytes_max:
            return first, batches
    return first, None


def consume_partition(code: bytes, batches: Batches) -> Batches:
    """The answer of a function to one partition's rows; none if there are none."""
    yield from _answer_partition(pickle.loads(code), batches)


def _answer_partition(work: Callable[[Batches], object], batches: Batches) -> Batches:
    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    if first is not None:
        yield answer(_partition(), partial(work, chain([first], full)))
    _freeze_once()


def _partition() -> int:
    """The number of the partition that this worker is at."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


# -------------------------------------------------------------------------------------------------------------- reading
def read_all(
    code: bytes, address: WorldAddress, carried: Sequence[bytes | Spooled], safe: pa.Schema, rows: Batches
) -> Batches:
    """The rows of this partition's tasks, in types that Spark takes."""
    run = pickle.loads(code)
    for _, payload in _payloads(carried, rows):
        yield from _cast_all(run(pickle.loads(payload), address.open()), safe)
    _freeze_once()


def _cast_all(batches: Iterable[pa.RecordBatch], safe: pa.Schema) -> Batches:
    return (to_spark(batch, safe) for batch in batches if batch.num_rows)


# ----------------------------------------------------------------------------------------------------------- exchanging
def produce_parts(
    code: bytes,
    address: WorldAddress,
    carried: Sequence[bytes | Spooled],
    keys: Sequence[str],
    partitions: int,
    rows: Batches,
) -> Batches:
    """The rows of this partition's tasks in parts (:data:`PART`). An error of ours is a part that comes first."""
    produce = pickle.loads(code)
    for _, payload in _payloads(carried, rows):
        try:
            for part in parts_of(produce(pickle.loads(payload), address.open()), keys, partitions):
                yield _part(part.partition, part.rank, part.rows.serialize().to_pybytes())
        except TablewrightError as error:
            yield _part(0, _FAILED, pickle.dumps(error))
    _freeze_once()


def _part(partition: int, rank: int, content: bytes) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "partition": pa.array([partition], pa.int32()),
            "rank": pa.array([rank], pa.int32()),
            "content": pa.array([content], pa.binary()),
        }
    )


def consume_parts(code: bytes, schema: pa.Schema, batches: Batches) -> Batches:
    """The answer of a function to the parts of one partition, which come by rank; raises the error that one brings."""
    consume = pickle.loads(code)
    yield from _answer_partition(lambda rows: consume(_ranked(rows, schema)), batches)


def _ranked(batches: Batches, schema: pa.Schema) -> Iterator[Ranked]:
    for batch in batches:
        for rank, content in zip(batch.column("rank").to_pylist(), batch.column("content"), strict=True):
            if rank == _FAILED:
                raise pickle.loads(content.as_py())
            # A copy: what is inside a batch begins at any address, and numbers have to begin at one of their own size.
            yield rank, read_rows(content.as_py(), schema)


# ------------------------------------------------------------------------------------------------------------- grouping
def add_group_values(code: bytes, name: str, first: int, batches: Batches) -> Batches:
    """The rows, with the columns from ``first`` on and the values of their groups under ``name``."""
    yield from add_values(pickle.loads(code), batches, name, first=first)
    _freeze_once()


# --------------------------------------------------------------------------------------------------------------- common
def _payloads(carried: Sequence[bytes | Spooled], rows: Batches) -> Iterator[tuple[int, bytes]]:
    """Number and payload of each task: the payload is the second column, or among those that the function carried."""
    for batch in rows:
        numbers = batch.column(0).to_pylist()
        payloads = batch.column(1).to_pylist() if batch.num_columns > 1 else [carried[number] for number in numbers]
        for number, payload in zip(numbers, payloads, strict=True):
            yield number, payload.read() if isinstance(payload, Spooled) else payload


def _freeze_once() -> None:
    """Take what is alive now out of garbage collection, once per worker process.

    Spark's daemon collects garbage after every task, which costs more than a small task. Freezing again and again
    would pin garbage, so it happens once. ``gc.get_freeze_count`` would tell, but walks all that is frozen: 13 ms.
    """
    if os.getpid() not in _frozen:
        _frozen.add(os.getpid())
        gc.collect()
        gc.freeze()
