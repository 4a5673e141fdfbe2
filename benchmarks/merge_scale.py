"""Merges that are larger than the memory of their executors: a standalone cluster of two executors with 1 GB each.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks merge_scale``; ``--only`` names rows,
``--rows`` is the number of target rows that stands for 50M. It needs some 15 GB below the directory for temporary
files.

- ``narrow``: a DataFrame of 20M rows into a table of 50M rows of three numbers; half of the keys are in the table.
- ``vectors``: 1M rows into 2M rows with 128 floats each, half of them new. Less than 5 % of the vectors' bytes may pass
  the shuffle.
- ``driver``: 100M rows in 1,000 fragments, of which 1M are updated by a merge. The driver's Python stays below 1 GB.

The heap of each executor and of the driver is 1 GB, and no Python worker may have more than 1 GB of data (RLIMIT_DATA).
Printed are the bytes that passed shuffles, from the event log, and the most memory that each kind of process held.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks import _limited_daemon
from benchmarks._cluster import standalone_cluster
from benchmarks._limited_daemon import WORKER_BYTES_MAX
from benchmarks.merge_memory import Peaks

import tablewright as tw
from tablewright.engine.spark.session import embedded_session

__all__ = ["BY_DEFAULT", "run"]

BY_DEFAULT = False
ROWS = 50_000_000
ROWS_PER_BATCH, ROWS_PER_VECTOR_BATCH, DIMENSIONS = 1_000_000, 50_000, 128
DRIVER_BYTES_MAX = 1 << 30
SHUFFLED_SHARE_MAX = 0.05
STEP = 2_654_435_761  # a prime, so that its multiples are a permutation of the numbers below most others

Batches = Iterator[pa.RecordBatch]


# --------------------------------------------------------------------------------------------------------------- tables
def _narrow(rows: int) -> Batches:
    for start in range(0, rows, ROWS_PER_BATCH):
        numbers = np.arange(start, min(rows, start + ROWS_PER_BATCH), dtype=np.uint64)
        keys = (numbers * np.uint64(STEP) % np.uint64(rows)).astype(np.int64)
        yield pa.record_batch({"id": keys, "a": keys % 1000, "b": keys // 7})


def _vectors(first: int, rows: int) -> Batches:
    chance = np.random.default_rng(first)
    for start in range(first, first + rows, ROWS_PER_VECTOR_BATCH):
        ids = np.arange(start, min(first + rows, start + ROWS_PER_VECTOR_BATCH))
        values = chance.random(len(ids) * DIMENSIONS, np.float32)
        yield pa.record_batch({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(values, DIMENSIONS)})


def _written(place: Path, batches: Batches, per_file: int) -> str:
    made = tw.write_dataset(
        batches, str(place), max_rows_per_file=per_file, engine="local", storage_options={"fsync": "false"}
    )
    return str(made.uri)


# ---------------------------------------------------------------------------------------------------------- measuring
@dataclass(frozen=True)
class _Place:
    """Where tables and the session's own files are, and the factor of all sizes."""

    directory: Path
    rows: int
    session: Any

    def scaled(self, rows: int) -> int:
        return max(1000, rows * self.rows // ROWS)

    def shuffled_bytes(self) -> int:
        """What tasks have written for others to read, in all jobs up to now."""
        (log,) = (path for path in (self.directory / "events").rglob("*") if path.is_file() and "app" in path.name)
        total = 0
        for line in log.read_text().splitlines():
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
        return total


@contextmanager
def _cluster(directory: Path) -> Iterator[Any]:
    """A session whose driver and executors have 1 GB of heap each, and whose Python workers can't have more."""
    (directory / "events").mkdir()
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "spark.executorEnv.SPARK_LOCAL_DIRS": str(directory / "spark"),
        "spark.local.dir": str(directory / "spark"),
        "spark.python.daemon.module": _limited_daemon.__name__,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    with standalone_cluster("1g") as master:
        session = embedded_session(master, settings)
        try:
            yield session
        finally:
            session.stop()


def _merged(place: _Place, name: str, uri: str, source: Any, expected: dict[str, int]) -> tuple[bool, Peaks, int]:
    """Merge, and print how; whether counts are right and workers kept within their limit, the peaks, shuffled bytes."""
    table = tw.dataset(uri, engine=place.session, storage_options={"fsync": "false"})
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    before = place.shuffled_bytes()
    with Peaks() as peaks:
        started = time.perf_counter()
        done = merge.execute(source)
        seconds = time.perf_counter() - started
    counts = {name: done[f"num_{name}_rows"] for name in expected}
    rows = table.count_rows()
    good = counts == expected and peaks.worker <= WORKER_BYTES_MAX
    moved = place.shuffled_bytes() - before
    print(
        f"   {name}: {counts['updated']:,} updated, {counts['inserted']:,} inserted, {rows:,} rows, {seconds:.0f} s   "
        f"shuffled {moved / 1e6:,.0f} MB   peaks: worker {peaks.worker / 1e6:.0f} MB, driver's Python "
        f"{peaks.driver / 1e6:.0f} MB, driver's JVM {peaks.jvm / 1e6:.0f} MB{'' if good else '  BROKEN'}",
        flush=True,
    )
    return good, peaks, moved


def _narrow_merge(place: _Place) -> bool:
    rows, source = place.scaled(50_000_000), place.scaled(20_000_000)
    uri = _written(place.directory / "narrow.lance", _narrow(rows), ROWS_PER_BATCH)
    frame = place.session.range(rows - source // 2, rows + source - source // 2).selectExpr(
        "id", "-1L AS a", "id * 2 AS b"
    )
    expected = {"updated": source // 2, "inserted": source - source // 2}
    return _merged(place, f"{source:,} into {rows:,} narrow rows", uri, frame, expected)[0]


def _vector_merge(place: _Place) -> bool:
    rows, source = place.scaled(2_000_000), place.scaled(1_000_000)
    uri = _written(place.directory / "vectors.lance", _vectors(0, rows), max(1, rows // 8))
    first = rows - source // 2
    new = _written(place.directory / "new.lance", _vectors(first, source), max(1, source // 8))
    frame = tw.dataset(new).to_spark(place.session)
    expected = {"updated": source // 2, "inserted": source - source // 2}
    good, _, moved = _merged(place, f"{source:,} into {rows:,} rows with vectors", uri, frame, expected)
    share = moved / (source * DIMENSIONS * 4)
    print(f"   shuffled bytes are {share:.1%} of the vectors' (below {SHUFFLED_SHARE_MAX:.0%})", flush=True)
    return good and share < SHUFFLED_SHARE_MAX


def _driver(place: _Place) -> bool:
    rows, source = place.scaled(100_000_000), place.scaled(1_000_000)
    uri = _written(place.directory / "many.lance", _narrow(rows), max(1, rows // 1000))
    step = rows // source
    frame = place.session.range(0, rows, step).selectExpr("id", "-1L AS a", "id AS b")
    expected = {"updated": source, "inserted": 0}
    good, peaks, _ = _merged(place, f"{source:,} into {rows:,} rows in 1,000 fragments", uri, frame, expected)
    return good and peaks.driver <= DRIVER_BYTES_MAX


PARTS: dict[str, Callable[[_Place], bool]] = {"narrow": _narrow_merge, "vectors": _vector_merge, "driver": _driver}


def run(only: str | None = None, rows: int = ROWS) -> bool:
    """Print what each merge took, and whether all were exact and within their limits."""
    names = list(PARTS) if only is None else only.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        print(f"   There is no row {', '.join(unknown)}: there are {', '.join(PARTS)}.")
        return False
    kept = True
    for name in names:
        directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
        try:
            with _cluster(directory) as session:
                kept &= PARTS[name](_Place(directory, rows, session))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return kept


if __name__ == "__main__":
    run()
