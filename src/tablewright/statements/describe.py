"""``DESCRIBE HISTORY`` and ``DESCRIBE DETAIL``: versions and facts of a table as rows.

Tests: ``tests/spark/test_sql.py``.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pyarrow as pa

from tablewright.dataset import LanceDataset

__all__ = ["described", "history"]

_HISTORY = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "operation": pa.string(),
        "num_rows": pa.int64(),
        "num_fragments": pa.int64(),
    }
)
_DETAIL = pa.schema(
    {
        "location": pa.string(),
        "version": pa.int64(),
        "num_rows": pa.int64(),
        "num_fragments": pa.int64(),
        "size_in_bytes": pa.int64(),
        "columns": pa.list_(pa.string()),
        "indices": pa.list_(pa.string()),
        "stable_row_ids": pa.bool_(),
        "data_storage_version": pa.string(),
    }
)

Rows = tuple[list[dict[str, Any]], pa.Schema]


def history(opened: LanceDataset) -> Rows:
    """All versions, newest first."""
    found = []
    for each in reversed(opened.versions()):
        transaction = opened.read_transaction(each["version"])
        found.append(
            {
                "version": each["version"],
                "timestamp": each["timestamp"].astimezone(UTC),
                "operation": None if transaction is None else type(transaction.operation).__name__,
                "num_rows": int(each["metadata"]["total_rows"]),
                "num_fragments": int(each["metadata"]["total_fragments"]),
            }
        )
    return found, _HISTORY


def described(opened: LanceDataset) -> Rows:
    """One row about the newest version."""
    (newest,) = (each for each in opened.versions() if each["version"] == opened.version)
    totals = newest["metadata"]
    row = {
        "location": opened.uri,
        "version": opened.version,
        "num_rows": int(totals["total_rows"]),
        "num_fragments": int(totals["total_fragments"]),
        "size_in_bytes": int(totals["total_files_size"]),
        "columns": opened.schema.names,
        "indices": [index["name"] for index in opened.list_indices()],
        "stable_row_ids": opened.has_stable_row_ids,
        "data_storage_version": opened.data_storage_version,
    }
    return [row], _DETAIL
