"""Streams, not heaps: writing and reading a table takes memory for batches, not for the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, sys
import numpy as np, pyarrow as pa
import tablewright as tw

ROWS, WIDTH = 8192, 512                                    # 16 MiB a batch

def batches(count):
    for number in range(count):
        values = np.full(ROWS * WIDTH, number, np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(values, WIDTH)
        yield pa.record_batch({"id": np.arange(number * ROWS, (number + 1) * ROWS), "v": vectors})

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def use(uri, count):
    schema = next(batches(1)).schema
    ds = tw.write_dataset(batches(count), uri, schema=schema, max_rows_per_file=6 * ROWS)
    rows = sum(batch.num_rows for batch in ds.to_batches())
    assert rows == count * ROWS
    assert ds.count_rows("id % 2 = 0") == rows // 2

use(sys.argv[1] + "/small.lance", 8)
before = peak()
use(sys.argv[1] + "/large.lance", 24)
print(before, peak())
"""


@pytest.mark.slow
def test_three_times_the_rows_take_no_more_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=200
    )
    small, large = map(int, done.stdout.split())
    assert large - small < 128, f"256 MiB more of table took {large - small} MiB more of memory"
