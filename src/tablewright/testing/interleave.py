"""A deterministic scheduler: several writers, switched at every store call in an order drawn from a seed.

Each writer runs in its own thread on its own :class:`FaultyStore` over the same inner store. The rule:

1. A store call waits for its turn.
2. When every writer that still runs has a call waiting, and no call is under way, one of the waiting calls is drawn
   from the seed and goes on.

So between two draws exactly one call has its effect, and the same seed gives the same history. Writers must not wait
for each other by other means, and sleep only through their world's clock.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from tablewright.storage import Store
from tablewright.testing.faulty_store import Call, FaultyStore, Pause, Plan

__all__ = ["Gate", "Outcome", "interleave"]

T = TypeVar("T")

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How one writer ended: its result, or its error."""

    result: T | None
    error: BaseException | None


@dataclass(eq=False)
class _Ticket:
    writer: int
    granted: bool = False


class _Turns:
    def __init__(self, writers: int, seed: int) -> None:
        self._running = set(range(writers))
        self._waiting: list[_Ticket] = []
        self._under_way = 0
        self._random = random.Random(seed)
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, writer: int) -> Iterator[None]:
        ticket = _Ticket(writer)
        with self._changed:
            self._waiting.append(ticket)
            self._draw()
            if not self._changed.wait_for(lambda: ticket.granted, _PATIENCE_S):
                raise TimeoutError(f"writer {writer} got no turn: another writer waits outside the store")
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._draw()

    def leave(self, writer: int) -> None:
        with self._changed:
            self._running.discard(writer)
            self._draw()

    def _draw(self) -> None:
        if self._under_way or not self._running <= {ticket.writer for ticket in self._waiting} or not self._waiting:
            return
        ticket = self._random.choice(sorted(self._waiting, key=lambda waiting: waiting.writer))
        self._waiting.remove(ticket)
        ticket.granted = True
        self._under_way += 1
        self._changed.notify_all()


class _TurnStore(FaultyStore):
    def __init__(self, store: Store, turns: _Turns, writer: int, plan: Plan | None) -> None:
        super().__init__(store, plan)
        self._turns, self._writer = turns, writer

    def _run(self, method: str, path: str, effect: Callable[[], T]) -> T:
        with self._turns.turn(self._writer):
            return super()._run(method, path, effect)


def interleave(
    store: Store, writers: Sequence[Callable[[Store], T]], seed: int, plans: Sequence[Plan | None] = ()
) -> list[Outcome[T]]:
    """Run ``writers`` on ``store``, switching at every call as ``seed`` says. Their outcomes, in order.

    ``plans`` may give each writer faults as well.
    """
    turns = _Turns(len(writers), seed)
    outcomes: list[Outcome[T]] = [Outcome(None, None)] * len(writers)

    def run(number: int, writer: Callable[[Store], T]) -> None:
        plan = plans[number] if number < len(plans) else None
        try:
            outcomes[number] = Outcome(writer(_TurnStore(store, turns, number, plan)), None)
        except BaseException as error:  # A simulated crash is one, and it is an outcome like any other.
            outcomes[number] = Outcome(None, error)
        finally:
            turns.leave(number)

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


class Gate:
    """A place where one writer waits until the test lets it go on: ``Pause(gate.wait)`` in a plan.

    The test calls :meth:`arrived` to know that the writer is there, does what it likes, then :meth:`open`.
    """

    def __init__(self) -> None:
        self._there, self._free = threading.Event(), threading.Event()

    def wait(self, call: Call) -> None:
        """Called by the paused writer."""
        self._there.set()
        if not self._free.wait(_PATIENCE_S):
            raise TimeoutError(f"the gate was not opened at {call}")

    def arrived(self) -> None:
        """Wait until the writer is at the gate."""
        if not self._there.wait(_PATIENCE_S):
            raise TimeoutError("the writer did not come to the gate")

    def open(self) -> None:
        """Let the writer go on."""
        self._free.set()

    def pause(self) -> Pause:
        """The fault that stops a writer here."""
        return Pause(self.wait)
