"""Writing for the data source: partitions write data files, then one commit makes them a version.

1. *Plan*, in a process beside the driver: the columns' types are the table's where Spark can't tell them apart (a
   fixed-size vector is an array to Spark), also when the table is overwritten.
2. *Write*, on executors: each partition writes files whose names carry the mark of this write, and answers with their
   fragments (:mod:`tablewright.engine.spark.marks`).
3. *Commit*, in another process beside the driver: small files are joined, and one transaction is committed on the
   newest version, by the same job as ``write_dataset``. If it fails, that job removes the files.
4. *Abort*, if a partition failed: Spark does not say what the others, or earlier attempts, have written, so all files
   are found by their mark. An abort after a commit that failed removes nothing: that version may exist.

Tests: tests/unit/spark/test_writer.py, tests/spark/test_source.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tablewright.api.write import properties_of
from tablewright.data.conform import conform
from tablewright.engine.local import LocalEngine
from tablewright.engine.shared import require_shared
from tablewright.engine.spark.inputs import stored_schema
from tablewright.engine.spark.marks import Mark
from tablewright.engine.spark.types import arrow_schema
from tablewright.engine.spark.worker import WorldAddress
from tablewright.errors import CommitUnknown
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.jobs.small_files import join_small_files
from tablewright.jobs.write import WriteJob, latest_or_none
from tablewright.operations.write import WritePlan, WriteSettings, plan_again, plan_write, run_again, run_write
from tablewright.snapshot.snapshot import Snapshot
from tablewright.spark.options import WriteOptions
from tablewright.spark.places import open_place
from tablewright.world import World

__all__ = [
    "PlannedWrite",
    "TableWriter",
    "WrittenPart",
    "commit_parts",
    "is_retried",
    "plan_frame",
    "removed_unless_committed",
    "write_part",
    "write_settings",
]


@dataclass(frozen=True)
class WrittenPart(WriterCommitMessage):  # type: ignore[misc]  # pyspark is not followed
    """What one partition wrote. ``retried``: an earlier attempt at it may have left files."""

    fragments: tuple[Fragment, ...]
    retried: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """A decided write, as it travels to executors and to the commit. ``incoming`` are the columns of the DataFrame."""

    options: WriteOptions
    settings: WriteSettings
    incoming: pa.Schema
    plan: WritePlan
    address: WorldAddress


class TableWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark is not followed
    """The writer of one DataFrame."""

    def __init__(self, options: WriteOptions, struct: Any, mode: str) -> None:
        self._write = plan_frame(options, arrow_schema(struct), mode)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write one partition, on an executor."""
        return WrittenPart(write_part(self._write, iterator, self._write.address.open()), is_retried())

    def commit(self, messages: list[WrittenPart | None]) -> None:
        """Make what all partitions wrote one version."""
        parts = [message for message in messages if message is not None]
        world, mark = self._write.address.open(), self._write.address.mark
        with removed_unless_committed(mark, world):
            snapshot = commit_parts(self._write, parts, world)
        if any(part.retried for part in parts):
            mark.discard(world, keep=frozenset(data_paths(snapshot.fragments)))

    def abort(self, messages: list[WrittenPart | None]) -> None:
        """A partition failed: remove what the others wrote."""
        if None in messages:
            self._write.address.mark.discard(self._write.address.open())


def plan_frame(options: WriteOptions, schema: pa.Schema, mode: str) -> PlannedWrite:
    """Decide how a DataFrame with this schema is written."""
    world = open_place(options.place)
    require_shared(world.store.location)
    base, settings = latest_or_none(world), write_settings(options, mode)
    incoming = stored_schema(schema, None if base is None else base.schema.to_arrow())
    plan = plan_write(base, world.store.location.uri, incoming, settings)
    return PlannedWrite(
        options=options, settings=settings, incoming=incoming, plan=plan, address=WorldAddress.of(world, Mark())
    )


def write_settings(options: WriteOptions, mode: str) -> WriteSettings:
    """The settings of a write, with the defaults of ``write_dataset`` where options say nothing."""
    settings = WriteSettings(
        mode=mode,
        data_storage_version=options.data_storage_version,
        enable_stable_row_ids=options.stable_row_ids,
    )
    rows = options.max_rows_per_file
    return settings if rows is None else replace(settings, max_rows_per_file=rows)


def write_part(write: PlannedWrite, batches: Iterator[pa.RecordBatch], world: World) -> tuple[Fragment, ...]:
    """The fragments of one partition, whose columns are those of ``incoming`` by position; none if it has no rows."""
    names, columns = write.incoming.names, write.plan.columns.to_arrow()
    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    if first is None:
        return ()

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in chain([first], full):
            yield conform(batch.rename_columns(names), columns)

    return run_write(write.plan, rows(), world)


def commit_parts(
    write: PlannedWrite, parts: Sequence[WrittenPart], world: World, properties: Mapping[str, str] | None = None
) -> Snapshot:
    """One version with the rows of all parts, on the newest version there is.

    Where a column was cast since the write was planned, its rows are written again in the new type.
    """
    fragments = tuple(fragment for part in parts for fragment in part.fragments)

    def written(plan: WritePlan) -> tuple[Fragment, ...]:
        if plan.columns.fields != write.plan.columns.fields or plan.options != write.plan.options:
            return run_again(plan, write.plan, fragments, world)
        return tuple(join_small_files(plan, fragments, world, LocalEngine()))

    job = WriteJob(
        world=world,
        settings=write.settings,
        incoming=write.incoming,
        write=written,
        properties=properties_of(write.options.commit_message, properties),
    )
    base = job.base_for(None)
    if base is None or write.settings.mode != "append":
        return job.run(base, job.plan(base))
    return job.run(base, plan_again(write.plan, base, write.settings))


@contextmanager
def removed_unless_committed(mark: Mark, world: World) -> Iterator[None]:
    """A commit: if it certainly failed, the files with the mark are removed."""
    try:
        yield
    except CommitUnknown:
        raise  # the version may exist: its files have to stay
    except Exception:
        mark.discard(world)
        raise


def is_retried() -> bool:
    """Whether this task was tried before."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0
