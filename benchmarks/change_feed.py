"""The change feed of 1,000 changed rows in a table of 10,000,000: it reads less than 2 % of the table's bytes.

For its size (5 GB, int, float, text and a vector of 128 floats, 10 fragments) it is not part of ``make bench``: run it
with ``python -m benchmarks change_feed``. Of rows scattered over the whole table 400 are updated and 300 deleted, and
300 are inserted. Bytes are those that this process asked the operating system for, manifests and deletion files
included. A row that lies alone costs some 4 KB per column: a table of a few narrow columns has other shares.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tablewright

__all__ = ["BY_DEFAULT", "run"]

BY_DEFAULT = False
ROWS, DIMENSIONS, ROWS_PER_BATCH, FRAGMENTS = 10_000_000, 128, 8192, 10
UPDATED, DELETED, INSERTED = 400, 300, 300
SHARE_MAX = 0.02


def _batch(ids: np.ndarray, chance: np.random.Generator) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": ids,
            "score": chance.random(len(ids)),
            "text": [f"document {number}" for number in ids.tolist()],
            "vector": pa.FixedSizeListArray.from_arrays(chance.random(len(ids) * DIMENSIONS, np.float32), DIMENSIONS),
        }
    )


def _batches(rows: int, chance: np.random.Generator) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, ROWS_PER_BATCH):
        yield _batch(np.arange(start, min(rows, start + ROWS_PER_BATCH)), chance)


def _bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def _written(uri: str, rows: int) -> Any:
    chance = np.random.default_rng(0)
    schema = _batch(np.arange(1), chance).schema
    made = tablewright.write_dataset(
        pa.RecordBatchReader.from_batches(schema, _batches(rows, chance)),
        uri,
        max_rows_per_file=max(1, rows // FRAGMENTS),
        enable_stable_row_ids=True,
        engine="local",
    )
    chosen = chance.choice(rows, UPDATED + DELETED, replace=False).tolist()
    made.update({"score": "-score"}, where=f"id in ({', '.join(map(str, chosen[:UPDATED]))})")
    made.delete(f"id in ({', '.join(map(str, chosen[UPDATED:]))})")
    made.insert(pa.Table.from_batches([_batch(np.arange(rows, rows + INSERTED), chance)]))
    return made


def run(rows: int = ROWS) -> bool:
    """Print what each form read, and whether it was little enough."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    try:
        uri = str(directory / "t.lance")
        _written(uri, rows)
        size = sum(path.stat().st_size for path in (directory / "t.lance" / "data").iterdir())
        print(f"   {rows} rows, {size / 1e9:.2f} GB in {FRAGMENTS} fragments", flush=True)
        good = True
        for name, options in (
            ("per version", {}),
            ("net", {"net": True}),
            ("two columns", {"columns": ["id", "score"]}),
        ):
            before, started = _bytes_read(), time.perf_counter()
            found = tablewright.dataset(uri).changes(1, **options).to_table()
            seconds, read = time.perf_counter() - started, _bytes_read() - before
            kept = found.num_rows == 2 * UPDATED + DELETED + INSERTED and read < SHARE_MAX * size
            good = good and kept
            print(
                f"   {name:12} {found.num_rows} rows in {seconds:.3f} s   {read / 1e6:.1f} MB, {read / size:.3%} of "
                f"the table (promised {SHARE_MAX:.0%}){'' if kept else '  BROKEN'}",
                flush=True,
            )
        return good
    finally:
        shutil.rmtree(directory, ignore_errors=True)
