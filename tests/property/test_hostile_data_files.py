"""Data files with changed bytes: an error of ours or rows as many as there were, and the process lives.

The bytes of values have no checksum in the format, so a change there may go unnoticed. What is changed here are the
last kilobytes: the descriptions of columns, pages and buffers, and the footer. They run in a process that may take 2
GiB more than its imports, many cases each, and the case is printed before it is tried.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bounded import run_bounded
from tests.depth import deep

SCRIPT = r"""
import random, sys
from pathlib import Path
import numpy as np, pyarrow as pa
import tablewright as tw

place, version, first, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
N = 500
table = pa.table({
    "id": range(N),
    "s": [f"row {i % 70}" if i % 9 else None for i in range(N)],
    "f": np.random.default_rng(1).random(N),
    "l": [[i, i + 1] if i % 5 else None for i in range(N)],
    "st": [{"a": i, "b": str(i)} for i in range(N)],
    "v": pa.FixedSizeListArray.from_arrays(np.arange(N * 4, dtype=np.float32), 4),
    "b": [i % 2 == 0 for i in range(N)],
    "none": [None] * N,
    "d": pa.array([f"k{i % 3}" for i in range(N)]).dictionary_encode(),
})
tw.write_dataset(table, place, data_storage_version=version)
(path,) = place.glob("data/*.lance")
whole = path.read_bytes()
begin = max(0, len(whole) - 4000)
numbers = [b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", (2**40).to_bytes(8, "little"), (2**60).to_bytes(8, "little")]
refused = 0
for seed in range(first, first + count):
    chance, data = random.Random(seed), bytearray(whole)
    at = chance.randrange(begin, len(data) - 8)
    kind = chance.randrange(4)
    if kind == 0:
        data[at : at + 8] = chance.choice(numbers)
    elif kind == 1:
        other = chance.randrange(len(data) - 8)
        data[at : at + 8] = data[other : other + 8]
    else:
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(begin, len(data))] = chance.randrange(256)
    path.write_bytes(bytes(data))
    print("case", seed, file=sys.stderr, flush=True)
    try:
        ds = tw.dataset(place)
        rows = ds.to_table().num_rows
        assert rows == N, f"{rows} rows"
        assert ds.take([1, N - 1]).num_rows == 2
    except (tw.errors.CorruptTable, tw.errors.StorageError) as error:
        assert path.name in str(error), str(error)
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_changed_metadata_of_a_data_file(tmp_path: Path, version: str) -> None:
    count = deep(60, 5000)
    refused = int(run_bounded(SCRIPT, str(tmp_path / "t.lance"), version, "0", str(count), timeout_s=1800))
    assert refused > count // 4
