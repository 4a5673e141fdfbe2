"""Peak memory of a compaction of 5 GB into fragments of 1M rows, and what a second core adds on Spark.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks compaction_memory``. It needs some 15
GB below the directory for temporary files, and some minutes. The compaction runs in a process of its own on the local
engine, and prints the most memory that the process ever held. The promise: below 1 GB. Then four groups of it are
compacted on Spark: ``local[2]`` is at least 1.2 times as fast as ``local[1]``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks._beside import copied
from benchmarks.update_memory import ROWS, batches

import tablewright

__all__ = ["BY_DEFAULT", "run"]

BY_DEFAULT = False
PEAK_BYTES_MAX, SPEED_UP_MIN, RUNS = 1_000_000_000, 1.2, 3

_LOCAL = """
import resource, sys, time
import tablewright
dataset = tablewright.dataset(sys.argv[1], engine="local")
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
metrics = dataset.optimize.compact_files()
seconds, peak = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(metrics.rows, seconds, held * 1024, peak * 1024)
"""
_SPARK = """
import sys, time
import tablewright
from tablewright.engine.spark.session import embedded_session
session = embedded_session(sys.argv[2])
session.range(10).mapInPandas(lambda parts: parts, "id long").count()
dataset = tablewright.dataset(sys.argv[1], engine="spark", spark=session)
started = time.perf_counter()
metrics = dataset.optimize.compact_files(target_rows_per_fragment=int(sys.argv[3]))
print(metrics.rows, time.perf_counter() - started, metrics.fragments_added)
"""


def _figures(script: str, *arguments: str) -> list[float]:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [float(word) for word in done.stdout.split()[-4:]]


def _memory(base: Path, directory: Path) -> bool:
    rows, seconds, held, peak = _figures(_LOCAL, str(copied(base, directory / "local")))
    print(
        f"   local: {rows:.0f} rows in {seconds:.1f} s, peak {peak / 1e6:.0f} MB, {held / 1e6:.0f} MB of it before "
        f"(at most {PEAK_BYTES_MAX / 1e6:.0f} MB)",
        flush=True,
    )
    return peak <= PEAK_BYTES_MAX


def _speed_up(base: Path, directory: Path, rows: int) -> bool:
    seconds: dict[str, list[float]] = {"local[1]": [], "local[2]": []}
    for _ in range(RUNS):
        for master, times in seconds.items():
            place = copied(base, directory / "spark")
            times.append(_figures(_SPARK, str(place), master, str(max(1, rows // 8)))[1])
    one, two = (median(times) for times in seconds.values())
    ratio = one / two
    print(f"   Spark: local[1] {one:.1f} s, local[2] {two:.1f} s, {ratio:.2f}x (at least {SPEED_UP_MIN})", flush=True)
    return ratio >= SPEED_UP_MIN


def run(rows: int = ROWS) -> bool:
    """Print peak and speed-up, and whether both keep the promise."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        base = directory / "base"
        dataset = tablewright.write_dataset(batches(rows), base, max_rows_per_file=max(1, rows // 40), engine="local")
        dataset.delete("(id * 7919) % 100 < 12")
        size = sum(path.stat().st_size for path in (base / "data").iterdir())
        print(f"   {rows} rows, {size / 1e9:.2f} GB in 40 fragments", flush=True)
        return all([_memory(base, directory), _speed_up(base, directory, rows)])
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
