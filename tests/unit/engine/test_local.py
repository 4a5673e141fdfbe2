"""engine/local.py: order, errors, outcomes, results that are kept, and interrupts."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tablewright.engine.base import Engine, Outcome
from tablewright.engine.exchange import Ranked
from tablewright.engine.flow import Flow
from tablewright.engine.local import LocalEngine
from tablewright.errors import CorruptTable
from tablewright.testing.worlds import memory_world
from tablewright.world import World

WORLD = memory_world()


@pytest.fixture(params=[1, 2, 5])
def engine(request: pytest.FixtureRequest) -> LocalEngine:
    return LocalEngine(threads=request.param)


def test_is_an_engine() -> None:
    assert isinstance(LocalEngine(), Engine)
    assert (LocalEngine().name, LocalEngine().in_process) == ("local", True)


def test_map_keeps_the_order_of_tasks(engine: LocalEngine) -> None:
    def late_first(number: int, world: World) -> int:
        time.sleep(0.01 * (number % 3 == 0))
        return number * number

    assert engine.map(late_first, range(20), WORLD) == [number * number for number in range(20)]


def test_tasks_get_the_world_of_the_caller(engine: LocalEngine) -> None:
    assert engine.map(lambda task, world: world, range(3), WORLD) == [WORLD] * 3


@pytest.mark.parametrize("count", [0, 1])
def test_few_tasks(engine: LocalEngine, count: int) -> None:
    assert engine.map(lambda task, world: str(task), range(count), WORLD) == [str(number) for number in range(count)]
    assert engine.outcomes(lambda task, world: str(task), range(count), WORLD) == [Outcome("0")] * count


def test_the_first_error_keeps_its_type_and_stops_the_rest(engine: LocalEngine) -> None:
    begun: list[int] = []

    def fail_at_three(number: int, world: World) -> int:
        begun.append(number)
        if number == 3:
            raise CorruptTable("data/x.lance", ("wrong magic",))
        time.sleep(0.005)
        return number

    with pytest.raises(CorruptTable, match="wrong magic") as caught:
        engine.map(fail_at_three, range(1000), WORLD)
    assert caught.value.path == "data/x.lance"
    assert len(begun) < 1000
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) == after, "tasks went on after map had raised"


def test_map_awaits_the_tasks_under_way_before_it_raises() -> None:
    ended = threading.Event()

    def work(number: int, world: World) -> None:
        if number == 0:
            time.sleep(0.1)
            ended.set()
        else:
            raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        LocalEngine(threads=2).map(work, [0, 1], WORLD)
    assert ended.is_set()


def _odd_fails(number: int, world: World) -> int:
    if number % 2:
        raise ValueError(number)
    return number


def test_outcomes_are_one_per_task(engine: LocalEngine) -> None:
    kept: list[int] = []
    outcomes = engine.outcomes(_odd_fails, range(10), WORLD, keep=kept.append)
    assert sorted(kept) == [0, 2, 4, 6, 8]
    assert [outcome.result for outcome in outcomes[::2]] == [0, 2, 4, 6, 8]
    assert [repr(outcome.error) for outcome in outcomes[1::2]] == [f"ValueError({n})" for n in (1, 3, 5, 7, 9)]
    assert outcomes[0].unwrap() == 0
    with pytest.raises(ValueError, match="1"):
        outcomes[1].unwrap()


def test_an_interrupt_is_no_outcome() -> None:
    def interrupted(number: int, world: World) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LocalEngine(threads=1).outcomes(interrupted, range(3), WORLD)


def test_results_are_kept_also_where_another_task_fails(engine: LocalEngine) -> None:
    kept, ended, lock = list[int](), list[int](), threading.Lock()

    def work(number: int, world: World) -> int:
        if number == 7:
            raise ValueError("no")
        time.sleep(0.002)
        with lock:
            ended.append(number)
        return number

    with pytest.raises(ValueError, match="no"):
        engine.map(work, range(20), WORLD, keep=kept.append)
    assert set(range(7)) <= set(kept)
    assert sorted(kept) == sorted(ended), "each once"


def test_results_are_kept_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is under way when the caller leaves hands over its result when it ends."""
    kept, under_way, go_on = list[int](), threading.Barrier(3), threading.Event()

    def work(number: int, world: World) -> int:
        under_way.wait(30)
        go_on.wait(30)
        return number

    def interrupted(self: Flow[int, int]) -> tuple[int, ...]:
        under_way.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(Flow, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(threads=2).map(work, range(2), WORLD, keep=kept.append)
    assert kept == []
    go_on.set()
    deadline = time.monotonic() + 30
    while len(kept) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(kept) == [0, 1]


def test_what_keep_raises_ends_the_map(engine: LocalEngine) -> None:
    def full(result: int) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        engine.map(_odd_fails, [0, 2], WORLD, keep=full)


def test_ctrl_c_stops_at_once() -> None:
    script = """
        import os, time
        from tablewright.engine.local import LocalEngine
        from tablewright.testing.worlds import memory_world
        def work(number, world):
            os.write(1, b"begun\\n")  # one piece, whichever thread
            time.sleep(1)
        try:
            LocalEngine(threads=2).map(work, range(1000), memory_world())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=30)
    assert "interrupted" in rest
    assert rest.count("begun") <= 3
    assert errors == ""
    assert time.monotonic() - pressed < 20


# ----------------------------------------------------------------------------------------------------------- exchanging
SCHEMA = pa.schema({"k": pa.binary(), "n": pa.int64()})


def _rows(task: int, world: World) -> Iterator[Ranked]:
    for rank in (1, 0):
        numbers = [number for number in range(rank, 30, 2) if number % 3 == task]
        yield rank, pa.record_batch({"k": [b"k%d" % (number % 5) for number in numbers], "n": numbers}, SCHEMA)


def _all(parts: Iterator[Ranked]) -> list[tuple[bytes, int, int]]:
    return [(row["k"], rank, row["n"]) for rank, batch in parts for row in batch.to_pylist()]


@pytest.mark.parametrize("partitions", [1, 2, 3, 100])
def test_exchange_brings_rows_together_by_key(engine: LocalEngine, partitions: int) -> None:
    parts = engine.exchange(_rows, range(3), _all, WORLD, schema=SCHEMA, keys=["k"], partitions=partitions)
    assert 0 < len(parts) <= min(partitions, 5)
    keys = [{key for key, _, _ in part} for part in parts]
    assert sum(map(len, keys)) == 5, "a key is in one part only"
    assert sorted(row for part in parts for row in part) == sorted((b"k%d" % (n % 5), n % 2, n) for n in range(30))
    assert all([rank for _, rank, _ in part] == sorted(rank for _, rank, _ in part) for part in parts)


def test_exchange_of_nothing(engine: LocalEngine) -> None:
    for tasks in ((), (9,)):  # a task without rows
        assert engine.exchange(_rows, tasks, _all, WORLD, schema=SCHEMA, keys=["k"], partitions=4) == []
