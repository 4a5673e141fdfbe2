"""Rows that move: written again to new fragments, and hidden by deletion files where they were.

A task takes several fragments, so that a small change makes one new file and not one per fragment. What new values need
of the old rows is read, of these rows and of no others. On tables with stable row ids the rows are written in the order
of these (:mod:`.row_order`), and the new fragments bring them along.

Format: ``docs/format/transactions.md#rows-that-move``.

Tests: ``tests/unit/operations/test_update.py``, ``tests/differential/operations/test_update.py``,
``tests/unit/operations/rewrite/test_row_order.py``, ``tests/unit/operations/rewrite/test_move.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablewright.data.dictionaries import as_one
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.data.task_context import TaskContext
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.fragment_change import FragmentChange
from tablewright.operations.rewrite.hide import Hidden, hide_each
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.operations.rewrite.row_order import RowOrder, row_order, windows
from tablewright.reading.fragment import FragmentScan
from tablewright.reading.known_rows import KnownReads, KnownRows, read_known_rows
from tablewright.reading.projection import Selection
from tablewright.storage.together import together
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = ["MovedRows", "NewRows", "move_rows"]

_KEPT_ROWS = 64  # these are in few batches, which stay in memory until they are written


class NewRows(Protocol):
    """What rows become that move. Threads ask for several batches at a time."""

    @property
    def selection(self) -> Selection | None:
        """What is read of each row where it was; ``None``: nothing."""

    @property
    def rows_at_a_time(self) -> int | None:
        """How many rows a batch has at most; ``None``: as many as are read at a time."""

    def batch(self, numbers: Offsets, old: pa.RecordBatch | None) -> pa.RecordBatch:
        """Some rows with all columns of the table. ``numbers`` count all that move in the order of their addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRows:
    """The rows that are hidden where they were, and the new fragments (without ids yet) that hold them now.

    ``sidecars`` are objects with the bytes of their blobs.
    """

    hidden: tuple[Hidden, ...]
    fragments: tuple[Fragment, ...]
    rows_read: int
    bytes_read: int
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written."""
        return (*data_paths(self.fragments), *self.sidecars, *[path for each in self.hidden for path in each.paths])

    @property
    def bytes_written(self) -> int:
        """Their size."""
        data = sum([fragment.data_bytes for fragment in self.fragments])
        return data + sum([each.bytes_written for each in self.hidden])


def move_rows(
    context: TaskContext,
    world: World,
    table: Schema,
    rows: NewRows,
    changes: Sequence[FragmentChange],
    *,
    version: int,
    file_version: str,
    limits: RewriteLimits,
) -> MovedRows:
    """Write the changed rows, and hide the old ones. If it fails, no file stays.

    On a store that answers slowly both are under way at the same time.
    """
    options = WriteOptions(
        max_rows_per_file=limits.rows_per_file,
        data_storage_version=file_version,
        in_memory=sum(len(change.changed) for change in changes) <= _KEPT_ROWS,
    )
    order = _order(context, changes, limits, are_read=rows.selection is not None)
    stream = _Stream(context, table, rows, changes)
    gone = [(change.fragment, change.changed | change.deleted) for change in changes]
    sidecars: list[str] = []
    with removed_on_failure(world.store) as files:

        def write() -> tuple[Fragment, ...]:
            fragments = write_fragments(world, table, stream.batches(order), options, sidecars=sidecars)
            files.add([*data_paths(fragments), *sidecars])
            return fragments

        fragments, hidden = together(world.store, write, partial(hide_each, context, world, version, gone, files))
        return MovedRows(
            hidden=hidden,
            fragments=_with_row_ids(fragments, order.ids),
            rows_read=stream.rows_read,
            bytes_read=stream.bytes_read,
            sidecars=tuple(sidecars),
        )


def _order(
    context: TaskContext, changes: Sequence[FragmentChange], limits: RewriteLimits, *, are_read: bool
) -> RowOrder:
    sequences = [(change, ids) for change in changes if (ids := context.row_ids(change.fragment)) is not None]
    if not sequences:
        return RowOrder()
    found = [ids.picked(change.offsets) for change, ids in sequences]
    return row_order(found, are_read=are_read, up_and_down_rows=limits.up_and_down_rows)


def _with_row_ids(fragments: Sequence[Fragment], ids: RowIdSequence | None) -> tuple[Fragment, ...]:
    """Each new fragment with the ids of its own rows."""
    if ids is None:
        return tuple(fragments)
    carrying, begin = [], 0
    for fragment in fragments:
        end = begin + fragment.physical_rows
        carrying.append(replace(fragment, row_ids=encode_row_ids(ids.slice(begin, end))))
        begin = end
    assert begin == len(ids), f"{begin} rows were written for {len(ids)} row ids: ids would move to other rows"
    return tuple(carrying)


# ------------------------------------------------------------------------------------------------------------- stream
_Read = Callable[[], pa.RecordBatch]


class _Stream:
    """The rows as they are written, made ahead of the writer; and how much was read for them."""

    def __init__(self, context: TaskContext, table: Schema, rows: NewRows, changes: Sequence[FragmentChange]) -> None:
        self._context, self._table, self._new, self._changes = context, table, rows, changes
        self._offsets = [change.offsets for change in changes]
        self.rows_read = self.bytes_read = 0

    def batches(self, order: RowOrder) -> Iterator[pa.RecordBatch]:
        """All rows, once, in this order."""
        selection = self._new.selection
        if selection is None:
            parts = self._not_read(order)
        elif order.places is None:
            parts = self._by_address(selection)
        else:
            parts = self._by_id(selection, order.places)
        for read, size, batch in prefetch(self._made, parts):
            self.rows_read += read
            self.bytes_read += size
            yield batch

    def _made(self, part: tuple[Offsets, _Read | None]) -> tuple[int, int, pa.RecordBatch]:
        """Rows and bytes that were read, and the new rows."""
        numbers, read = part
        old = None if read is None else read()
        batch = self._new.batch(numbers, old)
        assert batch.num_rows == len(numbers), f"{batch.num_rows} rows for {len(numbers)} that are hidden"
        return (0, 0, batch) if old is None else (len(numbers), old.nbytes, batch)

    def _not_read(self, order: RowOrder) -> Iterator[tuple[Offsets, _Read | None]]:
        numbers = np.arange(sum(map(len, self._offsets))) if order.places is None else order.places
        step = self._new.rows_at_a_time or max(1, len(numbers))
        for begin in range(0, len(numbers), step):
            yield numbers[begin : begin + step], None

    def _by_address(self, selection: Selection) -> Iterator[tuple[Offsets, _Read | None]]:
        """Runs of rows of one fragment, each small enough."""
        reads, done = KnownReads.of(self._table, selection), 0
        for change, offsets in zip(self._changes, self._offsets, strict=True):
            if self._new.rows_at_a_time is None and reads.are_few(change.fragment, len(offsets)):
                yield np.arange(done, done + len(offsets)), partial(self._few, reads, change, offsets)
                done += len(offsets)
                continue
            scan = self._scan(reads, change)
            for rows in scan.windows(Rows(no_columns(len(offsets)), chosen=offsets)):
                step = self._new.rows_at_a_time or len(rows)
                for begin in range(0, len(rows), step):
                    cut = rows.slice(begin, min(len(rows), begin + step))
                    yield np.arange(done, done + len(cut)), partial(_completed, scan, cut)
                    done += len(cut)

    def _by_id(self, selection: Selection, places: Offsets) -> Iterator[tuple[Offsets, _Read | None]]:
        """Windows of consecutive ids, over all fragments."""
        reads = KnownReads.of(self._table, selection)
        scans = [self._scan(reads, change) for change in self._changes]
        for window in windows(scans, self._offsets, places, self._new.rows_at_a_time):
            yield window.places, window.read

    def _scan(self, reads: KnownReads, change: FragmentChange) -> FragmentScan:
        return FragmentScan(self._context, reads.plan, reads.plan.shapes(), change.fragment, change.first_row)

    def _few(self, reads: KnownReads, change: FragmentChange, offsets: Offsets) -> pa.RecordBatch:
        wanted = KnownRows(change.fragment, change.first_row, offsets)
        return as_one(read_known_rows(self._context, reads, [wanted]))


def _completed(scan: FragmentScan, rows: Rows) -> pa.RecordBatch:
    (batch,) = scan.complete(rows)
    return batch
