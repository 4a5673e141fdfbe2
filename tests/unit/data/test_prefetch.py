"""Readahead keeps order, bounds and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tablewright.data.prefetch import prefetch


def test_order_and_laziness() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    def slow_at_first(number: int) -> int:
        time.sleep(0.01 if number < 2 else 0)
        return number * 2

    results = prefetch(slow_at_first, items(), window=5)
    assert next(results) == 0
    assert len(taken) <= 6
    assert list(results) == [number * 2 for number in range(1, 100)]


def test_one_item_needs_no_thread() -> None:
    assert list(prefetch(lambda _: threading.current_thread(), [1])) == [threading.current_thread()]
    assert list(prefetch(str, [])) == []


def test_errors_come_in_order() -> None:
    def fail(number: int) -> int:
        if number == 3:
            raise ZeroDivisionError
        return number

    results = prefetch(fail, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_whoever_leaves_stops_it() -> None:
    begun: list[int] = []

    def note(number: int) -> int:
        begun.append(number)
        time.sleep(0.01)
        return number

    results = prefetch(note, range(1000), window=4)
    next(results)
    results.close()  # type: ignore[attr-defined]
    time.sleep(0.05)
    assert len(begun) < 20
