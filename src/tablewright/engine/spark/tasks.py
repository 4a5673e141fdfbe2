"""Tasks on Spark: one function over many tasks, each in a Spark task of its own. Classic and Connect alike.

1. ``spark.range(0, n, 1, n)`` makes *n* partitions of one number each; ``mapInArrow`` turns a number into the answer to
   the task with that number (:mod:`.payload`, :mod:`.worker`, :mod:`.answers`).
2. The worker opens the world at the table's location. Ids that it gives to files carry the mark of the job: if the job
   fails, and no result came back that names its files, they are found by the mark and removed (:mod:`.marks`).
3. After its first task a reused worker freezes its heap once: the daemon collects garbage after every task, which costs
   more than a small task itself.

Tests: tests/spark/test_tasks.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from tablewright.engine.base import Outcome
from tablewright.engine.spark.answers import ANSWER, run_answers
from tablewright.engine.spark.marks import marked_files
from tablewright.engine.spark.payload import distribute, dump, per_job
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.spool import opened_spool
from tablewright.engine.spark.worker import WorldAddress, answer_all
from tablewright.errors import InternalError
from tablewright.world import World

__all__ = ["run_tasks"]

T = TypeVar("T")
R = TypeVar("R")


def run_tasks(
    spark: Any,
    run: Callable[[T, World], R],
    tasks: Sequence[T],
    world: World,
    *,
    describe: str = "",
    show: bool | None = None,
    keep: Callable[[R], None] | None = None,
) -> Iterator[Outcome[R]]:
    """The outcomes of ``run(task, world)`` on the workers of ``spark``, in the order of the tasks.

    Large tasks need several jobs; a job begins when the first of its outcomes is asked for. ``keep`` has got all
    results of a job before its first outcome comes.
    """
    code = dump(run, "task function")
    for payloads in per_job(dump(task, "task") for task in tasks):
        outcomes = _run_job(spark, code, payloads, world, describe, show)
        if keep is not None:
            for outcome in outcomes:
                if outcome.error is None:
                    keep(outcome.unwrap())
        yield from outcomes


def _run_job(
    spark: Any, code: bytes, payloads: Sequence[bytes], world: World, describe: str, show: bool | None
) -> list[Outcome[Any]]:
    with marked_files(world) as mark, opened_spool(spark) as spool:
        frame, carried = distribute(spark, payloads, spool)
        body = partial(answer_all, code, WorldAddress.of(world, mark), carried, spool)
        outcomes = run_answers(spark, map_in_arrow(frame, body, ANSWER), describe=describe, show=show)
        if len(outcomes) != len(payloads):
            raise InternalError(f"{describe or 'Spark job'}: {len(payloads)} tasks gave {len(outcomes)} answers.")
    if all(outcome.error is not None for outcome in outcomes):
        mark.discard(world)  # tasks remove their own files when they fail; an attempt that Spark gave up may not have
    return outcomes
