"""The cells of ``python -m benchmarks engines``: figures of one verb on one size at one site, kept in a file.

A run of the whole grid takes longer than a quiet hour. So every cell is a line of a file as soon as it is measured, and
parts that ran one after the other are read together: of a cell that was measured more than once the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["SECONDS_MORE", "SLOWER_MAX", "Cell", "Run", "busy_seconds", "keep", "kept_cells", "report"]

SLOWER_MAX, SECONDS_MORE = 1.3, 0.1
_TICKS = 100.0  # per second, in /proc


@dataclass(frozen=True)
class Run:
    """Seconds of one engine: by the clock, and of all processors (0 where that is not known)."""

    seconds: float
    busy: float = 0.0


@dataclass(frozen=True)
class Cell:
    """The figures of one verb on this many rows. ``spark`` is ``None`` where it was left out: its start takes longer.

    ``works`` are the workloads of the stages, as the choice of an engine saw them.
    """

    site: str
    verb: str
    rows: int
    local: Run
    spark: Run | None
    default: Run
    why: str
    works: list[dict[str, Any]] = field(default_factory=list)

    @property
    def better(self) -> float:
        """Seconds of the faster engine. The default is one of them, and its own figure may be the smaller one."""
        return min(self.local.seconds, self.local.seconds if self.spark is None else self.spark.seconds)

    @property
    def holds(self) -> bool:
        """Whether the default keeps the promise."""
        return self.default.seconds <= SLOWER_MAX * self.better + SECONDS_MORE

    def __str__(self) -> str:
        spark = "  (start)" if self.spark is None else f"{self.spark.seconds:8.2f}s"
        busy = "" if self.spark is None else f" (processors {self.local.busy:.2f}, {self.spark.busy:.2f})"
        return (
            f"   {self.site:<8}{self.verb:<12}{self.rows:>9} rows  local {self.local.seconds:7.2f}s  "
            f"spark {spark}{busy}  "
            f"default {self.default.seconds:7.2f}s  {self.default.seconds / self.better:5.2f}x  "
            f"{'OK  ' if self.holds else 'OVER'}  {self.why}"
        )


def keep(cell: Cell, results: Path | None) -> None:
    """Print a cell, and add it to the file."""
    print(cell, flush=True)
    if results is not None:
        with results.open("a") as file:
            file.write(json.dumps(asdict(cell)) + "\n")


def kept_cells(results: Path) -> list[Cell]:
    """The cells of a file: the last of each."""
    found: dict[tuple[str, str, int], Cell] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        values = json.loads(line)
        runs = {name: None if values[name] is None else Run(**values[name]) for name in ("local", "spark", "default")}
        cell = Cell(**{**values, **runs})
        found[cell.site, cell.verb, cell.rows] = cell
    return list(found.values())


def report(results: Path, sites: Sequence[str], verbs: Sequence[str], sizes: Iterable[int]) -> bool:
    """Print a grid whose parts were measured one after the other; ``True`` if every cell is there and holds."""
    cells = {(cell.site, cell.verb, cell.rows): cell for cell in kept_cells(results)}
    wanted = [(site, verb, rows) for site in sites for verb in verbs for rows in sizes]
    for key in wanted:
        print(cells.get(key, f"   {key[0]:<8}{key[1]:<12}{key[2]:>9} rows  not measured"))
    missing = [key for key in wanted if key not in cells]
    over = [key for key in wanted if key in cells and not cells[key].holds]
    hold = len(wanted) - len(missing) - len(over)
    print(f"   {hold} of {len(wanted)} cells hold, {len(over)} over, {len(missing)} missing")
    return not missing and not over


def busy_seconds(pid: int) -> float:
    """What a process and all that it started have taken of the processors so far, by ``/proc``; 0 without it."""
    times: dict[int, tuple[int, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        times[int(stat.parent.name)] = int(values[1]), sum(map(int, values[11:15])) / _TICKS
    below, total = [pid], 0.0
    while below:
        one = below.pop()
        total += times.get(one, (0, 0.0))[1]
        below += [child for child, (parent, _) in times.items() if parent == one]
    return total
