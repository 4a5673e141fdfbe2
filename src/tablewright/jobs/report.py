"""What a change did, as ``analyze_plan`` tells it: stages, rows, bytes, files, attempts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, Self

from tablewright.engine.choose import Choice
from tablewright.engine.events import log_choice
from tablewright.log import Log
from tablewright.storage.requests import requests_made

__all__ = ["Report", "Stage"]

_log = Log("job")
_TOTALS = ("attempts", "fragments", "rows_read", "bytes_read", "bytes_written", "num_files_written", "iops")


class _Done(Protocol):
    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def paths(self) -> tuple[str, ...]: ...


@dataclass(slots=True)
class Stage:
    """One stage: its engine and tasks, if it has any, what its tasks read and wrote, and how long it took.

    ``iops`` are requests to the store and to data files. Where other work goes on in this process, it counts too.
    """

    name: str
    seconds: float = 0.0
    tasks: int = 0
    choice: Choice | None = None
    fragments: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    num_files_written: int = 0
    iops: int = 0

    def add(self, results: Iterable[_Done]) -> None:
        """Add what tasks have read and written."""
        for result in results:
            self.rows_read += result.rows_read
            self.bytes_read += result.bytes_read
            self.bytes_written += getattr(result, "bytes_written", 0)
            self.num_files_written += len(result.paths)

    def __enter__(self) -> Self:
        """Begin to measure: time and requests are counted from here to the end of the block."""
        self.iops -= requests_made()
        self.seconds -= time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds += time.perf_counter()
        self.iops += requests_made()
        _log.debug("stage", "%(stage)s", stage=self)

    def __str__(self) -> str:
        names = ("fragments", "rows_read", "bytes_read", "num_files_written", "bytes_written", "iops", "tasks")
        facts = [f"{name}={value}" for name in names if (value := getattr(self, name))]
        if self.choice is not None:
            facts.append(f"engine={self.choice.engine.name}: {self.choice.why}")
        return ", ".join([f"{self.name}: seconds={self.seconds:.3f}", *facts])


@dataclass(slots=True)
class Report:
    """Measured by one execution, over all its attempts. ``notes`` become text when they are shown."""

    stages: list[Stage] = field(default_factory=list)
    notes: list[object] = field(default_factory=list)
    attempts: int = 0
    fragments: int = 0

    def stage(self, name: str, choice: Choice | None = None, tasks: int = 0, fragments: int = 0) -> Stage:
        """A stage, as a context in which it is measured."""
        stage = Stage(name, tasks=tasks, choice=choice, fragments=fragments)
        self.stages.append(stage)
        if choice is not None:
            log_choice(name, choice, tasks)
        return stage

    def lines(self, result: dict[str, int]) -> Iterator[str]:
        """What was decided on the way, one line of totals, then one per stage."""
        yield from map(str, self.notes)
        totals = {name: getattr(self, name, None) for name in _TOTALS}
        known = {name: self._sum(name) if value is None else value for name, value in totals.items()}
        known |= {"tasks": self._sum("tasks")}
        if "num_attempts" in result:
            del known["attempts"]
        yield f"  metrics=[{', '.join(f'{name}={value}' for name, value in (result | known).items())}]"
        for stage in self.stages:
            yield f"  {stage}"

    def _sum(self, name: str) -> int:
        return sum(getattr(stage, name) for stage in self.stages)
