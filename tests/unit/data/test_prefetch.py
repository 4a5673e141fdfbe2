"""Readahead keeps order, bounds and errors."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from tablewright.data import prefetch as prefetch_module
from tablewright.data.prefetch import prefetch, spread


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


class TestSpread:
    def test_order_and_all_items(self) -> None:
        assert spread(lambda n: n * n, range(100)) == [n * n for n in range(100)]
        assert spread(str, []) == []
        assert spread(str, [7]) == ["7"]

    def test_the_caller_works_along(self) -> None:
        seen = spread(lambda _: (time.sleep(0.005), threading.current_thread())[1], range(20))
        assert threading.main_thread() in seen

    def test_the_first_error_ends_it(self) -> None:
        done = []

        def work(n: int) -> int:
            if n == 3:
                raise ValueError("three")
            done.append(n)
            return n

        with pytest.raises(ValueError, match="three"):
            spread(work, itertools.count())
        assert {0, 1, 2} <= set(done)

    def test_a_source_that_fails(self) -> None:
        def items() -> Iterator[int]:
            yield from range(5)
            raise KeyError("source")

        with pytest.raises(KeyError, match="source"):
            spread(str, items())


def test_who_waits_works_along() -> None:
    """The consumer takes what no thread has begun, and order stays."""
    threads = set()

    def work(n: int) -> int:
        threads.add(threading.current_thread())
        time.sleep(0.01)
        return n

    assert list(prefetch(work, range(30))) == list(range(30))
    assert threading.main_thread() in threads


def test_an_error_of_a_later_item_waits_for_its_turn() -> None:
    def work(n: int) -> int:
        time.sleep(0.002)
        if n == 6:
            raise ValueError("six")
        return n

    found = []
    with pytest.raises(ValueError, match="six"):
        found.extend(prefetch(work, range(30)))
    results = prefetch(work, range(30))
    assert [next(results) for _ in range(6)] == list(range(6))


@pytest.mark.parametrize(
    ("given", "threads"), [(None, 8), ("", 8), ("1", 1), ("3", 3), (" 2,4", 2), ("99", 8), ("0", 8), ("many", 8)]
)
def test_threads_that_compute(monkeypatch: pytest.MonkeyPatch, given: str | None, threads: int) -> None:
    """Workers of Spark are told the cores of a task by the variable that OpenMP reads."""
    monkeypatch.setattr(prefetch_module, "processors", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert prefetch_module.computing_threads() == threads
