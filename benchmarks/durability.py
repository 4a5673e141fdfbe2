"""What waiting for the disk costs: small inserts and 100 MB of rows, with and without ``fsync``, beside pylance.

It depends on the disk, so nothing is promised; the default waits, and ``storage_options={"fsync": "false"}`` does not.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import lance
import numpy as np
import pyarrow as pa

import tablewright

__all__ = ["run"]

RUNS, SMALL, LARGE_ROWS, DIMENSIONS = 5, 20, 200_000, 128
WAYS: dict[str, Callable[[pa.Table, Path], object]] = {
    "fsync": lambda rows, place: tablewright.write_dataset(rows, place, mode="append"),
    "fsync=false": lambda rows, place: tablewright.write_dataset(
        rows, place, mode="append", storage_options={"fsync": "false"}
    ),
    "pylance": lambda rows, place: lance.write_dataset(rows, place, mode="append"),
}


def run() -> bool:
    """Print the seconds of each way, in turns."""
    numbers = np.random.default_rng(1).random(LARGE_ROWS * DIMENSIONS, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(numbers, DIMENSIONS)
    workloads = {
        f"{SMALL} inserts of one row": [pa.table({"id": [number]}) for number in range(SMALL)],
        f"one insert of {vectors.nbytes // 10**6} MB": [pa.table({"vector": vectors})],
    }
    for name, tables in workloads.items():
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(RUNS + 1):
            for way, write in WAYS.items():
                directory = Path(tempfile.mkdtemp())
                started = time.perf_counter()
                for table in tables:
                    write(table, directory / "table")
                taken = time.perf_counter() - started
                shutil.rmtree(directory)
                if number:
                    seconds[way].append(taken)
        figures = "   ".join(f"{way} {median(times) * 1000:8.1f} ms" for way, times in seconds.items())
        print(f"   {name:<26} {figures}")
    return True
