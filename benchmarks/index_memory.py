"""Build of a BTREE on 50M rows on Spark: the memory of each worker, and what a second core adds.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks index_memory``. It needs some 4 GB
below the directory for temporary files, and some minutes. Two sessions, ``local[1]`` and ``local[2]``, live at a time
and build in turns, so that both see the same hours of a shared machine. The first build of a session shows the memory:
to look at it again and again takes a part of a core. The second one warms up: Java compiles Spark's code for 0.5 to
0.8 s of a processor, which ``local[1]`` leaves free. Of the next five the median counts; the seconds of all are
printed. No Python worker may have more than 1 GB of data (RLIMIT_DATA). Tables are in memory where it has room, unless
``TMPDIR`` is set.

The promises: each worker holds at most 1 GB, and ``local[2]`` is at least 1.3 times as fast as ``local[1]``. Printed
are also the most that the driver's Python held, and the seconds of each stage of the last build.
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
ROWS, SPEED_UP_MIN = 50_000_000, 1.3
PAIRS, WARMING, TIMED = 2, 2, 5
MASTERS = ("local[1]", "local[2]")

_BUILDS = """
import json, sys, time
from datetime import timedelta
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
def build():
    started = time.perf_counter()
    dataset.create_scalar_index("key", "BTREE", progress_callback=note)
    return time.perf_counter() - started
def answer(seconds):
    dataset.cleanup_old_versions(older_than=timedelta(0))  # the index before: its memory serves the next one
    found = {"seconds": seconds, "worker": peaks.worker, "driver": peaks.driver, "stages": stages}
    print(json.dumps(found), flush=True)
sys.stdin.readline()
with Peaks() as peaks:
    seconds = build()
answer(seconds)
for _ in sys.stdin:
    answer(build())
assert dataset.count_rows("key = 5") == 1
session.stop()
"""


class _Session:
    """A process with a Spark session, which builds when it is asked to."""

    def __init__(self, base: Path, directory: Path, master: str) -> None:
        place = copied(base, directory / master)
        command = [sys.executable, "-c", _BUILDS, str(place), master, str(directory / f"spark-{master}")]
        self._errors = directory / f"{master}.txt"
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("w"),
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        self.master = master
        self.builds: list[dict[str, Any]] = []

    def build(self) -> None:
        """Build once."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None, "both are pipes"
        stdin.write("build\n")
        stdin.flush()
        answered = stdout.readline()
        if not answered:
            raise RuntimeError(f"The build on {self.master} failed:\n{self._errors.read_text()[-3000:]}")
        self.builds.append(json.loads(answered))

    def stop(self) -> None:
        """Let the process check its index and end."""
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        if self._process.wait(timeout=60):
            raise RuntimeError(f"The session on {self.master} failed:\n{self._errors.read_text()[-3000:]}")

    def kill(self) -> None:
        """End it for certain."""
        self._process.kill()
        self._process.wait()

    @property
    def timed(self) -> list[float]:
        """The seconds of the builds that count."""
        return [each["seconds"] for each in self.builds[WARMING:]]

    @property
    def worker(self) -> int:
        """The most bytes that a worker ever held."""
        return int(self.builds[0]["worker"])

    def __str__(self) -> str:
        seconds = ", ".join(f"{each['seconds']:.1f}" for each in self.builds)
        stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.builds[-1]["stages"].items())
        peaks = f"worker {self.worker / 1e6:.0f} MB, driver {self.builds[0]['driver'] / 1e6:.0f} MB"
        return f"{self.master}: {seconds} s (last: {stages}; peaks: {peaks})"


def _built(base: Path, directory: Path) -> list[_Session]:
    """Builds of both sessions in turns."""
    sessions = [_Session(base, directory, master) for master in MASTERS]
    try:
        for _ in range(WARMING + TIMED):
            for session in sessions:
                session.build()
        for session in sessions:
            session.stop()
            print(f"   {session}", flush=True)
        return sessions
    finally:
        for session in sessions:
            session.kill()


def run(rows: int = ROWS) -> bool:
    """Print peaks and speed-up, and whether both keep the promise."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-", dir=memory_directory()))
    try:
        base = key_table(directory / "base", rows)
        pairs = []
        for number in range(PAIRS):
            own = directory / str(number)
            own.mkdir()
            pairs.append(_built(base, own))
            shutil.rmtree(own, ignore_errors=True)  # Spark may be removing its own directory
        one, two = (median(seconds for each in some for seconds in each.timed) for some in zip(*pairs, strict=True))
        peak = max(session.worker for pair in pairs for session in pair)
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
