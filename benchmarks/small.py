"""Small and frequent work beside pylance: one row at a time, many small fragments, many versions, narrow reads.

``python -m benchmarks small`` prints every row of the table twice. *Cold* is a process of its own for each measurement:
libraries are imported and the same is done to a tiny table first, which is not counted ("ready" says what it takes).
*Warm* is a series in one process; each change of a series changes other rows of one copy of the table. Runs of the two
alternate, and figures are medians. Datasets are opened before the clock starts, except where opening is measured. The
second ratio of a warm row is that of processor time, which tells more while the machine is busy.

Where rows are read, the codec's floor stands beside: the same files opened and read by ``lance.file`` alone, by one
thread and by as many as we use. ``--only scan-many,filter`` runs these rows only, ``--warm`` skips the cold ones.
"""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks._beside import copied
from benchmarks._small_rows import ROWS, THREADS, Row, Side, floor
from benchmarks._small_tables import TABLES, make_table

__all__ = ["run"]

BOTH = ("tablewright", "lance")
RUNS_COLD = 7
RUNS_MIN, RUNS_MAX, RUNS_FLOOR = 4, 21, 2
SECONDS = 2.0


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock, and of the processors."""
    started = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started[0], time.process_time() - started[1]


def _place(row: Row, directory: Path, name: str, table: str) -> Path:
    """Where a side works: at the table itself, or at a copy of its own where it changes rows."""
    base = directory / table
    return copied(base, directory / name) if row.changes else base


def _warm(row: Row, directory: Path) -> dict[str, float]:
    """Median seconds of both and of the floor, in turns; as many turns as some seconds allow."""
    rows = TABLES[row.table].rows
    sides = [Side(name, _place(row, directory, f"warm-{name}", row.table), rows) for name in BOTH]
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in (*BOTH, "one", "all")}
    started = time.perf_counter()
    for number in range(RUNS_MAX):
        gc.collect()
        for side in sides if number % 2 else reversed(sides):
            if row.on_copies:
                side.dataset, side.place = None, copied(directory / row.table, side.place)
            taken[side.module].append(_timed(row.act(side, number)))
        if row.columns is not None and len(taken["one"]) <= RUNS_FLOOR:
            for name, threads in (("one", 1), ("all", THREADS)):
                taken[name].append(_timed(lambda threads=threads: _floor(row, directory, threads)))
        if number >= RUNS_MIN and time.perf_counter() - started > SECONDS:
            break
    found = {name: median(seconds for seconds, _ in runs[1:]) for name, runs in taken.items() if runs}
    busy = {f"{name} busy": median(seconds for _, seconds in taken[name][1:]) for name in BOTH}
    return {**found, **busy}


def _floor(row: Row, directory: Path, threads: int) -> int:
    return floor(directory / row.table, row.columns or (), threads, taken=row.name == "take")


def _cold(row: Row, directory: Path) -> dict[str, float]:
    """Median seconds of both and of the floor, each in a process of its own."""
    found: dict[str, list[float]] = {}
    for _ in range(RUNS_COLD):
        for who in (*BOTH, *(("one", "all") if row.columns is not None else ())):
            place = _place(row, directory, "cold", row.table)
            tiny = _place(row, directory, "cold-tiny", f"tiny-{row.table}")
            for name, seconds in _child(who, row.name, place, tiny).items():
                found.setdefault({"act": who, "ready": f"{who} ready"}.get(name, name), []).append(seconds)
    return {name: median(seconds) for name, seconds in found.items()}


def _child(who: str, name: str, place: Path, tiny: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks._small_cold", who, name, str(place), str(tiny)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _line(row: Row, kind: str, found: dict[str, float]) -> bool:
    """Print one line, and say whether it keeps what is asked."""
    ours, theirs = (found[name] for name in BOTH)
    good, text = True, ""
    if kind == "warm":
        good = theirs / ours >= row.asked.warm
        text = f" (asked {row.asked.warm}) {found['lance busy'] / found['tablewright busy']:5.2f}x busy"
    if "one" in found:
        best = min(found["one"], found["all"])
        text += f"   floor {found['one'] * 1000:7.1f} / {found['all'] * 1000:7.1f} ms   {ours / best:5.2f} floors"
        if kind == "cold" and row.asked.cold is not None:
            good = ours <= row.asked.cold * best
            text += f" (asked {row.asked.cold})"
    if kind == "cold":
        text += f"   ready {found['tablewright ready']:.1f} / {found['lance ready']:.1f} s"
    print(
        f"   {row.name:<17}{row.title if kind == 'warm' else '':<37}{kind}  ours {ours * 1000:8.2f} ms  "
        f"pylance {theirs * 1000:8.2f} ms  {theirs / ours:6.2f}x{text}{'' if good else '  BROKEN'}",
        flush=True,
    )
    return good


def _chosen(only: str | None) -> tuple[Row, ...]:
    """The rows asked for, by their names."""
    if only is None:
        return ROWS
    known = {row.name: row for row in ROWS}
    names = only.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"No row named {', '.join(unknown)}; there are {', '.join(known)}.")
    return tuple(known[name] for name in names)


def run(only: str | None = None, warm: bool = False) -> bool:
    """Print the figures of all rows, or of those in ``only``, and whether they keep what is asked."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        kept = []
        for row in _chosen(only):
            make_table(row.table, directory)
            kept.append(_line(row, "warm", _warm(row, directory)))
            if not warm:
                kept.append(_line(row, "cold", _cold(row, directory)))
        return all(kept)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
