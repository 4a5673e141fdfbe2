"""``writeStream.format("tablewright")``: every batch of a stream becomes one version, exactly once.

Spark commits a batch again after a crash. So the commit carries the query's id and the batch's number into the table's
config (:mod:`tablewright.transaction.stream_state`), and a batch that is there already is not committed again: the
files of the repeated attempt are removed.

Spark makes a writer for the tasks of a batch and another one, in another process, for its commit. So the tasks' answers
carry all that the commit needs: the plan, the mark in the files' names, and the id of the query, which Spark tells
tasks alone.

Tests: tests/unit/spark/test_stream_writer.py, tests/spark/test_streams.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from tablewright.engine.spark.marks import MARK_BYTES, Mark
from tablewright.engine.spark.types import arrow_schema
from tablewright.jobs.write import latest_or_none
from tablewright.log import Log
from tablewright.spark.options import WriteOptions
from tablewright.spark.writer import (
    PlannedWrite,
    WrittenPart,
    commit_parts,
    discard_uncommitted,
    is_retried,
    plan_frame,
    removed_unless_committed,
    write_part,
)
from tablewright.transaction.stream_state import BatchCommitted, StreamBatch, check_new_batch

__all__ = ["StreamPart", "TableStreamWriter"]

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  # Spark's own names of what it tells tasks
_log = Log("stream")


@dataclass(frozen=True)
class StreamPart(WrittenPart):
    """What one partition of a batch wrote, by which plan, and for which query."""

    write: PlannedWrite | None = None
    query: str = ""


class TableStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # pyspark is not followed
    """The writer of a stream. The write is planned when Spark sends it to tasks, and not for commits."""

    def __init__(self, options: WriteOptions, struct: Any) -> None:
        self._options, self._schema = options, arrow_schema(struct)
        self._planned: PlannedWrite | None = None

    def __getstate__(self) -> dict[str, Any]:
        self._planned = self._planned or plan_frame(self._options, self._schema, "append")
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamPart:
        """Write one partition of a batch, on an executor."""
        query, batch = _running()
        assert self._planned is not None, "a writer is planned before it travels"
        mark = _mark_of(self._planned.address.mark, batch)
        write = replace(self._planned, address=replace(self._planned.address, mark=mark))
        return StreamPart(write_part(write, iterator, write.address.open()), is_retried(), write, query)

    def commit(self, messages: list[StreamPart | None], batchId: int) -> None:
        """Make what all partitions wrote one version, unless the table has this batch already."""
        parts = [message for message in messages if message is not None and message.write is not None]
        if not any(part.fragments for part in parts):
            return
        write, batch = parts[0].write, StreamBatch(name=parts[0].query, batch=batchId)
        assert write is not None
        world = write.address.open()
        try:
            with removed_unless_committed(write, world):
                newest = latest_or_none(world)
                if newest is not None:
                    check_new_batch(newest.manifest.config, batch.properties)
                snapshot = commit_parts(write, parts, world, batch.properties)
        except BatchCommitted as error:
            _log.info("repeated", "%(table)s: %(error)s", table=world.store.location.uri, error=error)
            return
        if any(part.retried for part in parts):
            discard_uncommitted(write, world, snapshot)

    def abort(self, messages: list[StreamPart | None], batchId: int) -> None:
        """A partition failed: remove what the others wrote. Of a batch without any answer, cleanup finds the files."""
        writes = [message.write for message in messages if message is not None and message.write is not None]
        if writes and None in messages:
            writes[0].address.mark.discard(writes[0].address.open())


def _running() -> tuple[str, str]:
    """The id of the query, and the number of the batch that this task belongs to."""
    context = TaskContext.get()
    assert context is not None, "a batch of a stream is written by Spark's tasks"
    return str(context.getLocalProperty(QUERY)), str(context.getLocalProperty(BATCH))


def _mark_of(mark: Mark, batch: str) -> Mark:
    """A mark for each batch: a writer may serve several, and files of one that is committed must not be found."""
    return Mark(blake2b(mark.token + batch.encode(), digest_size=MARK_BYTES).digest())
