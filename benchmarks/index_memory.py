"""Build of a BTREE on 50M rows on Spark: the memory of each worker, and what a second core adds.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks index_memory``. It needs some 4 GB
below the directory for temporary files, and some minutes. Builds on ``local[1]`` and ``local[2]`` alternate, each with
a session and processes of its own. The first build of a session shows the memory: to look at it again and again takes
a part of a core. The second one is timed; the first takes up to a second more, on one core or two. No Python worker may
have more than 1 GB of data (RLIMIT_DATA). Tables are in memory where it has room, unless ``TMPDIR`` is set.

The promises: each worker holds at most 1 GB, and ``local[2]`` is at least 1.3 times as fast as ``local[1]``. Printed
are also the most that the driver's Python held, and the seconds of each stage.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._beside import copied
from benchmarks._index_tables import key_table
from benchmarks._limited_daemon import WORKER_BYTES_MAX
from benchmarks._memory import memory_directory

__all__ = ["BY_DEFAULT", "run"]

BY_DEFAULT = False
ROWS, RUNS, SPEED_UP_MIN = 50_000_000, 3, 1.3
MASTERS = ("local[1]", "local[2]")

_BUILD = """
import json, sys, time
import tablewright
from benchmarks import _limited_daemon
from benchmarks.merge_memory import Peaks
from tablewright.engine.spark.session import embedded_session
place, master, temporary = sys.argv[1:]
daemon = _limited_daemon.__name__  # not an argument: workers are told from this process by it
settings = {"spark.driver.memory": "1g", "spark.python.daemon.module": daemon, "spark.local.dir": temporary}
session = embedded_session(master, settings)
session.range(10).mapInPandas(lambda parts: parts, "id long").count()
dataset = tablewright.dataset(place, engine=session, storage_options={"fsync": "false"})
begun, stages = {}, {}
def note(progress):
    if progress.event == "start":
        begun[progress.stage] = time.perf_counter()
    elif progress.event == "complete":
        stages[progress.stage] = time.perf_counter() - begun[progress.stage]
with Peaks() as peaks:
    dataset.create_scalar_index("key", "BTREE")
started = time.perf_counter()
dataset.create_scalar_index("key", "BTREE", progress_callback=note)
seconds = time.perf_counter() - started
assert dataset.count_rows("key = 5") == 1
print(json.dumps({"seconds": seconds, "worker": peaks.worker, "driver": peaks.driver, "stages": stages}))
session.stop()
"""


def _built(base: Path, directory: Path, master: str) -> dict[str, Any]:
    place = copied(base, directory / "copy")
    command = [sys.executable, "-c", _BUILD, str(place), master, str(directory / "spark")]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"The build on {master} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found["stages"].items())
    print(
        f"   {master}: {found['seconds']:.1f} s ({stages})   peak of a worker {found['worker'] / 1e6:.0f} MB, of the "
        f"driver {found['driver'] / 1e6:.0f} MB",
        flush=True,
    )
    return found


def run(rows: int = ROWS) -> bool:
    """Print peaks and speed-up, and whether both keep the promise."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-", dir=memory_directory()))
    try:
        base = key_table(directory / "base", rows)
        found = [{master: _built(base, directory, master) for master in MASTERS} for _ in range(RUNS)]
        one, two = (median(each[master]["seconds"] for each in found) for master in MASTERS)
        peak = max(each[master]["worker"] for each in found for master in MASTERS)
        good = 0 < peak <= WORKER_BYTES_MAX and one / two >= SPEED_UP_MIN
        print(
            f"   {rows:,} rows: local[1] {one:.1f} s, local[2] {two:.1f} s, {one / two:.2f}x (at least {SPEED_UP_MIN}) "
            f"  peak of a worker {peak / 1e6:.0f} MB (at most {WORKER_BYTES_MAX / 1e6:.0f} MB)"
            f"{'' if good else '  BROKEN'}",
            flush=True,
        )
        return good
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
