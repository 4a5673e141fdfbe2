"""Columns that others wrote while a group was being rewritten, written beside its new files.

A task makes the column file of one new fragment: the rows that it consists of, in order, read from the newest state of
the fragments that they came from. Rows that were dead when the group was read are left out, as they were then. Of a
fragment that is gone, every row is hidden in the new one, and its values are null, or any where null is not allowed.

Tests: ``tests/unit/operations/compact/test_carry.py``, ``tests/concurrency/test_compaction_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from tablewright.data.conform import solid
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.data.task_context import TaskContext
from tablewright.data.write import write_data_file
from tablewright.format.address_map import Piece
from tablewright.format.blobs import as_rows
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.operations.columns.fill import Filler
from tablewright.operations.compact.groups import Group, Now, stale_columns
from tablewright.operations.rewrite.column_values import filled
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import select_columns
from tablewright.reading.run import fragment_scans
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["Carried", "CarryTask", "carry_columns", "carry_tasks", "with_carried"]

_FILLER_ROWS = 8192
_Read = Callable[[], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of a new fragment that come from one old one: in ``piece``, without those that were dead.

    ``fragment`` is the newest state of the old one, ``None`` if it is gone.
    """

    fragment: Fragment | None
    was: Fragment
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryTask:
    """One new fragment, and the columns to be written for it, as a message."""

    fragment_id: int
    rows: int
    columns: tuple[str, ...]
    sources: tuple[Source, ...]
    table: Schema
    base_paths: tuple[BasePath, ...]
    file_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The column file that was written for a new fragment."""

    fragment_id: int
    file: DataFile
    rows_read: int
    bytes_read: int
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        return (data_path(self.file.path), *self.sidecars)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return self.file.file_size_bytes


def carry_tasks(group: Group, now: Now, newest: Snapshot, file_version: str) -> list[CarryTask]:
    """The tasks that bring a group's new files up to date; none if no column is stale."""
    columns = stale_columns(group, now, newest.schema)
    if not columns:
        return []
    addresses = group.address_map(newest)
    sources = {old.id: (current, old) for old, current in zip(group.old, now, strict=True)}
    return [
        CarryTask(
            fragment_id=fragment.id,
            rows=fragment.physical_rows,
            columns=columns,
            sources=tuple(Source(*sources[piece.old_id], piece) for piece in addresses.pieces(fragment.id)),
            table=as_rows(newest.schema),
            base_paths=newest.manifest.base_paths,
            file_version=file_version,
        )
        for fragment in group.new
    ]


def with_carried(group: Group, now: Now, carried: Sequence[Carried]) -> Group:
    """The group with its new column files, up to date with the newest version."""
    files = {each.fragment_id: each for each in carried}
    new = tuple(
        fragment.with_column_file(files[fragment.id].file) if fragment.id in files else fragment
        for fragment in group.new
    )
    paths = tuple(path for each in carried for path in each.paths)
    return replace(
        group,
        new=new,
        known=now,
        paths=(*group.paths, *paths),
    )


def carry_columns(task: CarryTask, world: World) -> Carried:
    """Write the column file of one new fragment. If it fails, no file stays."""
    rows = _Rows(task, world)
    written = task.table.project_ids(task.table.node_ids(task.columns))
    sidecars: list[str] = []
    file, count = write_data_file(world, written, rows.batches(), task.file_version, sidecars=sidecars)
    assert count == task.rows, f"{count} values were written: a column has one per physical row, {task.rows}"
    return Carried(
        fragment_id=task.fragment_id,
        file=file,
        rows_read=task.rows,
        bytes_read=rows.bytes_read,
        sidecars=tuple(sidecars),
    )


class _Rows:
    """The values on their way, read ahead of the writer; and how many bytes were read for them."""

    def __init__(self, task: CarryTask, world: World) -> None:
        self._task = task
        self._were = TaskContext(world, task.base_paths)
        self._now = TaskContext(world, task.base_paths)
        self._fields = [task.table.to_arrow().field(name) for name in task.columns]
        self.bytes_read = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        selection = select_columns(self._task.table, list(self._task.columns))
        reads = ReadPlan.of_known_rows(self._task.table, selection)
        present = [source.fragment for source in self._task.sources if source.fragment is not None]
        scans = iter(fragment_scans(self._now, reads, present, [0] * len(present)))
        parts = (
            part
            for source in self._task.sources
            for part in (self._fillers(source) if source.fragment is None else self._reads(next(scans), source))
        )
        for batch in prefetch(lambda read: read(), parts):
            self.bytes_read += batch.nbytes
            arrays = [filled(batch.column(field.name), field) for field in self._fields]
            yield solid(pa.RecordBatch.from_arrays(arrays, names=list(self._task.columns)))

    def _reads(self, scan: FragmentScan, source: Source) -> Iterator[_Read]:
        rows = Rows(no_columns(source.piece.rows), chosen=self._offsets(source))
        return (partial(_read, scan, window) for window in scan.windows(rows))

    def _fillers(self, source: Source) -> Iterator[_Read]:
        filler = Filler(pa.schema(self._fields), self._task.file_version)
        for begin in range(0, source.piece.rows, _FILLER_ROWS):
            yield partial(filler.rows, min(_FILLER_ROWS, source.piece.rows - begin))

    def _offsets(self, source: Source) -> Offsets:
        dead = self._were.deletion_vector(source.was) or RowSet()
        start, stop = source.piece.start, source.piece.stop
        offsets = start + np.flatnonzero(dead.absent_mask(stop)[start:])
        assert len(offsets) == source.piece.rows, f"{len(offsets)} rows of fragment {source.was.id} were live"
        return offsets


def _read(scan: FragmentScan, rows: Rows) -> pa.RecordBatch:
    (batch,) = scan.complete(rows)
    return batch
