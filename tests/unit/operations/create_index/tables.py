"""Small tables with indices, for the tests of plans."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import tablewright as tw
from tablewright.snapshot.snapshot import Snapshot

_names = iter(range(10**9))


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": ids,
            "s": [f"row {i}" for i in ids],
            "l": [[i] for i in ids],
            "a": [{"b": i, "C": i} for i in ids],
            "ll": [[{"x": i}] for i in ids],
            "Mixed": ids,
        }
    )


def table(*, stable: bool = False, count: int = 30) -> Any:
    """A table of three fragments in memory."""
    uri = f"memory://plans-of-indices-{next(_names)}"
    return tw.write_dataset(rows(0, count), uri, max_rows_per_file=10, enable_stable_row_ids=stable)


def snapshot_of(dataset: Any) -> Snapshot:
    found: Snapshot = dataset._snapshot
    return found
