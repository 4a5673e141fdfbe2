"""What deletion vectors cost a read: one column of 2M rows with deleted rows beside the same without, ours and pylance.

Scattered deletes are the hard case: a deletion vector without runs. The promise is at most 1.5 times the column without
deletions for 0.1 % deleted rows, and 2.2 times for 10 % (median of 9, runs alternating), as a table and in batches, in
one fragment and in two. A vector column is shown beside it, without a promise.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import tablewright

__all__ = ["ROWS", "run"]

ROWS, VECTOR_ROWS, DIMENSIONS = 2_000_000, 200_000, 128
LIMITS = {0.001: 1.5, 0.1: 2.2}
RUNS, REPEATS = 9, 3

Open = Callable[[str], Any]


def _columns(rows: int) -> dict[str, tuple[pa.Table, int, bool]]:
    """Rows, number of fragments, and whether there is a promise, by name."""
    chance = np.random.default_rng(0)
    numbers = pa.table({"a": chance.integers(0, 2**60, rows)})
    vectors = chance.random(rows * VECTOR_ROWS // ROWS * DIMENSIONS, np.float32)
    return {
        "int64, 1 fragment": (numbers, 1, True),
        "int64, 2 fragments": (numbers, 2, True),
        "float32[128]": (pa.table({"a": pa.FixedSizeListArray.from_arrays(vectors, DIMENSIONS)}), 1, False),
    }


def _written(rows: pa.Table, fragments: int, share: float, place: Path) -> str:
    per_fragment = -(-rows.num_rows // fragments)
    dataset = tablewright.write_dataset(rows, place, max_rows_per_file=per_fragment, engine="local")
    if share:
        chance = np.random.default_rng(1)
        gone = chance.choice(rows.num_rows, int(rows.num_rows * share), replace=False)
        addresses = (gone // per_fragment << 32) | gone % per_fragment
        dataset.delete(f"_rowaddr in ({','.join(map(str, addresses.tolist()))})")
    return str(place)


def _read(dataset: Any, kind: str) -> int:
    if kind == "table":
        return int(dataset.to_table().num_rows)
    return sum(batch.num_rows for batch in dataset.to_batches())


def _seconds(dataset: Any, kind: str) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(REPEATS):
        _read(dataset, kind)
    return (time.perf_counter() - start) / REPEATS


def _ratios(opened: dict[float, Any], kind: str) -> tuple[float, dict[float, float]]:
    """Median seconds without deletions, and how many times as long each share of deletions takes."""
    times: dict[float, list[float]] = {share: [] for share in opened}
    for number in range(RUNS + 1):
        for share, dataset in opened.items():
            seconds = _seconds(dataset, kind)
            if number:
                times[share].append(seconds)
    base = median(times[0.0])
    return base, {share: median(times[share]) / base for share in LIMITS}


def _measure(name: str, places: dict[float, str], promised: bool) -> bool:
    kept = True
    for kind in ("table", "batches"):
        opens: dict[str, Open] = {
            "ours": lambda place: tablewright.dataset(place, engine="local"),
            "pylance": lance.dataset,
        }
        line = f"   {name:<20} {kind:<8}"
        for who, open_table in opens.items():
            base, ratios = _ratios({share: open_table(place) for share, place in places.items()}, kind)
            shown = "  ".join(f"{share:.1%} deleted {ratio:5.2f}x" for share, ratio in ratios.items())
            line += f"  {who} {base * 1000:6.1f} ms, {shown}"
            if who == "ours" and promised:
                kept = kept and all(ratio <= LIMITS[share] for share, ratio in ratios.items())
        print(line + ("" if promised else "  (no promise)") + ("" if kept else "  ABOVE THE LIMIT"), flush=True)
    return kept


def run(rows: int = ROWS) -> bool:
    """Print the ratios, and whether all promised ones are kept."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    kept = True
    try:
        for name, (values, fragments, promised) in _columns(rows).items():
            places = {
                share: _written(values, fragments, share, directory / f"{name} {share}.lance")
                for share in (0.0, *LIMITS)
            }
            kept = _measure(name, places, promised) and kept
        return kept
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
