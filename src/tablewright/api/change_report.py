"""What a change did, as ``analyze_plan`` tells it: stages, rows, bytes, files, attempts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tablewright.engine.choose import Choice

__all__ = ["Report", "Stage"]

_TOTALS = ("attempts", "fragments", "rows_read", "bytes_read", "bytes_written", "num_files_written")


class _Reader(Protocol):
    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...


class _Writer(Protocol):
    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def bytes_written(self) -> int: ...


@dataclass(slots=True)
class Stage:
    """One stage: its engine and tasks, if it has any, and how long it took."""

    name: str
    seconds: float = 0.0
    tasks: int = 0
    choice: Choice | None = None

    def __str__(self) -> str:
        where = "" if self.choice is None else f", tasks={self.tasks}, engine={self.choice.engine.name}"
        return f"{self.name}: seconds={self.seconds:.3f}{where}"


@dataclass(slots=True)
class Report:
    """Measured by one execution, over all its attempts."""

    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    attempts: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    num_files_written: int = 0
    fragments: int = 0

    @contextmanager
    def stage(self, name: str, choice: Choice | None = None, tasks: int = 0) -> Iterator[None]:
        """Measure a stage."""
        stage = Stage(name, tasks=tasks, choice=choice)
        self.stages.append(stage)
        started = time.perf_counter()
        try:
            yield
        finally:
            stage.seconds = time.perf_counter() - started

    def count_read(self, results: Sequence[_Reader]) -> None:
        """Add what tasks have read."""
        self.rows_read += sum(result.rows_read for result in results)
        self.bytes_read += sum(result.bytes_read for result in results)

    def count_written(self, results: Sequence[_Writer]) -> None:
        """Add what tasks have written."""
        self.num_files_written += sum(len(result.paths) for result in results)
        self.bytes_written += sum(result.bytes_written for result in results)

    def lines(self, result: dict[str, int]) -> Iterator[str]:
        """What was decided on the way, one line of totals, then one per stage."""
        yield from self.notes
        known = {name: getattr(self, name) for name in _TOTALS}
        known |= {"tasks": sum(stage.tasks for stage in self.stages)}
        yield f"  metrics=[{', '.join(f'{name}={value}' for name, value in (result | known).items())}]"
        for stage in self.stages:
            yield f"  {stage}"
