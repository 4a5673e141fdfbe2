"""A small table for the tests of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import tablewright as tw
from tablewright.snapshot.snapshot import Snapshot


def small_table(tmp_path: Path, rows: Any = None, **options: Any) -> Snapshot:
    """Three fragments of ids and structs."""
    rows = {"id": pa.array(range(10)), "s": [{"p": i, "q": str(i)} for i in range(10)]} if rows is None else rows
    return tw.write_dataset(rows, str(tmp_path / "t"), **{"max_rows_per_file": 4, **options})._snapshot
