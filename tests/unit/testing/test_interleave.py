from __future__ import annotations

from collections.abc import Callable

import pytest

from tablewright.storage import ObjectNotFound, Store
from tablewright.testing import CrashAfter, SimulatedCrash, interleave, memory_world, on_call


def history(seed: int) -> list[str]:
    """Three writers that each write two objects and read all that is there."""
    store = memory_world().store
    events: list[str] = []

    def writer(name: str) -> Callable[[Store], str]:
        def write(own: Store) -> str:
            for number in range(2):
                own.put(f"{name}{number}", b"")
                events.append(f"{name} sees {len(list(own.list('')))}")
            return name

        return write

    outcomes = interleave(store, [writer(name) for name in "abc"], seed)
    assert [outcome.result for outcome in outcomes] == ["a", "b", "c"]
    return events


def test_a_seed_replays() -> None:
    assert history(1) == history(1)
    assert len({tuple(history(seed)) for seed in range(8)}) > 3


def test_lost_updates_show_up() -> None:
    """Read, then write without a condition: some seeds lose an update, and that is what we want to be able to see."""
    counts = set()
    for seed in range(20):
        store = memory_world().store

        def add(own: Store) -> None:
            try:
                count = int(own.get("count"))
            except ObjectNotFound:
                count = 0
            own.put("count", b"%d" % (count + 1))

        interleave(store, [add, add], seed)
        counts.add(store.get("count"))
    assert counts == {b"1", b"2"}


def test_errors_and_crashes_are_outcomes() -> None:
    store = memory_world().store

    def fail(own: Store) -> None:
        own.get("nothing")

    def write(own: Store) -> None:
        own.put("a", b"")
        own.put("b", b"")

    failed, crashed, done = interleave(store, [fail, write, write], 3, [None, on_call(CrashAfter(), path="a")])
    assert isinstance(failed.error, ObjectNotFound)
    assert isinstance(crashed.error, SimulatedCrash)
    assert done.error is None


@pytest.mark.parametrize("seed", range(10))
def test_one_creates(seed: int) -> None:
    store = memory_world().store
    outcomes = interleave(store, [lambda own: own.put_if_absent("v", b"")] * 4, seed)
    assert sorted(bool(outcome.result) for outcome in outcomes) == [False, False, False, True]
