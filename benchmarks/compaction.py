"""Compaction beside pylance, and beside the codec alone for many small fragments.

- 1M rows with vectors, 12 % of them deleted, with and without stable row ids: at least 1.1 times as fast as pylance
  (median of 5, in turns).
- 2,000 fragments of 10 rows: at most 1.3 times the codec's own floor, which opens, reads and writes the same files by
  ``lance.file`` alone.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._beside import copied, open_ours, run_beside
from benchmarks.update_memory import batches
from lance.file import LanceFileReader, LanceFileWriter

import tablewright

__all__ = ["ROWS", "run"]

ROWS, DIMENSIONS, RUNS = 1_000_000, 128, 5
SMALL_FRAGMENTS, SMALL_ROWS = 2_000, 10
RATIO_MIN, FLOOR_MAX = 1.1, 1.3


def _compact(dataset: Any) -> dict[str, int]:
    metrics = dataset.optimize.compact_files()
    return {"fragments_removed": metrics.fragments_removed, "fragments_added": metrics.fragments_added}


def _vectors(directory: Path, rows: int, *, stable: bool) -> bool:
    base = directory / f"vectors-{stable}"
    dataset = tablewright.write_dataset(
        batches(rows, DIMENSIONS),
        base,
        max_rows_per_file=max(1, rows // 4),
        enable_stable_row_ids=stable,
        engine="local",
    )
    dataset.delete("(id * 7919) % 100 < 12")
    beside = run_beside(base, directory, _compact, RUNS)
    print(beside.line(f"{rows} rows, 12 % deleted{', row ids' if stable else ''}", RATIO_MIN), flush=True)
    shutil.rmtree(base)
    return beside.ratio >= RATIO_MIN


def _floor(place: Path) -> float:
    """The codec alone: open, read and write the same files."""
    files = sorted((place / "data").iterdir())
    started = time.perf_counter()
    writer: LanceFileWriter | None = None
    for path in files:
        for batch in LanceFileReader(str(path)).read_all().to_batches():
            writer = writer or LanceFileWriter(str(place / "data" / "floor.lance"), batch.schema)
            writer.write_batch(batch)
    if writer is not None:
        writer.close()
    return time.perf_counter() - started


def _small(directory: Path, fragments: int) -> bool:
    rows = fragments * SMALL_ROWS
    base = directory / "small"
    columns = {"id": range(rows), "score": [n / 3 for n in range(rows)], "text": [f"text {n}" for n in range(rows)]}
    tablewright.write_dataset(columns, base, max_rows_per_file=SMALL_ROWS, engine="local")
    ours, floors = [], []
    for number in range(RUNS + 1):
        floor = _floor(copied(base, directory / "floor"))
        dataset = open_ours(copied(base, directory / "ours"))
        started = time.perf_counter()
        _compact(dataset)
        seconds = time.perf_counter() - started
        if number:
            ours.append(seconds)
            floors.append(floor)
    times = median(ours) / median(floors)
    print(
        f"   {fragments} fragments of {SMALL_ROWS} rows       ours {median(ours) * 1000:8.1f} ms   codec alone "
        f"{median(floors) * 1000:8.1f} ms   {times:6.2f}x of it (at most {FLOOR_MAX})",
        flush=True,
    )
    return times <= FLOOR_MAX


def run(rows: int = ROWS, fragments: int = SMALL_FRAGMENTS) -> bool:
    """Print the figures, and whether the promises are kept."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        kept = [_vectors(directory, rows, stable=False), _vectors(directory, rows, stable=True)]
        return all([*kept, _small(directory, fragments)])
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
