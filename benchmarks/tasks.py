"""What a job and a task cost on a warm Spark session when they do nothing: ``job_seconds``, ``task_seconds`` of a plan.

Jobs of 1, 100 and 1,000 tasks go the way of all tasks (``SparkEngine.map``: each opens the world at a table's place,
and sends a result back). The first 3,000 tasks do not count: until then the JVM compiles, and takes two to four times
as long. Then every job runs some times, in turns; the fastest of each size counts, since other processes only ever add
time. A task occupies one core, so

- ``task_seconds`` = (seconds of 1,000 - seconds of 100) / 900 * cores,
- ``job_seconds`` = seconds of 1 - one task.

Processor time of this process, the JVM and the workers is printed beside: it tells what the machine had to do, however
many others share it. No promise is made: the constants of ``engine/costs.py`` come from here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from benchmarks._grid import busy_seconds

import tablewright as tw
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.session import embedded_session, session_cores
from tablewright.storage import open_store
from tablewright.world import World

__all__ = ["run"]

BY_DEFAULT = False
SIZES, ROUNDS, WARM_UPS = (1, 100, 1000), 5, 3


def nothing(task: int, world: World) -> int:
    """A task that does nothing, on a worker."""
    return task


def run(rounds: int | None = None) -> bool:
    """Print the figures."""
    paths = os.pathsep.join(path for path in sys.path if path)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "table"
        tw.write_dataset(pa.table({"a": [1]}), place)
        began = time.perf_counter()
        session = embedded_session(settings={"spark.executorEnv.PYTHONPATH": paths})
        try:
            engine, world, cores = SparkEngine(session), World(open_store(str(place))), session_cores(session)
            engine.map(nothing, range(1), world)
            print(f"   a session starts and ends its first task in {time.perf_counter() - began:.2f} s", flush=True)
            _print(_taken(engine, world, rounds or ROUNDS), cores)
        finally:
            session.stop()
    return True


def _taken(engine: SparkEngine, world: World, rounds: int) -> dict[int, tuple[float, float]]:
    """The seconds of a job of each size, and those of all processors: the least of some runs, once warm."""
    for _ in range(WARM_UPS):
        engine.map(nothing, range(max(SIZES)), world)
    taken: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, runs in taken.items():
            busy, began = busy_seconds(os.getpid()), time.perf_counter()
            assert engine.map(nothing, range(size), world) == list(range(size))
            seconds = time.perf_counter() - began
            runs.append((seconds, busy_seconds(os.getpid()) - busy))
    return {size: (min(one[0] for one in runs), min(one[1] for one in runs)) for size, runs in taken.items()}


def _print(taken: dict[int, tuple[float, float]], cores: int) -> None:
    for size, (seconds, busy) in taken.items():
        print(f"   {size:>5} tasks on {cores} cores: {seconds:.3f} s, processors {busy:.2f} s", flush=True)
    few, some, many = (taken[size] for size in SIZES)
    task = (many[0] - some[0]) / (SIZES[2] - SIZES[1]) * cores
    busy = (many[1] - some[1]) / (SIZES[2] - SIZES[1])
    print(f"   task_seconds {task:.4f} (processors {busy:.4f}), job_seconds {few[0] - task:.3f}", flush=True)
