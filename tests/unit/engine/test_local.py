"""engine/local.py: order, bounded readahead, errors and leaving early."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from tablewright.engine.base import Engine
from tablewright.engine.local import LocalEngine, flow
from tablewright.errors import CorruptTable


@pytest.fixture(params=[1, 2, 5])
def engine(request: pytest.FixtureRequest) -> LocalEngine:
    return LocalEngine(threads=request.param)


def test_is_an_engine() -> None:
    assert isinstance(LocalEngine(), Engine)
    assert LocalEngine().name == "local"


def test_map_keeps_the_order_of_tasks(engine: LocalEngine) -> None:
    def late_first(number: int) -> int:
        time.sleep(0.01 * (number % 3 == 0))
        return number * number

    assert engine.map(late_first, range(20)) == [number * number for number in range(20)]


@pytest.mark.parametrize("count", [0, 1])
def test_map_of_few(engine: LocalEngine, count: int) -> None:
    assert engine.map(str, range(count)) == [str(number) for number in range(count)]
    assert list(engine.stream(str, range(count))) == [str(number) for number in range(count)]


def test_stream_keeps_the_order_and_bounds_the_readahead() -> None:
    begun: list[int] = []

    def note(number: int) -> int:
        begun.append(number)
        return number

    results = LocalEngine(threads=2).stream(note, range(100), readahead=1)
    assert next(results) == 0
    time.sleep(0.05)
    assert len(begun) <= 4
    assert list(results) == list(range(1, 100))


def test_the_first_error_keeps_its_type_and_stops_the_rest(engine: LocalEngine) -> None:
    begun: list[int] = []

    def fail_at_three(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise CorruptTable("data/x.lance", ("wrong magic",))
        time.sleep(0.005)
        return number

    with pytest.raises(CorruptTable, match="wrong magic") as caught:
        engine.map(fail_at_three, range(1000))
    assert caught.value.path == "data/x.lance"
    assert len(begun) < 1000
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) == after, "tasks went on after map had raised"


def test_map_awaits_the_tasks_under_way_before_it_raises() -> None:
    ended = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            time.sleep(0.1)
            ended.set()
        else:
            raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        LocalEngine(threads=2).map(work, [0, 1])
    assert ended.is_set()


def test_flow_is_every_item_in_order() -> None:
    def chunks(number: int) -> Iterator[tuple[int, int]]:
        for item in range(number % 4):
            time.sleep(0.001)
            yield number, item

    expected = [(number, item) for number in range(50) for item in range(number % 4)]
    for threads in (1, 2, 8):
        for depth in (1, 3):
            assert list(flow(chunks, range(50), threads=threads, depth=depth)) == expected
    assert list(flow(chunks, [])) == []


def test_flow_holds_a_bounded_number_of_items() -> None:
    alive, most = 0, 0
    lock = threading.Lock()

    def items(number: int) -> Iterator[int]:
        nonlocal alive, most
        for item in range(200):
            with lock:
                alive += 1
                most = max(most, alive)
            yield item

    for _ in flow(items, range(10), threads=4, window=4, depth=2):
        with lock:
            alive -= 1
    assert most <= 4 * (2 + 1) + 1


def test_flow_left_early_closes_its_producers() -> None:
    closed = threading.Semaphore(0)
    begun = []

    def items(number: int) -> Iterator[int]:
        begun.append(number)
        try:
            while True:
                yield number
        finally:
            closed.release()

    results = flow(items, range(100), threads=2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    for _ in begun:
        assert closed.acquire(timeout=30)
    assert len(begun) <= 3


def test_flow_raises_what_a_producer_raises_midway() -> None:
    def items(number: int) -> Iterator[int]:
        yield number
        if number == 1:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(flow(items, range(5), threads=2))


def run_script(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_ctrl_c_stops_at_once() -> None:
    process = run_script(
        """
        import os, time
        from tablewright.engine.local import LocalEngine
        def work(number):
            os.write(1, b"begun\\n")  # one piece, whichever thread
            time.sleep(1)
        try:
            LocalEngine(threads=2).map(work, range(1000))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
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


def test_a_forgotten_iterator_does_not_hold_up_the_exit() -> None:
    process = run_script(
        """
        from tablewright.engine.local import flow
        forgotten = flow(lambda number: iter(range(100)), range(100))
        print(next(forgotten), flush=True)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    began = time.monotonic()  # a busy machine may take its time to start Python
    out, errors = process.communicate(timeout=30)
    assert (out, errors, process.returncode) == ("", "", 0)
    assert time.monotonic() - began < 20
