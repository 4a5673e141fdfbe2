"""New columns: computed fragment by fragment, each written as one more data file; existing files stay untouched.

1. *plan* (pure): the schema afterwards with its new field ids, what has to be read, and one task per fragment. Bad
   requests fail here. Columns of nulls need no task: a field that no file of a fragment has reads as null.
2. *run*: a task reads the live rows of its fragment, computes, and writes a file with a value for every physical row
   (:mod:`.fill`) under a name that no other writer uses.
3. *finish* (pure): one Merge transaction with all fragments and the new schema.

Casts of columns go the same way: a cast column is a new column with a new id in the place of the old one. Results
outlive changes by other writers (:mod:`.keep`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import pyarrow as pa

from tablewright.data.conform import solid
from tablewright.data.sizes import RowSizes
from tablewright.data.task_context import TaskContext
from tablewright.data.write import write_data_file
from tablewright.errors import InternalError
from tablewright.format.flags import check_writable
from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.schema import Schema
from tablewright.format.transaction import Merge, Transaction
from tablewright.operations.columns.compute import Computation
from tablewright.operations.columns.fill import Filler
from tablewright.operations.columns.keep import Inputs, inputs_of
from tablewright.operations.columns.read import Window, live_windows
from tablewright.operations.columns.schema import fit_batch
from tablewright.reading.projection import RowLayout
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import Location
from tablewright.world import World

__all__ = ["ColumnsPlan", "ColumnsResult", "ColumnsTask", "ColumnsWork", "finish_columns", "plan_columns", "with_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsTask:
    """One fragment, as a message; ``first_row`` is its first live row's position in the table."""

    fragment: Fragment
    first_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsResult:
    """The column file of a fragment, and what was read for it."""

    fragment_id: int
    file: DataFile
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written, below the table's root."""
        return (data_path(self.file.path),)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return self.file.file_size_bytes


Compute = Callable[[Window], pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsWork:
    """What all tasks of a plan share: call it with a task, here or on a worker, and it writes the column file."""

    table: Schema
    base_paths: tuple[BasePath, ...]
    reads: RowLayout
    computation: Computation
    written: Schema
    file_version: str
    batch_size: int | None = None

    def __call__(self, task: ColumnsTask, world: World) -> ColumnsResult:
        return self.run(task, world, self.compute)

    def compute(self, window: Window) -> pa.RecordBatch:
        """The new columns for the live rows of a window."""
        return self.computation.compute(window.rows.batch)

    def run(self, task: ColumnsTask, world: World, compute: Compute) -> ColumnsResult:
        """As calling it, with another way to get at the values."""
        fragment, sizes = task.fragment, list[int]()

        def measured(windows: Iterator[Window]) -> Iterator[Window]:
            for window in windows:
                sizes.append(window.rows.batch.nbytes)
                yield window

        windows = live_windows(TaskContext(world, self.base_paths), self, fragment, task.first_row)
        rows = map(solid, self._filled(measured(windows), compute))
        file, count = write_data_file(world, self.written, rows, self.file_version)
        if count != fragment.physical_rows:
            raise InternalError(f"Fragment {fragment.id} has {fragment.physical_rows} rows, {count} were written.")
        return ColumnsResult(fragment_id=fragment.id, file=file, rows_read=fragment.live_rows, bytes_read=sum(sizes))

    def _filled(self, windows: Iterator[Window], compute: Compute) -> Iterator[pa.RecordBatch]:
        schema = self.written.to_arrow().remove_metadata()
        filler = Filler(schema, self.file_version)
        for window in windows:
            if not len(window.rows):
                yield filler.rows(window.stop - window.start)
                continue
            made = fit_batch(compute(window), schema)
            yield filler.widen(made, window.rows.offsets, window.start, window.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsPlan:
    """Decided new columns; without ``work`` they are null. ``str(plan)`` explains it."""

    verb: str
    location: Location
    version: int
    fragments: FragmentList
    before: Schema
    after: Schema
    written: Schema
    reads: RowLayout
    work: ColumnsWork | None
    preserves_nullability: bool

    @property
    def inputs(self) -> dict[int, Inputs]:
        """What the computation finds in each fragment."""
        table, reads, starts = self.before, self.reads, self._first_rows()
        return {each.id: inputs_of(each, table, reads, starts[each.id]) for each in self.fragments}

    def of_fragments(self, fragments: Iterable[Fragment]) -> ColumnsPlan:
        """The same for some fragments only; positions of rows in the table are not known then."""
        return replace(self, fragments=FragmentList.of(fragments))

    def tasks(self, done: Collection[int] = ()) -> list[ColumnsTask]:
        """One task per fragment, but for those that are done."""
        if self.work is None:
            return []
        starts = self._first_rows()
        return [
            ColumnsTask(fragment=fragment, first_row=starts[fragment.id])
            for fragment in self.fragments
            if fragment.id not in done
        ]

    @property
    def bytes_read(self) -> int:
        """About how much will be read into memory."""
        return self._bytes(RowSizes(self.before, self.reads.fields))

    @property
    def bytes_written(self) -> int:
        """About how much will be written."""
        return self._bytes(RowSizes(self.after, self.written))

    @property
    def estimated_bytes(self) -> int:
        """Both together."""
        return self.bytes_read + self.bytes_written

    def _bytes(self, sizes: RowSizes) -> int:
        """What some columns take in all fragments; nothing is read or written without work."""
        if self.work is None:
            return 0
        return sum(each.physical_rows * sizes.bytes_per_row(each) for each in self.fragments)

    def _first_rows(self) -> dict[int, int]:
        return dict(zip(self.fragments.ids.tolist(), self.fragments.first_rows.tolist(), strict=True))

    def __str__(self) -> str:
        head = (
            f"{self.verb}: columns=[{', '.join(self.written.names)}], uri={self.location.uri}, version={self.version}"
        )
        if self.work is None:
            return f"{head}\n  no data is read or written"
        rows = self.fragments.total_live_rows
        return (
            f"{head}\n  reads=[{', '.join(self.reads.names)}], num_fragments={len(self.fragments)}, rows={rows}, "
            f"estimated_bytes={self.estimated_bytes}, file version {self.work.file_version}"
        )


def plan_columns(
    snapshot: Snapshot,
    verb: str,
    after: Schema,
    written: Schema,
    computation: Computation | None,
    *,
    batch_size: int | None = None,
) -> ColumnsPlan:
    """Decide how the ``written`` part of the schema ``after`` gets its values; without a computation it is null."""
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, snapshot.location.uri)
    reads = RowLayout.of(manifest.schema, () if computation is None else computation.paths)
    work = None
    if computation is not None:
        work = ColumnsWork(
            table=manifest.schema,
            base_paths=manifest.base_paths,
            reads=reads,
            computation=computation,
            written=written,
            file_version=manifest.data_storage_version,
            batch_size=batch_size,
        )
    added = after.ids - manifest.schema.ids
    return ColumnsPlan(
        verb=verb,
        location=snapshot.location,
        version=snapshot.version,
        fragments=snapshot.fragments,
        before=manifest.schema,
        after=after,
        written=written,
        reads=reads,
        work=work,
        preserves_nullability=all(field.nullable for field in after.top_level if field.id in added),
    )


def finish_columns(plan: ColumnsPlan, files: Mapping[int, DataFile], uuid: UUID) -> Transaction:
    """The transaction that makes the column files, by fragment id, part of the table."""
    alive = plan.after.ids
    fragments = tuple(
        with_file(fragment, files[fragment.id], alive) if fragment.id in files else fragment
        for fragment in plan.fragments
    )
    operation = Merge(fragments=fragments, schema=plan.after, preserves_nullability=plan.preserves_nullability)
    return Transaction(read_version=plan.version, uuid=str(uuid), operation=operation)


def with_file(fragment: Fragment, file: DataFile, alive: Collection[int]) -> Fragment:
    """The fragment with one more column file, and without files that hold none of the ``alive`` fields any more."""
    grown = fragment.with_column_file(file)
    return replace(grown, files=tuple(each for each in grown.files if any(id in alive for id in each.live_fields)))
