"""All that is not deterministic, as one small value: store, clock, ids, jitter.

Everything below takes a :class:`World`; tests hand in one with a seeded clock and ids, so a history
replays from its seed.
"""

from __future__ import annotations

import random
import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tablewright.storage.base import Store

__all__ = ["Clock", "Ids", "SystemClock", "SystemIds", "World"]


class Clock(Protocol):
    """Wall time, elapsed time and waiting."""

    def now_ns(self) -> int: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Unique ids and numbers."""

    def uuid(self) -> uuid.UUID: ...

    def u64(self) -> int: ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SystemIds:
    """Random ids from the operating system."""

    def uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def u64(self) -> int:
        return secrets.randbits(64)


@dataclass(frozen=True, slots=True)
class World:
    """What an operation may touch. ``jitter`` returns a float in [0, 1)."""

    store: Store
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    jitter: Callable[[], float] = random.random
