"""A whole table on S3 (a moto server on loopback): errors name the place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.storage.requests import requests_made


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    vectors = pa.array([[float(i), 1.0] for i in ids], pa.list_(pa.float32(), 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {i}" for i in ids], "vector": vectors})


def test_a_missing_bucket_and_wrong_keys_are_named(s3_options: dict[str, str]) -> None:
    with pytest.raises(tw.errors.TablewrightError, match="no-such-bucket"):
        tw.dataset("s3://no-such-bucket/table.lance", storage_options=s3_options)
    with pytest.raises(tw.errors.TablewrightError, match="no-such-bucket"):
        tw.write_dataset(rows(0, 1), "s3://no-such-bucket/table.lance", storage_options=s3_options)


def test_cleanup_deletes_in_few_requests(s3_bucket: str, s3_options: dict[str, str]) -> None:
    uri = f"s3://{s3_bucket}/cleaned.lance"
    ds = tw.write_dataset(rows(0, 4), uri, storage_options=s3_options, max_rows_per_file=2)
    for start in range(3):
        ds = tw.write_dataset(rows(start, start + 4), ds, mode="overwrite", max_rows_per_file=2)
    branch = ds.create_branch("b", 3)
    before = requests_made()
    stats = ds.cleanup_old_versions(retain_versions=1)
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (2, 4, 0)
    assert requests_made() - before < 30
    assert ds.to_table().num_rows == branch.to_table().num_rows == 4
    assert [each["version"] for each in ds.versions()] == [3, 4]
    assert ds.cleanup_old_versions(retain_versions=1).bytes_removed == 0


def test_health_and_auto_in_few_requests(s3_bucket: str, s3_options: dict[str, str]) -> None:
    uri = f"s3://{s3_bucket}/health.lance"
    ds = tw.write_dataset(rows(0, 60), uri, storage_options=s3_options, max_rows_per_file=5)
    ds.delete("id < 4")
    ds.drop_columns(["text"])
    ds.create_branch("b")
    before = requests_made()
    health = ds.health(sample=False)
    assert requests_made() - before < 60
    assert (health.rows.live, health.rows.deleted, health.shape.count) == (56, 4, 12)
    assert (health.bytes.columns_measured, health.bytes.missing_files) == (12, 0)
    assert health.bytes.deletion_files == ds.stats.dataset_stats()["deletion_file_size_bytes"] > 0
    assert not any(value in health.to_openmetrics() for value in s3_options.values() if len(value) > 4)
    report = ds.optimize.auto()
    assert report.step("compact") is not None
    assert (len(ds.get_fragments()), ds.count_rows()) == (1, 56)
