"""Writing for the data source: partitions write data files, then one commit makes them a version.

1. *Plan*, in a process beside the driver: the columns' types are the table's where Spark can't tell them apart (a
   fixed-size vector is an array to Spark), also when the table is overwritten.
2. *Write*, on executors: each partition writes files whose names carry the mark of this write, and answers with their
   fragments (:mod:`tablewright.engine.spark.marks`).
3. *Commit*, in another process beside the driver: small files are joined, and one transaction is committed on the
   newest version, by the same job as ``write_dataset``. If it fails, the files are removed that no version names. A
   commit that is called again after a lost reply finds its mark in the newest version, and changes nothing.
4. *Abort*, if a partition failed: Spark does not say what the others, or earlier attempts, have written, so all files
   are found by their mark. An abort after a commit that failed removes nothing: that version may exist.

Tests: tests/unit/spark/test_writer.py, tests/spark/test_source.py, tests/concurrency/test_source_faults.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from tablewright.errors import CommitUnknown, TablewrightError, VersionNotFound
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.jobs.small_files import join_small_files
from tablewright.jobs.write import WriteJob, latest_or_none
from tablewright.operations.write import WritePlan, WriteSettings, plan_again, plan_write, run_again, run_write
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.spark.options import WriteOptions
from tablewright.spark.places import open_place
from tablewright.storage.uncommitted import discard_files
from tablewright.world import World

__all__ = [
    "PlannedWrite",
    "TableWriter",
    "WrittenPart",
    "commit_parts",
    "discard_uncommitted",
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
        world = self._write.address.open()
        with removed_unless_committed(self._write, world):
            snapshot = commit_parts(self._write, parts, world)
        if any(part.retried for part in parts):
            discard_uncommitted(self._write, world, snapshot)

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
    """One version with the rows of all parts, on the newest version there is; that one itself if it has them already.

    Where a column was cast since the write was planned, its rows are written again in the new type.
    """
    fragments = tuple(fragment for part in parts for fragment in part.fragments)

    def written(plan: WritePlan) -> tuple[Fragment, ...]:
        if plan.columns.fields != write.plan.columns.fields or plan.options != write.plan.options:
            again = run_again(plan, write.plan, fragments, world)
            discard_files(world.store, data_paths(fragments))
            return again
        return tuple(join_small_files(plan, fragments, world, LocalEngine()))

    job = WriteJob(
        world=world,
        settings=write.settings,
        incoming=write.incoming,
        write=written,
        properties=properties_of(write.options.commit_message, properties),
    )
    base = job.base_for(None)
    if base is not None and base.version != write.plan.read_version and marked_files_of(base, write.address.mark):
        return base
    if base is None or write.settings.mode != "append":
        return job.run(base, job.plan(base))
    return job.run(base, plan_again(write.plan, base, write.settings))


@contextmanager
def removed_unless_committed(write: PlannedWrite, world: World) -> Iterator[None]:
    """A commit: if it certainly failed, the files with the mark are removed, but for those of an earlier call."""
    try:
        yield
    except CommitUnknown:
        raise  # the version may exist: its files have to stay
    except Exception:
        discard_uncommitted(write, world)
        raise


def discard_uncommitted(write: PlannedWrite, world: World, newest: Snapshot | None = None) -> None:
    """Remove the files of a write that no version names, up to ``newest``; without it, the newest is looked for.

    Where versions can't be read, all files are left to cleanup.
    """
    mark, planned_on = write.address.mark, write.plan.read_version
    with suppress(TablewrightError):
        newest = newest or latest_or_none(world)
        if newest is None and planned_on:
            return  # the listing is older than the plan
        named = set[str]() if newest is None else {*marked_files_of(newest, mark)}
        for version in range(planned_on + 1, 0 if newest is None else newest.version):
            with suppress(VersionNotFound):  # cleanup removed it
                named |= marked_files_of(open_snapshot(world, version), mark)
        mark.discard(world, keep=named)


def marked_files_of(snapshot: Snapshot, mark: Mark) -> frozenset[str]:
    """The data files of a version whose names have the mark. Only fragments whose bytes contain it are decoded."""
    word, fragments = mark.token.hex().encode(), snapshot.fragments
    marked = [fragments[place] for place, raw in enumerate(fragments.raw) if word in raw]
    return frozenset(path for path in data_paths(marked) if mark.is_in(path))


def is_retried() -> bool:
    """Whether this task was tried before."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0
