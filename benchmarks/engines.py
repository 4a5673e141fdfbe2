"""The default engine beside the better one: rows × verbs × where Spark is.

Each cell runs with ``engine="local"``, with ``engine="spark"``, and by default, in turns, every time on a copy of the
table. The promise: the default takes at most 1.3 times as long as the better engine, and 0.1 s more. Where a session is
active, a DataFrame of 10 rows is merged within 0.2 s, warm.

- *none*: no session. Every run is a fresh process, so a start of Spark counts. Spark is left out where this process is
  done before a session has started, which is measured first.
- *local*: a warm session on this machine's cores.
- *cluster*: a warm session on a standalone cluster of two workers with a core each.

``python -m benchmarks.engines --rows-max 10000000 --sites local --verbs merge,update`` runs some of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks._beside import copied
from benchmarks._cluster import standalone_cluster

import tablewright as tw
from tablewright.engine.spark.session import embedded_session

__all__ = ["run"]

BY_DEFAULT = False
ROWS = (10, 1000, 100_000, 1_000_000, 10_000_000)
ROWS_MAX, RUNS, DIMENSIONS, FRAGMENTS = 1_000_000, 3, 16, 8
SITES = ("none", "local", "cluster")
SLOWER_MAX, SECONDS_MORE, FRAME_SECONDS_MAX = 1.3, 0.1, 0.2
ENGINES = ("local", "spark", "default")


# --------------------------------------------------------------------------------------------------------------- verbs
def _table(first: int, rows: int) -> pa.Table:
    chance = np.random.default_rng(first)
    ids = np.arange(first, first + rows)
    return pa.table(
        {
            "id": ids,
            "score": chance.random(rows),
            "text": pa.array(np.char.add("text ", ids.astype(str))),
            "vector": pa.FixedSizeListArray.from_arrays(chance.random(rows * DIMENSIONS, np.float32), DIMENSIONS),
        }
    )


def _upsert(ds: Any, rows: Any) -> Any:
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


CHANGES: dict[str, Callable[[Any, int], Any]] = {
    "scan": lambda ds, rows: ds.count_rows("score > 0.5 AND text <> 'x'"),
    "delete": lambda ds, rows: ds.delete("id % 10 = 3"),
    "update": lambda ds, rows: ds.update({"score": "score * 2"}, where="id % 2 = 1"),
    "add_columns": lambda ds, rows: ds.add_columns({"twice": "score * 2", "next": "id + 1"}),
}
VERBS = ("write", "scan", "delete", "update", "merge", "add_columns")


def _timed(verb: str, rows: int, base: Path, engine: str) -> float:
    """Seconds of one run on a copy of the table."""
    asked = None if engine == "default" else engine
    place = base.with_name(f"{base.name}-{verb}-{engine}")
    shutil.rmtree(place, ignore_errors=True)
    if verb == "write":
        data = _table(0, rows)
        act: Callable[[], Any] = lambda: tw.write_dataset(data, place, engine=asked)  # noqa: E731
    elif verb == "merge":
        source = _table(rows // 2, rows)
        ds = tw.dataset(copied(base, place), engine=asked)
        act = lambda: _upsert(ds, source)  # noqa: E731
    else:
        ds = tw.dataset(copied(base, place), engine=asked)
        act = lambda: CHANGES[verb](ds, rows)  # noqa: E731
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    shutil.rmtree(place, ignore_errors=True)
    return seconds


class _Reasons:
    """The engines that are chosen while it is open, with their reasons."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def __enter__(self) -> _Reasons:
        from tablewright.api import scanner
        from tablewright.jobs import table

        self._modules = (table, scanner)
        self._choose = table.choose_engine

        def choose(work: Any, engine: Any = None, **options: Any) -> Any:
            choice = self._choose(work, engine, **options)
            if engine is None:
                self.found.append((choice.engine.name, choice.why))
            return choice

        for module in self._modules:
            module.choose_engine = choose  # type: ignore[attr-defined]
        return self

    def __exit__(self, *error: object) -> None:
        for module in self._modules:
            module.choose_engine = self._choose  # type: ignore[attr-defined]

    def __str__(self) -> str:
        """The last stage decides what most of the time goes to."""
        if not self.found:
            return "local: the rows are in this process"
        names = "+".join(dict.fromkeys(name for name, _ in self.found))
        return f"{names}: {self.found[-1][1]}"


# --------------------------------------------------------------------------------------------------------------- cells
@dataclass(frozen=True)
class Cell:
    """The figures of one verb on this many rows. ``spark`` is ``None`` where it was left out."""

    site: str
    verb: str
    rows: int
    local: float
    spark: float | None
    default: float
    why: str

    @property
    def limit(self) -> float:
        """What the default may take."""
        return SLOWER_MAX * min(self.local, self.spark or self.local) + SECONDS_MORE

    def __str__(self) -> str:
        spark = "  (start)" if self.spark is None else f"{self.spark:8.2f}s"
        better = min(self.local, self.spark or self.local)
        return (
            f"   {self.site:<8}{self.verb:<12}{self.rows:>9} rows  local {self.local:7.2f}s  spark {spark}  "
            f"default {self.default:7.2f}s  {self.default / better:5.2f}x  "
            f"{'OK  ' if self.default <= self.limit else 'OVER'}  {self.why}"
        )


def _bases(folder: Path, sizes: Sequence[int]) -> dict[int, Path]:
    """The tables, in several fragments each."""
    bases = {rows: folder / f"base-{rows}" for rows in sizes}
    for rows, base in bases.items():
        tw.write_dataset(_table(0, rows), base, max_rows_per_file=max(1, rows // FRAGMENTS), engine="local")
    return bases


def _warm_cells(site: str, session: Any, bases: dict[int, Path], verbs: Sequence[str], runs: int) -> list[Cell]:
    cells = []
    for verb in verbs:
        for rows, base in bases.items():
            taken: dict[str, list[float]] = {engine: [] for engine in ENGINES}
            for number in range(runs + 1):
                for engine in ENGINES:
                    with _Reasons() as reasons:
                        seconds = _timed(verb, rows, base, engine)
                    if number:
                        taken[engine].append(seconds)
            figures = {engine: median(taken[engine]) for engine in ENGINES}
            cells.append(Cell(site, verb, rows, **figures, why=str(reasons)))
            print(cells[-1], flush=True)
    return cells


def _fresh(verb: str, rows: int, base: Path, engine: str) -> tuple[float, str]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engines", "--once", verb, str(rows), str(base), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, why = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), str(why)


def _cold_cells(bases: dict[int, Path], verbs: Sequence[str], runs: int) -> list[Cell]:
    """Cells without a session. A start of Spark is measured with the smallest scan."""
    smallest = min(bases)
    start, _ = _fresh("scan", smallest, bases[smallest], "spark")
    print(f"   none: a session starts, and counts {smallest} rows, in {start:.2f}s", flush=True)
    cells = []
    for verb in verbs:
        for rows, base in bases.items():
            local = min(_fresh(verb, rows, base, "local")[0] for _ in range(runs))
            spark = _fresh(verb, rows, base, "spark")[0] if local > start else None
            tries = [_fresh(verb, rows, base, "default") for _ in range(runs)]
            cells.append(Cell("none", verb, rows, local, spark, min(tries)[0], tries[0][1]))
            print(cells[-1], flush=True)
    return cells


def _frames(session: Any, base: Path, folder: Path) -> bool:
    """A DataFrame of 10 rows is merged, warm, however it was made."""
    rows = _table(5, 10).drop_columns(["vector"])
    frames = {
        "Arrow": session.createDataFrame(rows),
        "Python rows": session.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], rows.column_names),
        "a query": session.range(5, 15).selectExpr("id", "rand() AS score", "string(id) AS text"),
    }
    kept = True
    for name, frame in frames.items():
        ds = tw.dataset(copied(base, folder / "frames"))
        taken = []
        for _ in range(15):
            started = time.perf_counter()
            ds.merge_insert("id").when_matched_update_all().execute(frame)
            taken.append(time.perf_counter() - started)
        seconds = median(taken[5:])
        kept &= seconds <= FRAME_SECONDS_MAX
        line = f"   10 rows of a DataFrame from {name:<12} merged in {seconds:.3f}s (at most {FRAME_SECONDS_MAX})"
        print(line, flush=True)
    return kept


# ---------------------------------------------------------------------------------------------------------------- runs
def _site(site: str, sizes: Sequence[int], verbs: Sequence[str], runs: int) -> bool:
    """All cells of a site. A session is that of this process, so every site has a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tablewright-engines-"))
    try:
        bases = _bases(folder, sizes)
        if site == "none":
            return all(cell.default <= cell.limit for cell in _cold_cells(bases, verbs, runs))
        with ExitStack() as stack:
            master = "local[*]" if site == "local" else stack.enter_context(standalone_cluster())
            paths = os.pathsep.join(path for path in sys.path if path)
            session = embedded_session(master, {"spark.executor.memory": "1g", "spark.executorEnv.PYTHONPATH": paths})
            stack.callback(session.stop)
            session.range(1000).repartition(4).count()
            cells = _warm_cells(site, session, bases, verbs, runs)
            frames = _frames(session, bases[max(size for size in sizes if size <= ROWS_MAX)], folder)
            return all(cell.default <= cell.limit for cell in cells) and (frames or site != "local")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(rows_max: int = ROWS_MAX, sites: Sequence[str] = SITES, verbs: Sequence[str] = VERBS, runs: int = RUNS) -> bool:
    """Print the grid, and whether the default keeps its promise in every cell."""
    kept = True
    for site in sites:
        command = [sys.executable, "-m", "benchmarks.engines", "--sites", site, "--verbs", ",".join(verbs)]
        command += ["--rows-max", str(rows_max), "--runs", str(runs), "--here"]
        kept &= subprocess.run(command, check=False).returncode == 0
    return kept


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows-max", type=int, default=ROWS_MAX, help="leave out larger tables")
    parser.add_argument("--rows-min", type=int, default=0, help="leave out smaller tables")
    parser.add_argument("--sites", default=",".join(SITES))
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster is ended, tables are removed
    if given.once:
        verb, rows, base, engine = given.once
        with _Reasons() as reasons:
            seconds = _timed(verb, int(rows), Path(base), engine)
        print(json.dumps([seconds, str(reasons)]))
        return 0
    sites, verbs = given.sites.split(","), given.verbs.split(",")
    if not given.here:
        return 0 if run(given.rows_max, sites, verbs, given.runs) else 1
    sizes = [rows for rows in ROWS if given.rows_min <= rows <= given.rows_max]
    kept = [_site(site, sizes, verbs, given.runs) for site in sites]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
