"""Faults at chosen storage calls of chosen Spark tasks, and at the commit of the driver.

A change runs several Spark jobs that open the table on workers; they are numbered as *stages*. A fault names a stage, a
partition, a storage call of the task, and in how many attempts at the task it happens. The task's own number and
attempt come from Spark, so that nothing has to be agreed on between processes. Every call is written to a log,
which tells a test where the calls are, which files an attempt has written, and that the fault happened at all.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from tablewright.api.locate import open_world
from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.worker import WorldAddress
from tablewright.testing.faulty_store import Call, FailBefore, Fault, FaultyStore, LoseReply, Pause, Plan, on_call
from tablewright.world import World

__all__ = ["ALWAYS", "DriverFault", "Faults", "LogLine", "TaskFault", "kill_this_process", "read_log", "under_faults"]

ALWAYS = 1000
DELAY_SECONDS = 0.3


@dataclass(frozen=True)
class TaskFault:
    """What happens at a storage call of a task, in its first ``times`` attempts."""

    kind: str  # kill, kill after, raise, fail, lose reply, delay, kill executor, kill driver, lose shuffle
    stage: int
    partition: int
    call: int
    times: int = 1  # for an executor and a shuffle, only once: Spark counts attempts again when it repeats a stage
    folder: str = ""  # where the shuffle's files are
    driver: int = 0  # the driver's process


@dataclass(frozen=True)
class DriverFault:
    """What happens at the driver's ``nth`` call of ``method`` below ``folder``."""

    fault: Fault
    nth: int
    method: str = "put_if_absent"
    folder: str = "_versions"


@dataclass(frozen=True)
class Faults:
    """What goes wrong in one run of a change; ``log`` is a file. ``twice``: tasks run twice, the second counts."""

    log: str
    task: TaskFault | None = None
    driver: DriverFault | None = None
    twice: bool = False


@dataclass(frozen=True)
class LogLine:
    """One storage call: of an attempt at a task, or of the driver (its stage is -1)."""

    stage: int
    partition: int
    attempt: int
    call: int
    method: str
    path: str


def read_log(path: str) -> list[LogLine]:
    """All calls, of each task in their order."""
    lines = (line.split(" ", 5) for line in Path(path).read_text().splitlines())
    return [LogLine(int(s), int(p), int(a), int(c), method, path) for s, p, a, c, method, path in lines]


@contextmanager
def under_faults(faults: Faults) -> Iterator[None]:
    """What is opened and sent to workers meanwhile, by this process, has the faults."""
    Path(faults.log).touch()
    stages, of = itertools.count(), WorldAddress.of

    def faulty_address(world: World, mark: Any = None) -> FaultyAddress:
        return FaultyAddress(of(world, mark), next(stages), faults)

    def faulty_world(*given: Any, **named: Any) -> World:
        world = open_world(*given, **named)
        return replace(world, store=_driver_store(world, faults.driver, faults.log))

    def doubled(function: Any, what: str) -> bytes:
        return dump(Twice(function) if what in ("task function", "write task") else function, what)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(WorldAddress, "of", faulty_address))
        for module in ("dataset", "pinned"):
            stack.enter_context(mock.patch(f"tablewright.api.{module}.open_world", faulty_world))
        for module in ("tasks", "frames") if faults.twice else ():
            stack.enter_context(mock.patch(f"tablewright.engine.spark.{module}.dump", doubled))
        yield


def _driver_store(world: World, fault: DriverFault | None, log: str) -> FaultyStore:
    own: Plan | None = None
    if fault is not None:
        own = on_call(fault.fault, method=fault.method, path=f"{fault.folder}/*", nth=fault.nth)

    def plan(call: Call) -> Fault | None:
        _log(log, LogLine(-1, 0, 0, call.index, call.method, call.path))
        return None if own is None else own(call)

    return FaultyStore(world.store, plan)


@dataclass(frozen=True)
class Twice:
    """A task function that does its work a second time, as a speculative copy does; its second result counts."""

    function: Callable[[Any, World], Any]

    def __call__(self, task: Any, world: World) -> Any:
        task = list(task) if isinstance(task, Iterator) else task
        self.function(iter(task) if isinstance(task, list) else task, world)
        return self.function(iter(task) if isinstance(task, list) else task, world)


@dataclass(frozen=True)
class FaultyAddress:
    """The address of a world whose store logs its calls and has the fault of its task."""

    address: WorldAddress
    stage: int
    faults: Faults

    def open(self) -> World:
        """The world, on a worker."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        world = self.address.open()
        where = (self.stage, context.partitionId(), context.attemptNumber())
        return replace(world, store=TaskStore(world, where, self.faults))


class TaskStore(FaultyStore):
    """The store of one attempt at a task."""

    def __init__(self, world: World, where: tuple[int, int, int], faults: Faults) -> None:
        self._where, self._log, self._task = where, faults.log, faults.task
        super().__init__(world.store, self._plan)

    def _plan(self, call: Call) -> Fault | None:
        _log(self._log, LogLine(*self._where, call.index, call.method, call.path))
        task = self._task
        if task is None or not self._is_here(task, call.index):
            return None
        match task.kind:
            case "kill":
                return Pause(lambda call: _kill(os.getpid()))
            case "kill executor":
                return Pause(lambda call: _once(self._log, lambda: _kill(_parent(os.getppid()))))
            case "kill driver":
                return Pause(lambda call: _once(self._log, lambda: _kill(task.driver)))
            case "delay":
                return Pause(lambda call: time.sleep(DELAY_SECONDS))
            case "lose shuffle":
                return Pause(lambda call: _once(self._log, lambda: _lose_shuffle(task.folder)))
            case "raise":
                return FailBefore(ZeroDivisionError("a defect in a task"))
            case "fail":
                return FailBefore()
            case "lose reply":
                return LoseReply()
        return None

    def _run(self, method: str, path: str, effect: Callable[[], Any]) -> Any:
        number = len(self.calls)
        result = super()._run(method, path, effect)
        if self._task is not None and self._task.kind == "kill after" and self._is_here(self._task, number):
            _kill(os.getpid())
        return result

    def _is_here(self, task: TaskFault, call: int) -> bool:
        stage, partition, attempt = self._where
        return (stage, partition, call) == (task.stage, task.partition, task.call) and attempt < task.times


def _log(path: str, line: LogLine) -> None:
    words = f"{line.stage} {line.partition} {line.attempt} {line.call} {line.method} {line.path}\n"
    with Path(path).open("a") as file:
        file.write(words)


def kill_this_process(call: Call) -> None:
    """For the driver: a callback that does not return."""
    _kill(os.getpid())


def _kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    time.sleep(5)  # an executor or a driver takes its workers with it, a moment later
    os.kill(os.getpid(), signal.SIGKILL)


def _parent(process: int) -> int:
    """The parent of a process: that of the daemon of Python workers is the executor."""
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(process)], capture_output=True, check=True).stdout)


def _once(log: str, act: Callable[[], None]) -> None:
    try:
        Path(f"{log}-once").touch(exist_ok=False)
    except FileExistsError:
        return
    act()


def _lose_shuffle(folder: str) -> None:
    """The files go, and the task fails: its next attempt does not find them."""
    files = list(Path(folder).rglob("shuffle_*"))
    assert files, folder
    for path in files:
        path.unlink(missing_ok=True)
    raise ZeroDivisionError("a task fails after the files of the shuffle have gone")
