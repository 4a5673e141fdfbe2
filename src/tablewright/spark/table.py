"""``tablewright.table(spark, path)``: a table under the names that users of delta-spark know.

The handle has no version of its own: every call works on the newest one. Changes run as the methods of ``LanceDataset``
do, on Spark where that serves best; ``history``, ``detail`` and ``optimize`` return DataFrames.

Tests: tests/unit/spark/test_table.py, tests/spark/test_table.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tablewright.api.dataset import LanceDataset, dataset
from tablewright.api.locate import instant_ns
from tablewright.api.pinned import table_of
from tablewright.checks import whole_number
from tablewright.engine.detect import check_session
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.operations.write import COMMIT_MESSAGE_KEY
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.spark.merge import SparkMergeBuilder, sql_text, sql_values
from tablewright.spark.merge_condition import TARGET

__all__ = ["SparkTable", "detail_of", "history_of", "table"]

RETENTION_HOURS = 168.0
HISTORY = (
    "version bigint, timestamp timestamp, operation string, readVersion bigint, userMetadata string, "
    "operationMetrics map<string, string>"
)
DETAIL = (
    "format string, location string, version bigint, createdAt timestamp, lastModified timestamp, "
    "partitionColumns array<string>, numFiles bigint, numFragments bigint, numRows bigint, sizeInBytes bigint, "
    "properties map<string, string>, stableRowIds boolean, dataStorageVersion string"
)


def table(spark: Any, path: str | Path, *, storage_options: Mapping[str, str] | None = None) -> SparkTable:
    """The table at a path, with the verbs of delta-spark's ``DeltaTable.forPath(spark, path)``."""
    check_session(spark)
    return SparkTable(spark, dataset(path, storage_options=storage_options, spark=spark))


class SparkTable:
    """A table at its newest version."""

    def __init__(self, spark: Any, opened: LanceDataset, alias: str = TARGET) -> None:
        self._spark, self._opened, self._alias = spark, opened, alias

    def __repr__(self) -> str:
        return f"<SparkTable {self._opened.uri}>"

    @property
    def _newest(self) -> LanceDataset:
        return self._opened.checkout_version(self._opened.latest_version)

    def alias(self, aliasName: str) -> SparkTable:
        """The same table under another name in the expressions of a merge."""
        return SparkTable(self._spark, self._opened, sql_text(aliasName, "aliasName"))

    def toDF(self) -> Any:
        """A DataFrame of the newest version."""
        return self._newest.to_spark(self._spark)

    # ---- changes

    def delete(self, condition: str | None = None) -> dict[str, int]:
        """Delete the rows that match, or all; returns how many."""
        return self._newest.delete("true" if condition is None else sql_text(condition, "condition"))

    def update(self, condition: str | None = None, set: Mapping[str, str] | None = None) -> dict[str, int]:
        """Give columns new values, by SQL expressions, in the rows that match, or in all; returns how many."""
        where = None if condition is None else sql_text(condition, "condition")
        return self._newest.update(sql_values(set, "set"), where)

    def merge(self, source: Any, condition: str) -> SparkMergeBuilder:
        """A merge of a DataFrame, matched by equal keys: ``"target.id = source.id"``."""
        return SparkMergeBuilder(self._newest, source, condition, self._alias)

    # ---- upkeep

    def optimize(self) -> SparkOptimizer:
        """Compaction: ``optimize().executeCompaction()``."""
        return SparkOptimizer(self._spark, self._newest)

    def vacuum(self, retentionHours: float | None = None) -> dict[str, int]:
        """Remove versions older than this (a week), and files that only they need; returns what was removed."""
        hours = RETENTION_HOURS if retentionHours is None else retentionHours
        if isinstance(hours, bool) or not isinstance(hours, int | float) or hours < 0:
            raise InvalidRequest(f"retentionHours must be a number from 0 on, got {retentionHours!r}.")
        return asdict(self._newest.cleanup_old_versions(timedelta(hours=hours)))

    def restoreToVersion(self, version: int) -> int:
        """Make an older version the newest again; returns the number of the version that this makes."""
        old = self._opened.checkout_version(whole_number(version, "version", minimum=1))
        old.restore()
        return old.version

    def restoreToTimestamp(self, timestamp: str | datetime) -> int:
        """Make the version that was current at a time the newest again; returns the number of the new one."""
        world = table_of(self._opened).world
        return self.restoreToVersion(open_snapshot(world, asof_ns=instant_ns(timestamp)).version)

    # ---- what it is

    def history(self, limit: int | None = None) -> Any:
        """A DataFrame of the versions, newest first: what made each, its commit message and totals."""
        return self._spark.createDataFrame(history_of(self._newest, limit), HISTORY)

    def detail(self) -> Any:
        """A DataFrame of one row: location, size, settings."""
        return self._spark.createDataFrame([detail_of(self._newest)], DETAIL)


class SparkOptimizer:
    """What ``optimize()`` can do."""

    def __init__(self, spark: Any, opened: LanceDataset) -> None:
        self._spark, self._opened = spark, opened

    def where(self, partitionFilter: str) -> SparkOptimizer:
        """Lance tables have no partitions."""
        raise UnsupportedFeature("optimize().where() is not offered: Lance tables have no partitions to choose.")

    def executeCompaction(self) -> Any:
        """Rewrite small fragments together; a DataFrame of one row says what was done."""
        metrics = self._opened.optimize.compact_files()
        names = ("fragments_removed", "fragments_added", "files_removed", "files_added")
        return self._spark.createDataFrame(
            [(self._opened.uri, *(getattr(metrics, name) for name in names))],
            "path string, numFragmentsRemoved bigint, numFragmentsAdded bigint, numFilesRemoved bigint, "
            "numFilesAdded bigint",
        )

    def executeZOrderBy(self, *columns: str) -> Any:
        """Rows keep their order."""
        raise UnsupportedFeature("executeZOrderBy() is not offered: an index finds rows by value, create_scalar_index.")


def history_of(opened: LanceDataset, limit: int | None) -> list[tuple[Any, ...]]:
    """The versions, newest first, as rows of :data:`HISTORY`."""
    versions = opened.versions()[::-1]
    if limit is not None:
        versions = versions[: whole_number(limit, "limit", minimum=1)]
    return [_version_row(opened, version) for version in versions]


def _version_row(opened: LanceDataset, version: Mapping[str, Any]) -> tuple[Any, ...]:
    transaction = opened.read_transaction(version["version"])
    if transaction is None:
        operation, read, message = None, None, None
    else:
        operation, read = type(transaction.operation).__name__, transaction.read_version
        message = (transaction.transaction_properties or {}).get(COMMIT_MESSAGE_KEY)
    return version["version"], version["timestamp"].astimezone(), operation, read, message, dict(version["metadata"])


def detail_of(opened: LanceDataset) -> tuple[Any, ...]:
    """The table as a row of :data:`DETAIL`."""
    versions = opened.versions()
    last, totals = versions[-1], versions[-1]["metadata"]
    created = versions[0]["timestamp"].astimezone() if versions[0]["version"] == 1 else None
    return (
        "lance",
        opened.uri,
        last["version"],
        created,
        last["timestamp"].astimezone(),
        [],
        int(totals["total_data_files"]),
        int(totals["total_fragments"]),
        int(totals["total_rows"]),
        int(totals["total_files_size"]),
        opened.config(),
        opened.has_stable_row_ids,
        opened.data_storage_version,
    )
