"""engine/spark/tasks.py and jobs.py: the Spark engine does what the local one does."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tablewright.engine.base import Engine
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark import jobs, payload
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.jobs import run_job
from tablewright.engine.spark.payload import CARRIED_BYTES_MAX
from tablewright.engine.spark.tasks import run_tasks
from tablewright.errors import CommitConflict, InternalError, InvalidRequest
from tablewright.storage import open_store
from tablewright.storage.requests import requests_made
from tablewright.world import World


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "local":
        return LocalEngine()
    return SparkEngine(request.getfixturevalue("spark"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world that workers reach."""
    return World(open_store(tmp_path))


def alone(function: Callable[[Any], Any]) -> Callable[[Any, World], Any]:
    """A task function that does not look at the world."""
    return lambda task, world: function(task)


def results(spark: Any, function: Callable[[Any], Any], tasks: Sequence[Any], world: World, **options: Any) -> Any:
    return [outcome.unwrap() for outcome in run_tasks(spark, alone(function), tasks, world, **options)]


def test_both_are_engines(engine: Engine) -> None:
    assert isinstance(engine, Engine)
    assert engine.in_process == (engine.name == "local")


@pytest.mark.parametrize("count", [0, 1, 2, 33])
def test_results_come_in_the_order_of_tasks(engine: Engine, world: World, count: int) -> None:
    tasks = [(number, "x" * number) for number in range(count)]
    assert engine.map(alone(operator.itemgetter(0)), tasks, world) == list(range(count))
    outcomes = engine.outcomes(alone(operator.itemgetter(1)), tasks, world)
    assert [outcome.unwrap() for outcome in outcomes] == ["x" * number for number in range(count)]


def fail(number: int, world: World) -> int:
    from tablewright.errors import CommitConflict

    if number % 2:
        raise CommitConflict("Delete", "Update", 6, fragments=(1, number))
    return number


def by_value(function: Any) -> Any:
    """A function of a test module travels by value: workers can't import tests."""
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


def test_our_errors_keep_type_and_facts(engine: Engine, world: World) -> None:
    kept: list[int] = []
    with pytest.raises(CommitConflict) as caught:
        engine.map(by_value(fail), [0, 3], world, keep=kept.append)
    assert caught.value.fragments == (1, 3)
    assert str(caught.value) == str(CommitConflict("Delete", "Update", 6, fragments=(1, 3)))
    assert kept == [0], "what succeeded is known before the error is raised"


def test_outcomes_are_one_per_task(engine: Engine, world: World) -> None:
    kept: list[int] = []
    outcomes = engine.outcomes(by_value(fail), range(5), world, keep=kept.append)
    assert sorted(kept) == [0, 2, 4]
    assert [outcome.result for outcome in outcomes] == [0, None, 2, None, 4]
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert [getattr(error, "fragments", None) for error in errors] == [(1, 1), (1, 3)]
    assert [type(error) for error in errors] == [CommitConflict] * 2


def test_a_world_is_opened_where_the_task_runs(engine: Engine, world: World) -> None:
    """At the location of the caller's; the requests of tasks are counted in this process."""

    def copy(name: str, world: World) -> str:
        world.store.put(f"{name}-copy", world.store.get(name))
        return world.store.location.uri

    for name in ("a", "b"):
        world.store.put(name, name.encode())
    before = requests_made()
    assert engine.map(copy, ["a", "b"], world) == [world.store.location.uri] * 2
    assert requests_made() - before == 4
    assert [world.store.get(f"{name}-copy") for name in ("a", "b")] == [b"a", b"b"]
    before = requests_made()
    (outcome,) = engine.outcomes(copy, ["missing"], world)
    assert outcome.error is not None
    assert requests_made() - before == 1, "also those of tasks that fail"


def test_files_of_a_job_that_fails_are_removed(spark: Any, world: World) -> None:
    """No results come home, also not those of tasks that succeeded: their files are found by the mark of the job."""

    def write(number: int, world: World) -> str:
        from tablewright.format.naming import data_path, new_data_file_name

        path = data_path(new_data_file_name(world.ids.uuid()))
        world.store.put(path, b"rows")
        if number == 3:
            raise ValueError("not one of ours")
        return path

    world.store.put("data/other.lance", b"rows")
    kept: list[str] = []
    for run in (SparkEngine(spark).map, SparkEngine(spark).outcomes):
        with pytest.raises(InternalError, match="not one of ours"):
            run(write, range(4), world, keep=kept.append)
        assert [entry.path for entry in world.store.list("data/")] == ["data/other.lance"]
    assert kept == []
    assert len(SparkEngine(spark).map(write, range(3), world)) == 3
    assert len(list(world.store.list("data/"))) == 4


def test_other_errors_keep_the_worker_traceback(spark: Any, world: World) -> None:
    def divide(number: int, world: World) -> float:
        return 1 / number

    with pytest.raises(InternalError) as caught:
        SparkEngine(spark).map(divide, [1, 0], world, describe="Dividing")
    message = str(caught.value)
    assert message.startswith("Dividing failed on a Spark worker:\nTraceback")
    assert "in divide" in message
    assert "ZeroDivisionError: division by zero" in message
    assert "\tat org.apache" not in message


def test_what_cannot_travel_is_refused_before_spark_is_asked(spark: Any, world: World) -> None:
    with pytest.raises(InvalidRequest, match=r"A task can't be sent to a Spark worker.*lock"):
        results(spark, len, [threading.Lock()], world)
    with pytest.raises(InvalidRequest, match="A task function can't be sent"):
        results(spark, partial(operator.contains, threading.Lock()), [1], world)  # type: ignore[arg-type]


def test_large_tasks_travel_alone(spark: Any, world: World) -> None:
    tasks = [bytes([number]) * (CARRIED_BYTES_MAX // 4) for number in range(9)]
    answers = results(spark, lambda task: (task[0], len(task)), tasks, world)
    assert answers == [(number, CARRIED_BYTES_MAX // 4) for number in range(9)]


def test_very_many_large_tasks_travel_in_several_jobs(
    spark: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload, "JOB_BYTES_MAX", 2500)
    tasks = [bytes([number]) * 1000 for number in range(7)]
    assert results(spark, operator.itemgetter(0), tasks, world) == [0, 1, 2, 3, 4, 5, 6]

    def fail_at_three(task: bytes, world: World) -> int:
        from tablewright.errors import InvalidRequest

        if task[0] == 3:
            raise InvalidRequest("no")
        return task[0]

    engine, kept = SparkEngine(spark), list[int]()
    with pytest.raises(InvalidRequest, match="no"):
        engine.map(fail_at_three, tasks, world, keep=kept.append)
    assert sorted(kept) == [0, 1, 2], "no more jobs begin after an error"
    assert [outcome.result for outcome in engine.outcomes(fail_at_three, tasks, world)] == [0, 1, 2, None, 4, 5, 6]


def test_tasks_run_in_other_processes(spark: Any, world: World) -> None:
    assert os.getpid() not in set(results(spark, lambda _: os.getpid(), range(4), world))


def test_the_heap_of_a_worker_is_frozen_once(spark: Any, world: World) -> None:
    def frozen(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    results(spark, frozen, range(8), world)
    first = {count for count in results(spark, frozen, range(8), world) if count}
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


def test_progress_is_asked_from_spark(spark: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
    results(spark, sleep, range(6), world, show=True)
    assert {total for _, total in seen} <= {None, 6}
    assert any(0 < done < 6 and total == 6 for done, total in seen), seen


def test_an_interrupt_cancels_the_job_and_only_it(spark: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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
        results(spark, sleep, range(2), world)
    monkeypatch.undo()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert results(spark, abs, [-1], world) == [1]
