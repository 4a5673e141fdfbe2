"""engine/flow.py: order, bounded readahead, errors and leaving early."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from tablewright.engine.flow import flow


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


def test_a_forgotten_iterator_does_not_hold_up_the_exit() -> None:
    script = """
        from tablewright.engine.flow import flow
        forgotten = flow(lambda number: iter(range(100)), range(100))
        print(next(forgotten), flush=True)
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    began = time.monotonic()  # a busy machine may take its time to start Python
    out, errors = process.communicate(timeout=30)
    assert (out, errors, process.returncode) == ("", "", 0)
    assert time.monotonic() - began < 20
