"""Reading what changed: a task names rows of fragments, and the worker returns them as rows of the feed.

1. Rows are picked as stretches of offsets, so a task stays small. They are expanded a piece at a time.
2. Only these rows are read, in the columns that the feed and its filter need: dense ones as ranges, others one by one
   (:class:`~tablewright.reading.fragment.FragmentScan`).
3. Each row gets the columns of the feed: what happened to it, in which version and when, and its id.
4. The filter looks at the complete row, and the columns that were asked for come back.

Pieces are read by threads ahead of the consumer, and come back in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, beside, no_columns
from tablewright.data.task_context import TaskContext
from tablewright.expressions.filters import Predicate
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.operations.change_feed.columns import fit_rows
from tablewright.operations.change_feed.runs import KINDS, Codes, Numbers, Picks
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import Output, Path, RowLayout, Selection
from tablewright.reading.run import slices
from tablewright.world import World

__all__ = ["FEED_COLUMNS", "ChangeTask", "FeedRows", "Picked", "SideReads", "run_change_task", "run_change_tasks"]

FEED_COLUMNS: dict[str, pa.DataType] = {
    "_change_type": pa.string(),
    "_commit_version": pa.int64(),
    "_commit_timestamp": pa.timestamp("us", tz="UTC"),
    "_rowid": pa.uint64(),
}
"""What the feed adds to each row, in this order, after the columns that were asked for."""

_KINDS = pa.array(KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRows:
    """What every row of a feed looks like: which are wanted, and with which columns."""

    selection: Selection
    predicate: Predicate | None
    batch_size: int

    @property
    def paths(self) -> tuple[Path, ...]:
        """The fields of the table, and its system columns, that have to be read."""
        wanted = (*self.selection.paths, *(() if self.predicate is None else self.predicate.paths))
        return tuple(path for path in dict.fromkeys(wanted) if path[0] not in FEED_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReads:
    """What to read of fragments of one version: its fields under the feed's names, and the types they become."""

    plan: ReadPlan
    schema: pa.Schema

    @classmethod
    def of(cls, side: Schema, feed: Schema, paths: tuple[Path, ...]) -> SideReads:
        """The reads of all that lies at ``paths`` of the feed."""
        layout, target = RowLayout.of(side, paths), RowLayout.of(feed, paths)
        system = [pa.field(name, pa.uint64()) for name in layout.system]
        outputs = tuple(Output(name=name, path=(name,)) for name in layout.names)
        selection = Selection(
            outputs=outputs, schema=pa.schema([*layout.fields.to_arrow().remove_metadata(), *system]), paths=paths
        )
        schema = pa.schema([*target.fields.to_arrow().remove_metadata(), *system])
        return cls(plan=ReadPlan.of_known_rows(side, selection), schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """Rows of one fragment. It carries neither its row ids nor its deletions: the picks know what is needed."""

    fragment: Fragment
    picks: Picks


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTask:
    """Changed rows of some fragments of one version, as a message."""

    base_paths: tuple[BasePath, ...]
    version: int
    picked: tuple[Picked, ...]
    reads: SideReads
    rows: FeedRows
    rows_at_a_time: int
    commit_version: int
    commit_timestamp_us: int

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self.rows.selection.schema


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of a fragment to be read, what happened to them, and their ids."""

    task: ChangeTask
    scan: FragmentScan
    rows: Rows
    kinds: Codes
    ids: Numbers


def run_change_task(task: ChangeTask, world: World) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in batches of at most its batch size."""
    return run_change_tasks([task], world)


def run_change_tasks(tasks: Iterable[ChangeTask], world: World) -> Iterator[pa.RecordBatch]:
    """The rows of several tasks, in order."""
    pieces = (piece for task in tasks for piece in _pieces(task, world))
    for batch, size in prefetch(_read, pieces):
        if batch.num_rows:
            yield from slices(batch, size)


def _pieces(task: ChangeTask, world: World) -> Iterator[_Piece]:
    context = TaskContext(world, task.base_paths)
    plan = task.reads.plan
    shapes = plan.shapes()
    for picked in task.picked:
        scan = FragmentScan(context, plan, shapes, picked.fragment, 0)
        for offsets, kinds, ids in _expanded(picked.picks, task.rows_at_a_time):
            begin = 0
            for rows in scan.windows(Rows(no_columns(len(offsets)), chosen=offsets)):
                end = begin + len(rows)
                yield _Piece(task, scan, rows, kinds[begin:end], ids[begin:end])
                begin = end


def _expanded(picks: Picks, rows_at_a_time: int) -> Iterator[tuple[Offsets, Codes, Numbers]]:
    """Offset, fate and id of each row, some at a time."""
    ends = np.cumsum(picks.counts)
    starts = ends - picks.counts
    for begin in range(0, picks.total_rows, rows_at_a_time):
        end = min(picks.total_rows, begin + rows_at_a_time)
        here = slice(np.searchsorted(ends, begin, side="right"), np.searchsorted(starts, end, side="left"))
        skipped = np.maximum(begin - starts[here], 0)
        counts = np.minimum(ends[here], end) - starts[here] - skipped
        steps = np.arange(end - begin) - np.repeat(np.cumsum(counts) - counts, counts)
        yield (
            np.repeat(picks.offsets[here] + skipped, counts) + steps,
            np.repeat(picks.kinds[here], counts),
            np.repeat(picks.ids[here] + skipped.astype(np.uint64), counts) + steps.astype(np.uint64),
        )


def _read(piece: _Piece) -> tuple[pa.RecordBatch, int]:
    """The rows of a piece as the feed shows them."""
    task = piece.task
    (read,) = piece.scan.complete(piece.rows)
    batch = beside(fit_rows(read, task.reads.schema, task.version), _feed_columns(piece))
    if task.rows.predicate is not None:
        batch = task.rows.predicate.filter(batch)
    return task.rows.selection.shape(batch), task.rows.batch_size


def _feed_columns(piece: _Piece) -> pa.RecordBatch:
    rows, task = len(piece.rows), piece.task
    version, moment = pa.scalar(task.commit_version, pa.int64()), pa.scalar(task.commit_timestamp_us, pa.int64())
    arrays = [
        _KINDS.take(pa.array(piece.kinds)),
        pa.repeat(version, rows),
        pa.repeat(moment, rows).cast(FEED_COLUMNS["_commit_timestamp"]),
        pa.array(piece.ids),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(FEED_COLUMNS))
