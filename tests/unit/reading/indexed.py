"""Tables with indices of all kinds, made by us, for tests of what asks them."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa

import tablewright as tw
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

__all__ = ["COLUMNS", "indexed_table", "rows", "snapshot_of"]

COLUMNS = {
    "id": "BTREE",
    "few": "BITMAP",
    "zone": "ZONEMAP",
    "word": "NGRAM",
    "tags": "LABEL_LIST",
    "hash": "BLOOMFILTER",
    "st.x": "BTREE",
}
_numbers = itertools.count()


def rows(start: int, stop: int) -> pa.Table:
    """Rows with ids from ``start`` on; every column has nulls."""
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array([None if n % 17 == 3 else n for n in numbers], pa.int64()),
            "few": pa.array([None if n % 5 == 4 else n % 5 for n in numbers], pa.int32()),
            "zone": pa.array([None if n % 7 == 2 else n // 10 for n in numbers], pa.int64()),
            "word": pa.array([None if n % 6 == 1 else f"word number {n % 20}" for n in numbers]),
            "tags": pa.array([None if n % 9 == 4 else ["a", "b", "c"][: n % 4] for n in numbers]),
            "hash": pa.array([None if n % 8 == 5 else f"h{n % 30}" for n in numbers]),
            "st": pa.array([None if n % 10 == 6 else {"x": n % 11} for n in numbers], pa.struct([("x", pa.int64())])),
            "v": pa.array(numbers, pa.int64()),
        }
    )


def indexed_table(*, stable: bool = False, changed: bool = True) -> Any:
    """300 rows in 6 fragments, 4 of which are indexed; ``changed``: rows were deleted and updated since."""
    uri = f"memory://indexed-{next(_numbers)}"
    ds = tw.write_dataset(rows(0, 200), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    for column, kind in COLUMNS.items():
        ds.create_scalar_index(column, kind)
    ds.insert(rows(200, 300), max_rows_per_file=50)
    if changed:
        ds.delete("v % 13 = 0")
        ds.update({"few": "3"}, where="v > 20 and v < 40", write_mode="rewrite_rows")
        ds.update({"zone": "zone + 100"}, where="v > 60 and v < 70", write_mode="rewrite_columns")
    return ds


def snapshot_of(ds: Any) -> Snapshot:
    """The version that a dataset shows."""
    return open_snapshot(World(open_store(ds.uri)), ds.version)
