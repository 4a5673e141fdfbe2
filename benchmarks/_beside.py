"""What workloads that change tables share: copies that cost nothing, and runs of the two side by side.

Every run works on a copy of its own (hard links), opened before the clock starts; runs of the two alternate, so that
whatever else the machine does hits both. Neither waits for the disk: pylance never does, so we are opened with
``fsync=false``. What waiting costs depends on the disk and not on us; ``python -m benchmarks durability`` tells.
"""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import lance

import tablewright

__all__ = ["Beside", "Run", "copied", "open_ours", "run_beside", "run_once"]

Change = Callable[[Any], dict[str, int]]


@dataclass(frozen=True)
class Run:
    """One run: its seconds, the bytes of the data files that it wrote, and the rows that it changed, by kind."""

    seconds: float
    nbytes: int
    rows: dict[str, int]


@dataclass(frozen=True)
class Beside:
    """Runs of the two, warm. ``ratio`` is how many times as fast we are, by medians."""

    ours: tuple[Run, ...]
    theirs: tuple[Run, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast as pylance we are."""
        return _seconds(self.theirs) / _seconds(self.ours)

    def line(self, name: str, ratio_min: float | None) -> str:
        """The figures for a human."""
        return (
            f"   {name:<32} ours {_seconds(self.ours) * 1000:8.1f} ms   pylance {_seconds(self.theirs) * 1000:8.1f} ms "
            f"  {self.ratio:6.2f}x{'  (no promise)' if ratio_min is None else f' (promised {ratio_min})'}"
        )


def _seconds(runs: tuple[Run, ...]) -> float:
    return median(run.seconds for run in runs)


def open_ours(place: Path) -> Any:
    """Our dataset, with the durability that pylance has."""
    return tablewright.dataset(place, storage_options={"fsync": "false"})


def copied(base: Path, place: Path) -> Path:
    """A table that shares its files with the base, and can be changed without changing it."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place, copy_function=os.link)
    return place


def run_once(open_table: Callable[[Path], Any], base: Path, place: Path, change: Change) -> Run:
    """Change a copy of the base."""
    dataset = open_table(copied(base, place))
    before = _bytes(place)
    gc.collect()
    started = time.perf_counter()
    rows = change(dataset)
    return Run(time.perf_counter() - started, _bytes(place) - before, rows)


def _bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in (place / "data").iterdir())


def run_beside(base: Path, directory: Path, change: Change, runs: int) -> Beside:
    """Run both in turns, the first time to warm up; both have to change the same number of rows."""
    ours, theirs = [], []
    for number in range(runs + 1):
        mine = run_once(open_ours, base, directory / "ours", change)
        other = run_once(lance.dataset, base, directory / "theirs", change)
        if any(mine.rows[name] != count for name, count in other.rows.items() if name in mine.rows):
            raise AssertionError(f"We changed {mine.rows}, pylance {other.rows}.")
        if number:
            ours.append(mine)
            theirs.append(other)
    return Beside(tuple(ours), tuple(theirs))
