"""One group of fragments, written again: its live rows in order, without dead rows and dead columns.

Rows stream through: pieces are read ahead of the writer, so memory is batch × threads whatever the group's size.
Columns that no fragment of the group has a file for are null in all rows, and are not written.

Tests: ``tests/unit/operations/compact/test_task.py``, ``tests/differential/test_compact.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

import pyarrow as pa

from tablewright.data.task_context import TaskContext
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.blobs import as_rows
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_paths
from tablewright.format.schema import Schema
from tablewright.operations.compact.plan import CompactionPlan, CompactionTask
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.projection import select_columns
from tablewright.reading.run import coalesced, run_reads, slices
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["GroupTask", "Rewritten", "group_task", "group_tasks", "rewrite_group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """A group as a message: with all that a worker needs beside the world."""

    task: CompactionTask
    table: Schema
    base_paths: tuple[BasePath, ...]
    file_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What a task made of its group. ``new_fragments`` have neither ids nor row lineage yet.

    ``sidecars`` are objects with the bytes of their blobs.
    """

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    read_version: int
    rows_read: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written."""
        return (*data_paths(self.new_fragments), *self.sidecars)

    @property
    def bytes_written(self) -> int:
        """The size of the new data files."""
        return sum(fragment.data_bytes for fragment in self.new_fragments)


def group_tasks(plan: CompactionPlan, snapshot: Snapshot) -> list[GroupTask]:
    """The tasks of a plan, ready for an engine."""
    return [group_task(task, snapshot) for task in plan.tasks]


def group_task(task: CompactionTask, snapshot: Snapshot) -> GroupTask:
    """One task, ready for an engine. ``snapshot`` is the version that it was planned on."""
    return GroupTask(
        task=task,
        table=as_rows(snapshot.schema),
        base_paths=snapshot.manifest.base_paths,
        file_version=new_file_version(snapshot.manifest, task.options.data_storage_version),
    )


def rewrite_group(message: GroupTask, world: World) -> Rewritten:
    """Write the live rows of a group to new files. If it fails, no file stays."""
    started, task = time.perf_counter(), message.task
    rows = _Rows(message, world)
    options = WriteOptions(max_rows_per_file=task.rows_per_file, data_storage_version=message.file_version)
    if task.options.max_bytes_per_file is not None:
        options = replace(options, max_bytes_per_file=task.options.max_bytes_per_file)
    sidecars: list[str] = []
    written = write_fragments(world, rows.schema, rows.batches(), options, sidecars=sidecars)
    made = sum(fragment.physical_rows for fragment in written)
    assert made == task.live_rows, f"{made} rows were written of {task.live_rows}: addresses would move"
    return Rewritten(
        old_fragments=task.fragments,
        new_fragments=written,
        read_version=task.read_version,
        rows_read=sum(fragment.physical_rows for fragment in task.fragments),
        bytes_read=rows.bytes_read,
        seconds=time.perf_counter() - started,
        sidecars=tuple(sidecars),
    )


class _Rows:
    """The rows of a group on their way, and how many bytes were read for them."""

    def __init__(self, message: GroupTask, world: World) -> None:
        self._task, self._table = message.task, message.table
        self._context = TaskContext(world, message.base_paths)
        self.schema = _held(message.table, message.task.fragments)
        self.bytes_read = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        fragments = self._task.fragments
        selection = select_columns(self._table, list(self.schema.names))
        reads = ReadPlan.of(self._table, selection, None)
        first_rows = list(accumulate((fragment.live_rows for fragment in fragments[:-1]), initial=0))
        for batch in coalesced(run_reads(self._context, reads, fragments, first_rows)):
            self.bytes_read += batch.nbytes
            yield from slices(batch, self._task.options.batch_size or max(1, batch.num_rows))


def _held(table: Schema, fragments: Iterable[Fragment]) -> Schema:
    """The columns that some fragment has a file for; all of them if there are none, since rows need a file."""
    held = frozenset().union(*(fragment.live_fields for fragment in fragments))
    wanted = [column.name for column in table.top_level if not held.isdisjoint(table.descendants(column.id))]
    return table.project_ids(table.node_ids(wanted)) if wanted else table
