from __future__ import annotations

import subprocess
import sys

from tablewright.storage import open_store
from tablewright.testing import SeededClock, SeededIds, memory_world, seeded_world


def test_a_seed_decides() -> None:
    store = open_store("memory://worlds")
    one, two, other = (seeded_world(store, seed) for seed in (1, 1, 2))
    for world in (one, two):
        assert world.ids.uuid().version == 4
    assert one.ids.uuid() == two.ids.uuid() != other.ids.uuid()
    assert one.ids.u64() == two.ids.u64()
    assert one.jitter() == two.jitter() != other.jitter()
    assert one.clock.now_ns() == two.clock.now_ns()


def test_time_moves_by_looking_and_sleeping() -> None:
    clock = SeededClock(start_ns=0, step_ns=10)
    assert [clock.now_ns(), clock.now_ns()] == [10, 20]
    clock.sleep(1.5)
    assert clock.now_ns() == 1_500_000_030
    assert clock.slept == [1.5]
    before = clock.monotonic()
    clock.sleep(2)
    assert clock.monotonic() - before > 2


def test_ids_are_64_bits() -> None:
    ids = SeededIds(0)
    assert all(0 <= ids.u64() < 1 << 64 for _ in range(100))


def test_memory_worlds_are_apart() -> None:
    one, two = memory_world(), memory_world()
    one.store.put("a", b"")
    assert list(two.store.list("")) == []


def test_the_kit_needs_no_pytest() -> None:
    code = "import sys, tablewright.testing; assert not {'pytest', 'hypothesis', 'pyspark'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
