"""``readStream.format("tablewright")``: rows that are appended, or the change feed, version by version.

An offset is the number of the last version that was read: ``{"version": 7}``. Versions never change, so a batch from
one offset to another has the same rows whenever it is read again.

- Without ``start_version`` the first batch is the whole table at the version that is the latest then; the offset before
  it is -1. With one, the first batch begins with the changes of that version; ``latest`` begins after the newest one.
- ``max_versions_per_trigger`` bounds the versions of a batch (but for the first of a whole table).
- ``changes=true`` reads the change feed (``_change_type`` and so on), for which a table needs stable row ids. Without
  it a version that changed or removed rows is an error (:mod:`tablewright.operations.appended`).
- A version that was cleaned up before it was read is an error that names it.

Tests: tests/unit/spark/test_stream_reader.py, tests/spark/test_streams.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from tablewright.engine.shared import require_shared
from tablewright.engine.spark.types import arrow_schema, spark_schema, struct_type
from tablewright.engine.spark.worker import WorldAddress
from tablewright.errors import InvalidRequest, TableNotFound, VersionNotFound
from tablewright.operations.appended import appended_scans
from tablewright.operations.change_feed.plan import FeedOptions, plan_changes
from tablewright.operations.change_feed.task import FEED_COLUMNS
from tablewright.operations.scan import plan_scan
from tablewright.snapshot.locate import latest_version
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.spark.options import LATEST, ReadOptions
from tablewright.spark.places import open_place
from tablewright.spark.reader import (
    BATCH_ROWS,
    TablePartition,
    partitioned,
    read_partition,
    scan_options,
    selected,
)

__all__ = ["TableStreamReader", "stream_type"]

NOTHING = -1
_KEY = "version"

Offset = dict[str, int]


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # pyspark
    """The reader of a stream. On the driver one process keeps it; workers get a copy for ``read``."""

    def __init__(self, options: ReadOptions, struct: Any) -> None:
        _check(options)
        self._options, self._struct = options, struct
        self._target: int | None = None

    # ---- offsets

    def initialOffset(self) -> Offset:
        """Where a new stream begins."""
        start = self._options.start_version
        if start is None:
            return {_KEY: NOTHING}
        return {_KEY: self._latest() if isinstance(start, str) else start - 1}

    def getDefaultReadLimit(self) -> ReadLimit:
        """So many versions a batch; Spark knows limits of files, rows and bytes, and a version counts as a file."""
        most = self._options.max_versions_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Up to where the next batch reads."""
        latest = self._latest() if self._target is None else max(self._target, start[_KEY])
        begin = start[_KEY]
        if latest < begin:
            raise InvalidRequest(
                f"The stream has read version {begin} of {self._options.place.uri}, and its latest version is "
                f"{latest}: the table was dropped and made again. Start a stream with a new checkpoint."
            )
        bounded = isinstance(limit, ReadMaxFiles) and begin != NOTHING
        return {_KEY: min(latest, begin + limit.max_files) if bounded else latest}

    def prepareForTriggerAvailableNow(self) -> None:
        """Versions that come from now on are left to the next run."""
        self._target = self._latest()

    def _latest(self) -> int:
        entry = latest_version(open_place(self._options.place).store)
        if entry is None:
            raise TableNotFound(self._options.place.uri)
        return entry.version

    # ---- rows

    def partitions(self, start: Offset, end: Offset) -> list[TablePartition]:
        """The parts of a batch, on the driver."""
        begin, last = start[_KEY], end[_KEY]
        if begin == last:
            return []
        try:
            snapshot = open_snapshot(open_place(self._options.place), last)
            tasks = self._changes(snapshot, begin) if self._options.changes else self._appended(snapshot, begin)
            return list(tasks)
        except VersionNotFound as error:
            uri, first = self._options.place.uri, max(begin, 0) + 1
            hint = (
                f"The stream has to read versions {first} to {last} of {uri} next, and {error} Clean up less often "
                "than the stream runs, or start one with a new checkpoint."
            )
            raise VersionNotFound(uri, error.what, hint) from error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part, on a worker."""
        return read_partition(partition, self._struct) if isinstance(partition, TablePartition) else iter(())

    def _appended(self, snapshot: Snapshot, begin: int) -> Iterator[TablePartition]:
        names = selected(plan_scan(snapshot, scan_options(self._options)).schema, arrow_schema(self._struct))
        chosen, address = scan_options(self._options, names), WorldAddress.of(snapshot.world)
        if begin == NOTHING:
            scans: Iterator[Any] = iter([plan_scan(snapshot, chosen).narrowed().whole])
        else:
            scans = appended_scans(snapshot, begin, snapshot.version, chosen)
        for scan in scans:
            yield from partitioned(scan, address, self._options.batch_size)

    def _changes(self, snapshot: Snapshot, begin: int) -> Iterator[TablePartition]:
        options, names = _feed(self._options, snapshot, max(begin, 0)), arrow_schema(self._struct).names
        if options.columns is None:
            options = replace(options, columns=[name for name in names if name not in FEED_COLUMNS])
        plan, address = plan_changes(snapshot, replace(options, net=begin == NOTHING)), WorldAddress.of(snapshot.world)
        selected(plan.schema, arrow_schema(self._struct))
        return (TablePartition(address, task) for task in plan.tasks())


def stream_type(options: ReadOptions) -> Any:
    """Spark's type of the rows of a stream, as the table is now."""
    _check(options)
    snapshot = open_snapshot(open_place(options.place))
    require_shared(snapshot.location)
    if options.changes:
        schema = plan_changes(snapshot, _feed(options, snapshot, snapshot.version)).schema
    else:
        schema = plan_scan(snapshot, scan_options(options)).schema
    return struct_type(spark_schema(schema))


def _feed(options: ReadOptions, snapshot: Snapshot, begin: int) -> FeedOptions:
    return FeedOptions(
        from_version=begin,
        to_version=snapshot.version,
        columns=options.columns,
        filter=options.filter,
        batch_size=options.batch_size or BATCH_ROWS,
    )


def _check(options: ReadOptions) -> None:
    fixed = [name for name in ("version", "tag", "asof") if getattr(options, name) is not None]
    if fixed:
        raise InvalidRequest(f"A stream follows a table, and {fixed[0]} names one version: use start_version.")
    if options.changes and (options.with_row_id or options.with_row_address):
        raise InvalidRequest("With changes=true there is always a column _rowid: leave out with_row_id.")
    if isinstance(options.start_version, str) and options.start_version != LATEST:
        raise InvalidRequest(f"start_version is a number or {LATEST}, got {options.start_version!r}.")
