"""Fault injection: a store that fails, loses replies, crashes, pauses or answers wrongly, where a test says so.

:class:`FaultyStore` wraps any store and numbers the calls that reach it, from 0. Before each call it asks a *plan*,
a function from :class:`Call` to a :class:`Fault` or ``None``:

=====================  ==========================================================================================
``FailBefore``         ``StorageError``, and nothing happened
``LoseReply``          it happened, and then ``StorageError``
``CrashBefore``        the writer dies before the effect: :class:`SimulatedCrash`
``CrashAfter``         the writer dies after the effect
``DenyCreation``       ``put_if_absent`` creates the object and answers ``False``
``StaleList``          ``list`` leaves some objects out, as if it were older
``Pause``              a callback runs before the effect (and may wait for another writer), then all goes on
=====================  ==========================================================================================

After a crash every later call raises :class:`SimulatedCrash` again and has no effect, because a process that crashed
cleans up nothing. ``codec_location`` is ``None``, so that data files pass through ``get`` and ``put`` too.
"""

from __future__ import annotations

import builtins
import fnmatch
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from tablewright.errors import StorageError
from tablewright.storage import Location, ObjectInfo, Store
from tablewright.storage.subtree import unfinished_files

__all__ = [
    "EVERY_FAULT",
    "Call",
    "CrashAfter",
    "CrashBefore",
    "DenyCreation",
    "FailBefore",
    "Fault",
    "FaultyStore",
    "LoseReply",
    "Pause",
    "Plan",
    "SimulatedCrash",
    "StaleList",
    "at_call",
    "every_single_fault",
    "first_of",
    "on_call",
]

T = TypeVar("T")


class SimulatedCrash(BaseException):
    """The writing process has crashed. Not an ``Exception``, so no handler of ours takes it for a failure."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store: its number, the method's name, the path (or prefix)."""

    index: int
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class FailBefore:
    """Nothing happens, and the call raises ``error`` (a ``StorageError`` unless given)."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class LoseReply:
    """It happens, but the caller gets a ``StorageError``."""


@dataclass(frozen=True, slots=True)
class CrashBefore:
    """The writer dies just before the effect."""


@dataclass(frozen=True, slots=True)
class CrashAfter:
    """The writer dies just after the effect."""


@dataclass(frozen=True, slots=True)
class DenyCreation:
    """``put_if_absent`` creates the object and says ``False``; other calls are not changed."""


@dataclass(frozen=True, slots=True)
class StaleList:
    """``list`` hides the paths that ``hides`` accepts; other calls are not changed."""

    hides: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Pause:
    """``callback`` runs before the effect."""

    callback: Callable[[Call], None]


Fault: TypeAlias = FailBefore | LoseReply | CrashBefore | CrashAfter | DenyCreation | StaleList | Pause
Plan: TypeAlias = Callable[[Call], Fault | None]

EVERY_FAULT: tuple[Fault, ...] = (FailBefore(), LoseReply(), CrashBefore(), CrashAfter())
"""The faults that make sense at any call."""


def at_call(index: int, fault: Fault) -> Plan:
    """``fault`` at the call with this number."""
    return lambda call: fault if call.index == index else None


def on_call(fault: Fault, *, method: str | None = None, path: str = "*", nth: int | None = None) -> Plan:
    """``fault`` at calls of ``method`` whose path matches the pattern: all of them, or only the ``nth`` (from 0)."""
    matches = 0
    lock = threading.Lock()

    def plan(call: Call) -> Fault | None:
        nonlocal matches
        if (method is not None and call.method != method) or not fnmatch.fnmatchcase(call.path, path):
            return None
        with lock:
            number, matches = matches, matches + 1
        return fault if nth is None or number == nth else None

    return plan


def first_of(*plans: Plan) -> Plan:
    """The first fault that any of ``plans`` names. Each plan sees each call."""

    def plan(call: Call) -> Fault | None:
        faults = [plan(call) for plan in plans]
        return next((fault for fault in faults if fault is not None), None)

    return plan


def every_single_fault(calls: int, faults: tuple[Fault, ...] = EVERY_FAULT) -> Iterator[tuple[int, Fault, Plan]]:
    """One plan per call and fault: run a scenario once to count its calls, then again under each of these."""
    for index in range(calls):
        for fault in faults:
            yield index, fault, at_call(index, fault)


@dataclass
class _State:
    calls: list[Call] = field(default_factory=list)
    dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class FaultyStore:
    """``store`` with the faults of ``plan``. ``calls`` lists every call so far."""

    def __init__(self, store: Store, plan: Plan | None = None) -> None:
        self.inner = store
        self.plan: Plan = plan or (lambda call: None)
        self._state = _State()

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call that reached this store, in order."""
        return tuple(self._state.calls)

    @property
    def crashed(self) -> bool:
        """Whether the writer of this store has crashed."""
        return self._state.dead

    @property
    def location(self) -> Location:
        return self.inner.location

    def get(self, path: str) -> bytes:
        return self._run("get", path, lambda: self.inner.get(path))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        return self._run("get_range", path, lambda: self.inner.get_range(path, start, end))

    def head(self, path: str) -> ObjectInfo:
        return self._run("head", path, lambda: self.inner.head(path))

    def put(self, path: str, data: bytes) -> None:
        self._run("put", path, lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._run("put_if_absent", path, lambda: self.inner.put_if_absent(path, data))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        # Read whole at the call, so that a listing is one event among the others.
        return iter(self._run("list", prefix, lambda: [*self.inner.list(prefix)]))

    def delete(self, path: str) -> None:
        self._run("delete", path, lambda: self.inner.delete(path))

    def codec_location(self, path: str) -> Location | None:
        return None

    def prune(self, prefix: str) -> None:
        """Passed on without a number: empty directories are no part of a table."""
        if not self._state.dead and (prune := getattr(self.inner, "prune", None)) is not None:
            prune(prefix)

    def unfinished(self, prefix: str) -> Iterator[ObjectInfo]:
        """Passed on without a number: what a writer left when it was killed is no part of a table."""
        return iter(()) if self._state.dead else unfinished_files(self.inner, prefix)

    def _run(self, method: str, path: str, effect: Callable[[], T]) -> T:
        call = self._record(method, path)
        match fault := self.plan(call):
            case None | DenyCreation() | StaleList():
                return _changed(fault, method, effect())
            case Pause(callback):
                callback(call)
                if self._state.dead:
                    raise SimulatedCrash(f"the writer died before {method} {path}")
                return effect()
            case FailBefore(error):
                raise error or StorageError(f"Simulated failure before {method} {path}")
            case LoseReply():
                effect()
                raise StorageError(f"Simulated loss of the reply to {method} {path}")
            case CrashBefore():
                self._state.dead = True
                raise SimulatedCrash(f"crash before {method} {path}")
            case CrashAfter():
                effect()
                self._state.dead = True
                raise SimulatedCrash(f"crash after {method} {path}")

    def _record(self, method: str, path: str) -> Call:
        with self._state.lock:
            if self._state.dead:
                raise SimulatedCrash(f"the writer died before {method} {path}")
            call = Call(len(self._state.calls), method, path)
            self._state.calls.append(call)
            return call


def _changed(fault: Fault | None, method: str, reply: T) -> T:
    if isinstance(fault, DenyCreation) and method == "put_if_absent":
        return False  # type: ignore[return-value]
    if isinstance(fault, StaleList) and isinstance(reply, builtins.list):
        return [info for info in reply if not fault.hides(info.path)]  # type: ignore[return-value]
    return reply
