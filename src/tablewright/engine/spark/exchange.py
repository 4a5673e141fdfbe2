"""Rows of many tasks, brought together by key, in parts: whoever moves them never looks at a row.

1. Every task *produces* rows in a worker, and cuts them into parts, one for each partition
   (:mod:`tablewright.engine.exchange`).
2. Where the workers are on this machine, a task writes its parts to a file (:mod:`.spool`). Elsewhere a part is a cell
   of bytes to Spark, which sends it to its partition, sorts each partition's cells by rank, and spills them.
3. Every partition's parts are *consumed* in a worker, as a stream; what that returns comes back to the driver.

An error of ours while rows are produced travels with them, so that it is raised with its type. Requests that are made
while Spark's cells are produced are not counted: only step 3 answers.

Tests: tests/spark/test_exchange.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from tablewright.engine.base import Outcome
from tablewright.engine.exchange import Ranked, parts_of, read_rows
from tablewright.engine.spark.answers import ANSWER, run_answers
from tablewright.engine.spark.payload import distribute, dump
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.spool import Spool, Spooled, opened_spool
from tablewright.engine.spark.tasks import run_tasks
from tablewright.engine.spark.versions import repartition_by_id
from tablewright.engine.spark.worker import PART, WorldAddress, consume_parts, produce_parts
from tablewright.world import World

__all__ = ["exchange"]

T = TypeVar("T")
R = TypeVar("R")

Produce = Callable[[T, World], Iterable[Ranked]]
Consume = Callable[[Iterator[Ranked]], R]
Places: TypeAlias = list[tuple[int, Spooled]]
"""The parts of one partition, by rank."""

_BUNDLE_BYTES = 16 << 20


def exchange(
    spark: Any,
    produce: Produce[T],
    tasks: Sequence[T],
    consume: Consume[R],
    world: World,
    *,
    schema: pa.Schema,
    keys: Sequence[str],
    partitions: int,
    describe: str = "",
) -> list[R]:
    """The results of ``consume`` for all partitions that have rows, in no order.

    ``schema`` is that of the produced batches; ``keys`` are the columns that bring rows together. Both functions have
    to be picklable.
    """
    with opened_spool(spark) as spool:
        if spool is not None:
            cut = partial(_spooled_parts, produce, tuple(keys), partitions, spool)
            parts = [outcome.unwrap() for outcome in run_tasks(spark, cut, tasks, world, describe=describe)]
            bundles = list(_bundles(_by_partition(chain.from_iterable(parts))))
            join = partial(_consumed, consume, schema)
            found = run_tasks(spark, join, bundles, world, describe=describe)
            return [result for outcome in found for result in outcome.unwrap()]
    return [
        outcome.unwrap()
        for outcome in _shuffled(spark, produce, tasks, consume, world, schema, keys, partitions, describe)
    ]


# -------------------------------------------------------------------------------------------------------- by the spool
def _spooled_parts(
    produce: Produce[T], keys: Sequence[str], partitions: int, spool: Spool, task: T, world: World
) -> list[tuple[int, int, Spooled]]:
    """The parts of a task, written to one file: partition, rank, and where each is."""
    names: list[tuple[int, int]] = []

    def contents() -> Iterator[memoryview]:
        for part in parts_of(produce(task, world), keys, partitions):
            names.append((part.partition, part.rank))
            yield memoryview(part.rows.serialize())

    places = spool.write(contents())
    return [(*name, place) for name, place in zip(names, places, strict=True)]


def _by_partition(parts: Iterable[tuple[int, int, Spooled]]) -> list[Places]:
    found: dict[int, Places] = {}
    for partition, rank, place in sorted(parts, key=lambda part: part[1]):
        found.setdefault(partition, []).append((rank, place))
    return list(found.values())


def _bundles(partitions: Iterable[Places]) -> Iterator[list[Places]]:
    """Partitions that one task consumes, one after the other: a small partition stays in the processor's cache, and a
    task costs 10 to 30 ms."""
    bundle, size = list[Places](), 0
    for places in partitions:
        bundle.append(places)
        size += sum(place.end - place.begin for _, place in places)
        if size >= _BUNDLE_BYTES:
            yield bundle
            bundle, size = [], 0
    if bundle:
        yield bundle


def _consumed(consume: Consume[R], schema: pa.Schema, bundle: Sequence[Places], world: World) -> list[R]:
    return [consume(_read(places, schema)) for places in bundle]


def _read(places: Places, schema: pa.Schema) -> Iterator[Ranked]:
    return ((rank, read_rows(place.mapped(), schema)) for rank, place in places)


# ------------------------------------------------------------------------------------------------------------ by Spark
def _shuffled(
    spark: Any,
    produce: Produce[T],
    tasks: Sequence[T],
    consume: Consume[R],
    world: World,
    schema: pa.Schema,
    keys: Sequence[str],
    partitions: int,
    describe: str,
) -> list[Outcome[R]]:
    numbers, carried = distribute(spark, [dump(task, "task") for task in tasks])
    code, address = dump(produce, "task function"), WorldAddress.of(world)
    parts = map_in_arrow(numbers, partial(produce_parts, code, address, carried, tuple(keys), partitions), PART)
    together = repartition_by_id(parts, partitions, "partition").sortWithinPartitions("rank")
    job = map_in_arrow(together, partial(consume_parts, dump(consume, "task function"), schema), ANSWER)
    return run_answers(spark, job, describe=describe)
