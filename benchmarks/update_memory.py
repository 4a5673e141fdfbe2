"""Peak memory of updates of a 5 GB table.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks update_memory``. It needs some 15 GB
below the directory for temporary files, and some minutes. Each update runs in a process of its own on the local engine,
and prints the most memory that the process ever held. The promise: below 1.5 GB.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import tablewright

__all__ = ["BY_DEFAULT", "ROWS", "batches", "run"]

BY_DEFAULT = False
ROWS, DIMENSIONS, ROWS_PER_BATCH = 2_400_000, 512, 8192
PEAK_BYTES_MAX = 1_500_000_000

UPDATES = (
    ("a float in half of the rows", {"score": "score + 1"}, "id % 2 = 1", "rewrite_columns"),
    ("all vectors in place", {"vector": "vector"}, None, "rewrite_columns"),
    ("half of the rows move", {"score": "score + 1"}, "id % 2 = 1", "rewrite_rows"),
)

_WORKER = """
import resource, sys, time
import tablewright
uri, updates, where, mode = sys.argv[1], eval(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
dataset = tablewright.dataset(uri, engine="local")
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
rows = dataset.update(updates, where=where, write_mode=mode)["num_rows_updated"]
print(rows, time.perf_counter() - started, held * 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def batches(rows: int, dimensions: int = DIMENSIONS) -> Iterator[pa.RecordBatch]:
    """Documents with vectors of so many floats."""
    chance = np.random.default_rng(0)
    for start in range(0, rows, ROWS_PER_BATCH):
        ids = np.arange(start, min(rows, start + ROWS_PER_BATCH))
        vectors = pa.FixedSizeListArray.from_arrays(chance.random(len(ids) * dimensions, np.float32), dimensions)
        text = pa.array(np.char.add("document number ", ids.astype(str)))
        yield pa.record_batch({"id": ids, "score": chance.random(len(ids)), "text": text, "vector": vectors})


def run(rows: int = ROWS) -> bool:
    """Print the peaks, and whether all are below the promise."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        uri = str(directory / "t.lance")
        tablewright.write_dataset(batches(rows), uri, max_rows_per_file=max(1, rows // 4))
        size = sum(path.stat().st_size for path in (directory / "t.lance" / "data").iterdir())
        print(f"   {rows} rows, {size / 1e9:.2f} GB in 4 fragments", flush=True)
        kept = [_measure(uri, *update) for update in UPDATES]
        return all(kept)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(uri: str, name: str, updates: dict[str, str], where: str | None, mode: str) -> bool:
    started = time.perf_counter()
    command = [sys.executable, "-c", _WORKER, uri, repr(updates), repr(where), mode]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    rows, seconds, held, peak = int(words[0]), float(words[1]), int(words[2]), int(words[3])
    good = peak <= PEAK_BYTES_MAX
    print(
        f"   {name:<30} {rows} rows in {seconds:6.1f} s   peak {peak / 1e6:7.0f} MB ({held / 1e6:.0f} MB before)"
        f"{'' if good else '  ABOVE 1500 MB'}   [{time.perf_counter() - started:.1f} s in all]",
        flush=True,
    )
    return good


if __name__ == "__main__":
    run()
