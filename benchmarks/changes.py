"""Deletes and updates beside pylance: 1M rows of (int, float, text, 128-float vector) in 4 fragments.

The promises, as ratios of medians: a delete of one row, a delete of 1 % and an update of 1 % of the rows are at least
as fast as pylance's; an update of one float column in half of the rows is at least 10 times as fast, and writes at most
1.2 times the bytes of that column.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
from benchmarks._beside import run_beside
from benchmarks.reads import ROWS, table

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


def _measure(base: Path, directory: Path, rows: int, workload: Workload) -> bool:
    beside = run_beside(base, directory, workload.change, RUNS)
    good = workload.ratio_min is None or beside.ratio >= workload.ratio_min
    line = beside.line(workload.name, workload.ratio_min)
    if workload.column_bytes is not None:
        ours, theirs = beside.ours[0].nbytes, beside.theirs[0].nbytes
        share = ours / (rows * workload.column_bytes)
        good = good and share <= COLUMN_BYTES_MAX
        line += f"   wrote {ours / 2**20:.1f} MiB, {share:.2f}x the column (pylance {theirs / 2**20:.1f} MiB)"
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
