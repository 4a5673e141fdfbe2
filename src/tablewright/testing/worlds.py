"""Deterministic worlds: the clock moves only when read, ids come from a seed.

Two runs with the same seed see the same times, ids and jitter. Writers of one test take different seeds, so they never
create the same name.
"""

from __future__ import annotations

import itertools
import random
import threading
import uuid

from tablewright.storage import Store, open_store
from tablewright.world import World

__all__ = ["SeededClock", "SeededIds", "memory_world", "seeded_world"]

_START_NS = 1_700_000_000_000_000_000
_STEP_NS = 1_000_000
_names = itertools.count()


class SeededClock:
    """Each look moves the time by ``step_ns``; sleeping moves it without waiting. ``slept`` lists the sleeps."""

    def __init__(self, start_ns: int = _START_NS, step_ns: int = _STEP_NS) -> None:
        self._now_ns, self._step_ns = start_ns, step_ns
        self._start_ns = start_ns
        self._lock = threading.Lock()
        self.slept: list[float] = []

    def now_ns(self) -> int:
        with self._lock:
            self._now_ns += self._step_ns
            return self._now_ns

    def monotonic(self) -> float:
        return (self.now_ns() - self._start_ns) / 1e9

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self._now_ns += round(seconds * 1e9)


class SeededIds:
    """Uuids and numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def uuid(self) -> uuid.UUID:
        with self._lock:
            return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def u64(self) -> int:
        with self._lock:
            return self._random.getrandbits(64)


def seeded_world(store: Store, seed: int = 0, clock: SeededClock | None = None) -> World:
    """A world around ``store`` whose clock, ids and jitter replay from ``seed``.

    >>> world = seeded_world(open_store("memory://seeded"), seed=7)
    >>> world.ids.uuid() == seeded_world(world.store, seed=7).ids.uuid()
    True
    """
    return World(store=store, clock=clock or SeededClock(), ids=SeededIds(seed), jitter=random.Random(seed).random)


def memory_world(seed: int = 0) -> World:
    """A seeded world around a new memory store."""
    return seeded_world(open_store(f"memory://testing-{next(_names)}/table"), seed)
