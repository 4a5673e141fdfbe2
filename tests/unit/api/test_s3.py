"""A whole table on S3 (a moto server on loopback): errors name the place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tablewright as tw


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    vectors = pa.array([[float(i), 1.0] for i in ids], pa.list_(pa.float32(), 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {i}" for i in ids], "vector": vectors})


def test_a_missing_bucket_and_wrong_keys_are_named(s3_options: dict[str, str]) -> None:
    with pytest.raises(tw.errors.TablewrightError, match="no-such-bucket"):
        tw.dataset("s3://no-such-bucket/table.lance", storage_options=s3_options)
    with pytest.raises(tw.errors.TablewrightError, match="no-such-bucket"):
        tw.write_dataset(rows(0, 1), "s3://no-such-bucket/table.lance", storage_options=s3_options)
