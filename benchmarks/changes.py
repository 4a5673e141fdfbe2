"""Deletes and updates beside pylance: 1M rows of (int, float, text, 128-float vector) in 4 fragments.

Every run works on a copy of its own (hard links, so it costs nothing), opened before the clock starts; runs of the two
alternate, so that whatever else the machine does hits both. The promises, as ratios of medians: a delete of one row, a
delete of 1 % and an update of 1 % of the rows are at least as fast as pylance's; an update of one float column in half
of the rows is at least 10 times as fast, and writes at most 1.2 times the bytes of that column.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import lance
from benchmarks.reads import ROWS, table

import tablewright

__all__ = ["run"]

FRAGMENTS = 4
RUNS = 7
COLUMN_BYTES_MAX = 1.2


@dataclass(frozen=True)
class Workload:
    """A change that both make, and how many times as fast we promise to be. ``None``: shown without a promise."""

    name: str
    change: Callable[[Any], dict[str, int]]
    ratio_min: float | None
    column_bytes: int | None = None


WORKLOADS = (
    Workload("delete one row", lambda ds: ds.delete("id = 500001"), 1.0),
    Workload("delete 1 %", lambda ds: ds.delete("id % 100 = 7"), 1.0),
    Workload("delete 1 %, by float", lambda ds: ds.delete("score < 0.01"), None),
    Workload("update 1 %", lambda ds: ds.update({"score": "score + 1"}, where="id % 100 = 7"), 1.0),
    Workload("update 50 %, one float", lambda ds: ds.update({"score": "score + 1"}, where="id % 2 = 1"), 10.0, 8),
)


def _copy(base: Path, place: Path) -> Path:
    """A table that shares its files with the base, and can be changed without changing it."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place, copy_function=os.link)
    return place


def _bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in (place / "data").iterdir())


def _once(open_table: Callable[[Path], Any], base: Path, place: Path, workload: Workload) -> tuple[float, int, int]:
    """Seconds, bytes of new data files and changed rows of one run."""
    dataset = open_table(_copy(base, place))
    before = _bytes(place)
    gc.collect()
    started = time.perf_counter()
    changed = workload.change(dataset)
    seconds = time.perf_counter() - started
    (rows,) = changed.values()
    return seconds, _bytes(place) - before, rows


def _measure(base: Path, directory: Path, rows: int, workload: Workload) -> bool:
    ours, theirs = [], []
    for number in range(RUNS + 1):  # the first warms up
        mine = _once(tablewright.dataset, base, directory / "ours", workload)
        other = _once(lance.dataset, base, directory / "theirs", workload)
        if mine[2] != other[2]:
            raise AssertionError(f"{workload.name}: we changed {mine[2]} rows, pylance {other[2]}")
        if number:
            ours.append(mine)
            theirs.append(other)
    our_seconds, their_seconds = (median(run[0] for run in runs) for runs in (ours, theirs))
    ratio = their_seconds / our_seconds
    good = workload.ratio_min is None or ratio >= workload.ratio_min
    line = (
        f"   {workload.name:<24} ours {our_seconds * 1000:8.1f} ms   pylance {their_seconds * 1000:8.1f} ms   "
        f"{ratio:6.2f}x{'  (no promise)' if workload.ratio_min is None else ''}"
    )
    if workload.column_bytes is not None:
        share = ours[0][1] / (rows * workload.column_bytes)
        good = good and share <= COLUMN_BYTES_MAX
        line += (
            f"   wrote {ours[0][1] / 2**20:.1f} MiB, {share:.2f}x the column (pylance {theirs[0][1] / 2**20:.1f} MiB)"
        )
    print(f"{line}{'' if good else '  BROKEN'}", flush=True)
    return good


def run(rows: int = ROWS) -> bool:
    """Print the ratios, and whether all promised ones are kept."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        base = directory / "base"
        lance.write_dataset(table(rows), base, max_rows_per_file=rows // FRAGMENTS)
        kept = [_measure(base, directory, rows, workload) for workload in WORKLOADS]
        return all(kept)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
