"""The default engine beside the better one: rows × verbs × where Spark is.

Each cell runs with ``engine="local"``, with ``engine="spark"``, and by default, in turns, every time on a copy of the
table; the fastest of some runs counts, since other processes only ever add time. The promise: the default takes at
most 1.3 times as long as the better engine, and 0.1 s more. Where a session is active, a DataFrame of 10 rows is merged
within 0.2 s, warm.

- *none*: no session. Every run is a fresh process, so a start of Spark counts. Spark is left out where this process is
  done before a session has started, which is measured first.
- *local*: a warm session on this machine's cores.
- *cluster*: a warm session on a standalone cluster of two workers with a core each.

Tables of 10 million rows have two columns only. The whole grid takes longer than a quiet hour, so it runs in parts, by
names of sites and verbs and numbers of rows, small tables first; with a file of results a run leaves out what is there,
and ``--minutes`` ends it after the cell that is under way. The last line reads all parts together:

    python -m benchmarks engines --only local,merge,update,10,1000 --results grid.jsonl
    python -m benchmarks engines --results grid.jsonl --minutes 15
    python -m benchmarks engines --results grid.jsonl --report
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks._beside import copied
from benchmarks._cluster import standalone_cluster
from benchmarks._grid import Cell, Given, Run, busy_seconds, given_only, keep
from benchmarks._grid import report as print_report

import tablewright as tw
from tablewright.engine.spark.session import embedded_session

__all__ = ["run"]

BY_DEFAULT = False
FRAME_ROWS_MAX, NARROW_FROM, DIMENSIONS, FRAGMENTS = 1_000_000, 10_000_000, 16, 8
FRAME_SECONDS_MAX = 0.2
SMALLEST = 10
ENGINES = ("local", "spark", "default")


# --------------------------------------------------------------------------------------------------------------- verbs
def _table(first: int, rows: int) -> pa.Table:
    chance = np.random.default_rng(first)
    ids = np.arange(first, first + rows)
    narrow = {"id": ids, "score": chance.random(rows)}
    if rows >= NARROW_FROM:
        return pa.table(narrow)
    return pa.table(
        {
            **narrow,
            "text": pa.array(np.char.add("text ", ids.astype(str))),
            "vector": pa.FixedSizeListArray.from_arrays(chance.random(rows * DIMENSIONS, np.float32), DIMENSIONS),
        }
    )


def _upsert(ds: Any, rows: Any) -> Any:
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


CHANGES: dict[str, Callable[[Any, int], Any]] = {
    "scan": lambda ds, rows: ds.count_rows("score > 0.5 AND id <> 7"),
    "delete": lambda ds, rows: ds.delete("id % 10 = 3"),
    "update": lambda ds, rows: ds.update({"score": "score * 2"}, where="id % 2 = 1"),
    "add_columns": lambda ds, rows: ds.add_columns({"twice": "score * 2", "next": "id + 1"}),
}


def _timed(verb: str, rows: int, base: Path, engine: str) -> Run:
    """One run on a copy of the table."""
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
    gc.collect()
    busy, started = busy_seconds(os.getpid()), time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    busy = busy_seconds(os.getpid()) - busy
    shutil.rmtree(place, ignore_errors=True)
    return Run(seconds, busy)


class _Reasons:
    """The engines that are chosen while it is open, with their reasons."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.works: list[dict[str, Any]] = []

    def __enter__(self) -> _Reasons:
        from tablewright.api import scanner
        from tablewright.jobs import table

        self._modules = (table, scanner)
        self._choose = table.choose_engine

        def choose(work: Any, engine: Any = None, **options: Any) -> Any:
            choice = self._choose(work, engine, **options)
            self.works.append(asdict(work))
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
class _Bases(dict[int, Path]):
    """The tables by their numbers of rows, in several fragments each; made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, rows: int) -> Path:
        base = self[rows] = self._folder / f"base-{rows}"
        tw.write_dataset(_table(0, rows), base, max_rows_per_file=max(1, rows // FRAGMENTS), engine="local")
        return base


def _warm_cells(site: str, bases: _Bases, given: Given) -> Iterator[Cell]:
    for verb, rows in given.cells(site):
        taken: dict[str, list[Run]] = {engine: [] for engine in ENGINES}
        for number in range(given.runs + 1):
            for engine in ENGINES:
                with _Reasons() as reasons:
                    one = _timed(verb, rows, bases[rows], engine)
                if number:
                    taken[engine].append(one)
        best = {engine: min(runs, key=lambda one: one.seconds) for engine, runs in taken.items()}
        yield Cell(site, verb, rows, **best, why=str(reasons), works=reasons.works)


def _fresh(verb: str, rows: int, base: Path, engine: str) -> tuple[Run, str, list[dict[str, Any]]]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engines", "--once", verb, str(rows), str(base), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, why, works = json.loads(done.stdout.splitlines()[-1])
    return Run(seconds), why, works


def _cold_cells(bases: _Bases, given: Given) -> Iterator[Cell]:
    """Cells without a session. A start of Spark is measured with a scan of few rows."""
    start = _fresh("scan", SMALLEST, bases[SMALLEST], "spark")[0].seconds
    print(f"   none: a session starts, and counts {SMALLEST} rows, in {start:.2f}s", flush=True)
    for verb, rows in given.cells("none"):
        base = bases[rows]
        local = _best(_fresh(verb, rows, base, "local")[0] for _ in range(given.runs))
        spark = _fresh(verb, rows, base, "spark")[0] if local.seconds > start else None
        tries = [_fresh(verb, rows, base, "default") for _ in range(given.runs)]
        yield Cell("none", verb, rows, local, spark, _best(one[0] for one in tries), *tries[0][1:])


def _best(runs: Iterable[Run]) -> Run:
    return min(runs, key=lambda one: one.seconds)


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
def _site(site: str, given: Given) -> bool:
    """The cells of a site. A session is that of this process, so every site has a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tablewright-engines-"))
    try:
        bases = _Bases(folder)
        if next(given.cells(site), None) is None:
            return True
        if site == "none":
            return _kept(_cold_cells(bases, given), given)
        with ExitStack() as stack:
            master = "local[*]" if site == "local" else stack.enter_context(standalone_cluster())
            paths = os.pathsep.join(path for path in sys.path if path)
            session = embedded_session(master, {"spark.executor.memory": "1g", "spark.executorEnv.PYTHONPATH": paths})
            stack.callback(session.stop)
            session.range(1000).repartition(4).count()
            kept = _kept(_warm_cells(site, bases, given), given)
            small = [size for size in given.sizes if size <= FRAME_ROWS_MAX]
            if site == "local" and small and "merge" in given.verbs and given.has_time:
                kept &= _frames(session, bases[max(small)], folder)
            return kept
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(cells: Iterable[Cell], given: Given) -> bool:
    kept = True
    for cell in cells:
        keep(cell, given.results)
        kept &= cell.holds
    return kept


def run(
    only: str | None = None, results: Path | None = None, minutes: float | None = None, report: bool = False
) -> bool:
    """Print the grid, or a part of it, and whether the default keeps its promise in every cell that was measured."""
    until = None if minutes is None else time.time() + 60 * minutes
    given = given_only(only, results=results, until=until)
    return print_report(given) if report else _in_processes(given)


def _in_processes(given: Given) -> bool:
    """Every site in a process of its own: a session is that of its process."""
    kept = True
    for site in given.sites:
        command = [sys.executable, "-m", "benchmarks.engines", *given.arguments(site)]
        kept &= subprocess.run(command, check=False).returncode == 0
    return kept


def main() -> int:
    """One site, or one run, in this process: what :func:`run` starts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--site")
    parser.add_argument("--rows")
    parser.add_argument("--verbs")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--until", type=float)
    parser.add_argument("--once", nargs=4)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the cluster is ended, tables are removed
    if asked.once:
        verb, rows, base, engine = asked.once
        with _Reasons() as reasons:
            one = _timed(verb, int(rows), Path(base), engine)
        print(json.dumps([one.seconds, str(reasons), reasons.works]))
        return 0
    verbs, sizes = asked.verbs.split(","), [int(rows) for rows in asked.rows.split(",")]
    given = Given([asked.site], verbs, sizes, asked.runs, asked.results, asked.until)
    return 0 if _site(asked.site, given) else 1


if __name__ == "__main__":
    sys.exit(main())
