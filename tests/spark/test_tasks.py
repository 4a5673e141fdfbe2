"""engine/spark/tasks.py and jobs.py: the Spark engine does what the local one does."""

from __future__ import annotations

import operator
import os
import threading
from functools import partial
from typing import Any

import pytest

from tablewright.engine.base import Engine
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark import jobs, tasks
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.jobs import run_job
from tablewright.engine.spark.tasks import CARRIED_BYTES_MAX, run_tasks
from tablewright.errors import CommitConflict, InternalError, InvalidRequest


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "local":
        return LocalEngine()
    return SparkEngine(request.getfixturevalue("spark"))


def test_both_are_engines(engine: Engine) -> None:
    assert isinstance(engine, Engine)


@pytest.mark.parametrize("count", [0, 1, 2, 33])
def test_results_come_in_the_order_of_tasks(engine: Engine, count: int) -> None:
    letters = [(number, "x" * number) for number in range(count)]
    assert engine.map(operator.itemgetter(0), letters) == list(range(count))
    assert list(engine.stream(operator.itemgetter(1), letters)) == ["x" * number for number in range(count)]


def test_our_errors_keep_type_and_facts(engine: Engine) -> None:
    def fail(number: int) -> int:
        from tablewright.errors import CommitConflict

        if number:
            raise CommitConflict("Delete", "Update", 6, fragments=(1, number))
        return number

    with pytest.raises(CommitConflict) as caught:
        engine.map(fail, [0, 2])
    assert caught.value.fragments == (1, 2)
    assert str(caught.value) == str(CommitConflict("Delete", "Update", 6, fragments=(1, 2)))


def test_other_errors_keep_the_worker_traceback(spark: Any) -> None:
    def divide(number: int) -> float:
        return 1 / number

    with pytest.raises(InternalError) as caught:
        run_tasks(spark, divide, [1, 0], describe="Dividing")
    message = str(caught.value)
    assert message.startswith("Dividing failed on a Spark worker:\nTraceback")
    assert "in divide" in message
    assert "ZeroDivisionError: division by zero" in message
    assert "\tat org.apache" not in message


def test_what_cannot_travel_is_refused_before_spark_is_asked(spark: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"A task can't be sent to a Spark worker.*lock"):
        run_tasks(spark, len, [threading.Lock()])
    with pytest.raises(InvalidRequest, match="A task function can't be sent"):
        run_tasks(spark, partial(operator.contains, threading.Lock()), [1])


def test_large_letters_travel_alone(spark: Any) -> None:
    letters = [bytes([number]) * (CARRIED_BYTES_MAX // 4) for number in range(9)]
    answers = run_tasks(spark, lambda letter: (letter[0], len(letter)), letters)
    assert answers == [(number, CARRIED_BYTES_MAX // 4) for number in range(9)]


def test_very_many_large_letters_travel_in_several_jobs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "JOB_BYTES_MAX", 2500)
    letters = [bytes([number]) * 1000 for number in range(5)]
    assert run_tasks(spark, operator.itemgetter(0), letters) == [0, 1, 2, 3, 4]

    def fail_at_the_end(letter: bytes) -> int:
        from tablewright.errors import InvalidRequest

        if letter[0] == 4:
            raise InvalidRequest("no")
        return letter[0]

    discarded: list[int] = []
    with pytest.raises(InvalidRequest, match="no"):
        run_tasks(spark, fail_at_the_end, letters, discard=discarded.extend)
    assert sorted(discarded) == [0, 1, 2, 3]


def test_tasks_run_in_other_processes(spark: Any) -> None:
    assert os.getpid() not in set(run_tasks(spark, lambda _: os.getpid(), range(4)))


def test_the_heap_of_a_worker_is_frozen_once(spark: Any) -> None:
    def frozen(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    run_tasks(spark, frozen, range(8))
    first = {count for count in run_tasks(spark, frozen, range(8)) if count}
    assert first, "no worker was reused or frozen"


def test_a_job_inherits_the_callers_properties(spark: Any) -> None:
    context = spark.sparkContext
    context.setLocalProperty("tablewright.test", "mine")
    try:
        seen = run_job(spark, lambda: (context.getLocalProperty("tablewright.test"), context.getJobTags()))
    finally:
        context.setLocalProperty("tablewright.test", None)
    assert seen[0] == "mine"
    assert [tag for tag in seen[1] if tag.startswith("tablewright-")]
    assert not context.getJobTags()


def test_progress_is_asked_from_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int | None]] = []
    update = jobs.Progress.update

    def note(self: Any, done: int, total: int | None = None) -> None:
        seen.append((done, total))
        update(self, done, total)

    def sleep(number: int) -> int:
        import time

        time.sleep(0.3)
        return number

    monkeypatch.setattr(jobs.Progress, "update", note)
    monkeypatch.setattr(jobs.Progress, "_appear", lambda self: None)
    run_tasks(spark, sleep, range(6), show=True)
    assert {total for _, total in seen} <= {None, 6}
    assert any(0 < done < 6 and total == 6 for done, total in seen), seen


def test_an_interrupt_cancels_the_job_and_only_it(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(number: int) -> int:
        import time

        time.sleep(20)
        return number

    waited = []

    def interrupted(self: Any) -> bool:
        self._thread.join(0.2)
        waited.append(1)
        if len(waited) > 10:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(jobs._Job, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(spark, sleep, range(2))
    monkeypatch.undo()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert run_tasks(spark, abs, [-1]) == [1]
