"""The cells of ``python -m benchmarks engines``: figures of one verb on one size at one site, kept in a file.

A run of the whole grid takes longer than a quiet hour. So every cell is a line of a file as soon as it is measured, and
parts that ran one after the other are read together: of a cell that was measured more than once the last one counts.
A run that has such a file leaves out what it holds, so the same command again goes on where the last one ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["SITES", "VERBS", "Cell", "Given", "Run", "busy_seconds", "given_only", "keep", "kept_cells", "report"]

SITES = ("none", "local", "cluster")
VERBS = ("write", "scan", "delete", "update", "merge", "add_columns")
ROWS = (10, 1000, 100_000, 1_000_000, 10_000_000)
RUNS = 3
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


@dataclass(frozen=True)
class Given:
    """What is to be run, and where results are kept. ``until`` is a time of the clock after which no cell begins."""

    sites: Sequence[str] = SITES
    verbs: Sequence[str] = VERBS
    sizes: Sequence[int] = ROWS
    runs: int = RUNS
    results: Path | None = None
    until: float | None = None

    @property
    def has_time(self) -> bool:
        """Whether something more may begin."""
        return self.until is None or time.time() < self.until

    def cells(self, site: str) -> Iterator[tuple[str, int]]:
        """Verbs and rows of a site, small tables first, that the file of results does not have; while time is left."""
        cells = [] if self.results is None else kept_cells(self.results)
        known = {(cell.verb, cell.rows) for cell in cells if cell.site == site}
        for rows in sorted(self.sizes):
            for verb in self.verbs:
                if (verb, rows) not in known and self.has_time:
                    yield verb, rows

    def arguments(self, site: str) -> list[str]:
        """The command line of a process that runs one site."""
        found = ["--site", site, "--runs", str(self.runs), "--verbs", ",".join(self.verbs)]
        found += ["--rows", ",".join(map(str, self.sizes))]
        found += [] if self.results is None else ["--results", str(self.results)]
        return found + ([] if self.until is None else ["--until", str(self.until)])


def given_only(only: str | None, **more: Any) -> Given:
    """The part of the grid that names of sites and verbs and numbers of rows stand for; all where none is named.

    >>> given_only("local,merge,10,1000")
    Given(sites=('local',), verbs=('merge',), sizes=(10, 1000), runs=3, results=None, until=None)
    """
    names = [] if only is None else [name.strip() for name in only.split(",")]
    unknown = [name for name in names if name not in SITES + VERBS and not name.isdecimal()]
    if unknown:
        raise SystemExit(f"No site, verb or number of rows: {', '.join(unknown)}. There are {SITES}, {VERBS}, {ROWS}.")
    return Given(
        sites=tuple(name for name in names if name in SITES) or SITES,
        verbs=tuple(name for name in names if name in VERBS) or VERBS,
        sizes=tuple(int(name) for name in names if name.isdecimal()) or ROWS,
        **more,
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
    for line in results.read_text().splitlines() if results.is_file() else ():
        values = json.loads(line)
        runs = {name: None if values[name] is None else Run(**values[name]) for name in ("local", "spark", "default")}
        cell = Cell(**{**values, **runs})
        found[cell.site, cell.verb, cell.rows] = cell
    return list(found.values())


def report(given: Given) -> bool:
    """Print a grid whose parts were measured one after the other; ``True`` if every cell is there and holds."""
    cells = {(cell.site, cell.verb, cell.rows): cell for cell in kept_cells(given.results or Path())}
    wanted = [(site, verb, rows) for site in given.sites for verb in given.verbs for rows in given.sizes]
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
