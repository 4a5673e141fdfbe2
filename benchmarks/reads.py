"""Reads beside pylance: 1M rows of (int, float, text, 128-float vector), with and without 1 % deleted rows.

Both readers open the same table, and their runs alternate, so that whatever else the machine does hits both. The
promise is at least 0.9 times pylance's speed (median of 5) for the full scan and for one column, in batches and as a
table. Filtered scans are shown beside them, without a promise.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import tablewright

__all__ = ["ROWS", "run", "table"]

ROWS, DIMENSIONS = 1_000_000, 128
RATIO_MIN = 0.9
RUNS = 5
RUN_SECONDS_MIN = 0.1


def table(rows: int) -> pa.Table:
    """The rows that workloads share."""
    chance = np.random.default_rng(0)
    numbers = np.arange(rows)
    text = pa.array(np.char.add("document number ", numbers.astype(str)))
    vectors = pa.FixedSizeListArray.from_arrays(chance.random(rows * DIMENSIONS, np.float32), DIMENSIONS)
    return pa.table({"id": numbers, "score": chance.random(rows), "text": text, "vector": vectors})


def _drain(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _read(dataset: Any, kind: str, options: dict[str, Any]) -> int:
    """Both have the same face."""
    if kind == "count":
        return int(dataset.count_rows(options["filter"]))
    if kind == "batches":
        return _drain(dataset.to_batches(**options))
    return int(dataset.to_table(**options).num_rows)


def _seconds(call: Callable[[], int], repeats: int) -> float:
    """Seconds per call."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def _compare(ours: Callable[[], int], theirs: Callable[[], int]) -> tuple[float, float]:
    """Median seconds of each, runs alternating, after one call of each to warm up. Short calls are repeated."""
    if ours() != theirs():
        raise AssertionError("we and pylance read different numbers of rows")
    repeats = max(1, round(RUN_SECONDS_MIN / _seconds(theirs, 1)))
    times = [(_seconds(ours, repeats), _seconds(theirs, repeats)) for _ in range(RUNS)]
    return median(time for time, _ in times), median(time for _, time in times)


WORKLOADS: tuple[tuple[str, str, dict[str, Any], bool], ...] = (
    ("full scan, batches", "batches", {}, True),
    ("full scan, table", "table", {}, True),
    ("one column, batches", "batches", {"columns": ["id"]}, True),
    ("one column, table", "table", {"columns": ["id"]}, True),
    ("filter 0.1 %, table", "table", {"filter": "id % 1000 = 5"}, False),
    ("filter 50 %, one column", "table", {"filter": "score < 0.5", "columns": ["id"]}, False),
    ("count 50 %", "count", {"filter": "score < 0.5"}, False),
)


def _measure(path: Path, name: str) -> bool:
    ours_open, theirs_open = tablewright.dataset(path, engine="local"), lance.dataset(path)
    kept = True
    for workload, kind, options, promised in WORKLOADS:
        ours, theirs = _compare(
            partial(_read, ours_open, kind, options),
            partial(_read, theirs_open, kind, options),
        )
        ratio = theirs / ours
        good = ratio >= RATIO_MIN or not promised
        kept = kept and good
        mark = "" if promised else "  (no promise)"
        print(
            f"   {name:<18} {workload:<24} ours {ours * 1000:8.1f} ms   pylance {theirs * 1000:8.1f} ms   "
            f"{ratio:5.2f}x{mark}{'' if good else '  BELOW 0.9x'}",
            flush=True,
        )
    return kept


def run(rows: int = ROWS) -> bool:
    """Print the ratios, and whether all promised ones are kept."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        path = directory / "t.lance"
        dataset = lance.write_dataset(table(rows), path)
        whole = _measure(path, "all rows")
        dataset.delete("id % 100 = 7")
        return _measure(path, "1 % deleted rows") and whole
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
