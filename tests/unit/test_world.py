"""The world of a process: a clock that goes on, ids that differ. Seeded ones: tests/unit/testing/test_worlds.py."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from tablewright.storage import open_store
from tablewright.world import SystemClock, SystemIds, World


def test_a_world_by_default() -> None:
    world = World(open_store("memory://world"))
    assert isinstance(world.clock, SystemClock) and isinstance(world.ids, SystemIds)
    assert 0 <= world.jitter() < 1
    with pytest.raises(FrozenInstanceError):
        world.store = open_store("memory://other")  # type: ignore[misc]


def test_the_clock() -> None:
    clock = SystemClock()
    wall, before = clock.now_ns(), clock.monotonic()
    clock.sleep(0.001)
    assert clock.monotonic() - before >= 0.001
    assert clock.now_ns() > wall > 1_700_000_000 * 10**9


def test_ids() -> None:
    ids = SystemIds()
    assert len({ids.uuid() for _ in range(100)}) == 100
    numbers = {ids.u64() for _ in range(100)}
    assert len(numbers) == 100 and all(0 <= number < 1 << 64 for number in numbers)
