"""Reading for the data source: a scan in partitions, in the types that Spark holds.

1. *Schema*: the scan's schema in Spark's types (:mod:`tablewright.engine.spark.types`); a column that Spark can't hold
   is refused by name. A schema that the caller gives chooses columns by name; its types must be the table's own in
   Spark, or wider numbers.
2. *Partitions*, on the driver: indices are asked once, then the scan is cut between fragments: some 64 MiB each, or
   less where that would leave processors idle. Each partition is a task that can be pickled and the table's address.
3. *Read*, on workers: batches of some 65,536 rows, fewer where rows are wide, cast to the exact Arrow types that Spark
   derives from the schema.

Spark asks for all columns of the schema, whatever a query uses. Only the options ``columns`` and ``filter``, or a given
schema, read less.

Tests: tests/unit/spark/test_reader.py, tests/spark/test_source.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as at
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tablewright.engine.flow import default_threads
from tablewright.engine.shared import require_shared
from tablewright.engine.spark.inputs import is_same_to_spark
from tablewright.engine.spark.types import (
    arrow_schema,
    exchanged_schema,
    spark_schema,
    spark_type,
    struct_type,
    to_spark,
)
from tablewright.engine.spark.worker import WorldAddress
from tablewright.errors import SchemaMismatch
from tablewright.operations.change_feed.task import ChangeTask, run_change_task
from tablewright.operations.scan import ScanOptions, plan_scan, run_scan_task
from tablewright.reading.run import coalesced
from tablewright.reading.scan_task import ScanTask, row_counts
from tablewright.snapshot.snapshot import Snapshot
from tablewright.spark.options import ReadOptions
from tablewright.spark.places import Pin, open_pinned, open_version

__all__ = [
    "BATCH_ROWS",
    "TablePartition",
    "TableReader",
    "frame_type",
    "partitioned",
    "read_partition",
    "rows_per_batch",
    "scan_options",
    "selected",
]

BATCH_ROWS, BATCH_ROWS_MIN, BATCH_BYTES = 1 << 16, 1 << 10, 32 << 20
PARTITION_BYTES, PARTITION_BYTES_MIN = 64 << 20, 2 << 20


@dataclass(frozen=True)
class TablePartition(InputPartition):  # type: ignore[misc]  # pyspark is not followed
    """A part of a scan or of a change feed, and where its table is."""

    address: WorldAddress
    task: ScanTask | ChangeTask

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, on a worker."""
        world = self.address.open()
        if isinstance(self.task, ScanTask):
            return coalesced(run_scan_task(self.task, world), self.task.batch_size)
        return iter(run_change_task(self.task, world))


class TableReader(DataSourceReader):  # type: ignore[misc]  # pyspark is not followed
    """The reader of one version. It travels to every task, so it holds options and no plan."""

    def __init__(self, options: ReadOptions, pin: Pin | None, struct: Any) -> None:
        self._options, self._pin, self._struct = options, pin, struct

    def partitions(self) -> list[TablePartition]:
        """The parts of the scan; on the driver, once per DataFrame."""
        snapshot = _opened(self._options, self._pin)
        plan = plan_scan(snapshot, scan_options(self._options))
        names = selected(plan.schema, arrow_schema(self._struct))
        if names != plan.schema.names:
            plan = plan_scan(snapshot, scan_options(self._options, names))
        return partitioned(plan.narrowed().whole, WorldAddress.of(snapshot.world), self._options.batch_size)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part, on a worker. Where there are none, Spark makes a partition that is not ours."""
        return read_partition(partition, self._struct) if isinstance(partition, TablePartition) else iter(())


def frame_type(options: ReadOptions, pin: Pin | None) -> tuple[Pin, Any]:
    """The version that is read, and Spark's type of its rows."""
    snapshot = _opened(options, pin)
    schema = plan_scan(snapshot, scan_options(options)).schema
    return Pin(snapshot.branch, snapshot.version), struct_type(spark_schema(schema))


def _opened(options: ReadOptions, pin: Pin | None) -> Snapshot:
    snapshot = open_version(options) if pin is None else open_pinned(options.place, pin)
    require_shared(snapshot.location)
    return snapshot


def scan_options(options: ReadOptions, names: Sequence[str] | None = None) -> ScanOptions:
    """The scan that options ask for; of its columns, those with these names, in this order."""
    columns = options.columns
    if names is not None:
        columns = {name: columns.get(name, name) for name in names} if isinstance(columns, Mapping) else tuple(names)
    return ScanOptions(
        columns=columns,
        filter=options.filter,
        with_row_id=options.with_row_id and names is None,
        with_row_address=options.with_row_address and names is None,
    )


def selected(table: pa.Schema, wanted: pa.Schema) -> list[str]:
    """The columns that a caller's schema names; :class:`SchemaMismatch` lists all that can't be read so.

    ``wanted`` is that of a DataFrame, ``table`` what the scan returns.

    >>> selected(pa.schema({"id": pa.int32(), "text": pa.string()}), pa.schema({"id": pa.int64()}))
    ['id']
    """
    problems = [text for field in wanted for text in _problems(field, table)]
    if problems:
        raise SchemaMismatch(tuple(problems))
    return list(wanted.names)


def _problems(field: pa.Field, table: pa.Schema) -> Iterator[str]:
    if field.name not in table.names:
        yield f"`{field.name}` is no column of the table, which has {', '.join(table.names)}"
        return
    own = table.field(field.name)
    kind = spark_type(own.type, own.name)
    if not (is_same_to_spark(kind, field.type) or _is_wider(kind, field.type)):
        yield f"`{field.name}` can't be read as {field.type}: it is {own.type}, in Spark {kind}"
    elif own.nullable and not field.nullable:
        yield f"`{field.name}` may be null in the table, and the schema says that it is not"


def _is_wider(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every number of one type is one of the other."""
    if at.is_signed_integer(own) and at.is_signed_integer(wanted):
        return bool(own.bit_width < wanted.bit_width)
    return at.is_float64(wanted) and (at.is_float32(own) or (at.is_signed_integer(own) and own.bit_width <= 32))


def partitioned(scan: ScanTask, address: WorldAddress, batch_size: int | None = None) -> list[TablePartition]:
    """A scan in parts: about as many as there are processors, and more where they would exceed 64 MiB."""
    total, (rows, _) = scan.estimated_bytes, row_counts(scan.fragments)
    size = min(PARTITION_BYTES, max(PARTITION_BYTES_MIN, total // max(1, default_threads())))
    scan = replace(scan, batch_size=rows_per_batch(total, rows) if batch_size is None else batch_size)
    return [TablePartition(address, task) for task in scan.split(size)]


def rows_per_batch(nbytes: int, rows: int) -> int:
    """How many rows of this size go to the JVM at once: 65,536, or about 32 MiB if that is less.

    >>> rows_per_batch(8_000_000, 1_000_000), rows_per_batch(4096 * 10_000, 10_000)
    (65536, 8192)
    """
    return min(BATCH_ROWS, max(BATCH_ROWS_MIN, BATCH_BYTES // max(1, nbytes // max(1, rows))))


def read_partition(partition: TablePartition, struct: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a part, in the Arrow types that Spark expects for ``struct``."""
    schema = exchanged_schema(struct)
    for batch in partition.batches():
        if batch.num_rows:
            yield to_spark(batch, schema)
