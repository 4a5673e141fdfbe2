"""Scan: read the rows of a version. Its plan is data, its tasks travel, and it streams.

1. *plan* (pure): which columns come back, which must be read first for the filter, which fragments are looked at.
   Expressions are compiled here, so a bad one fails before anything is read, and ``now()`` is one moment for all.
2. *run*: pieces of fragments are read by threads ahead of the consumer, in order (:mod:`tablewright.reading.run`).
   Memory is bounded by the pieces under way.
3. Limit and offset count rows that come back. Without a filter they choose the rows before reading; with one they end
   the scan early. An ordering needs all rows, or the best of them where there is a limit (:mod:`.scan_order`).

A task is a part of the plan for one worker (:mod:`tablewright.reading.scan_task`). Limit, offset and ordering belong to
the plan, since no worker can know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tablewright.checks import check_flag, check_text, listed, whole_number
from tablewright.data.task_context import TaskContext
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Filter, Predicate, compile_filter
from tablewright.expressions.scope import scope_of
from tablewright.format.blobs import as_bytes, as_descriptions
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
from tablewright.operations.scan_order import Ordering, best_rows, orderings_of
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.projection import Selection, extend_selection, select_columns
from tablewright.reading.run import count_matches, exact_batches, limited, run_reads, slices
from tablewright.reading.scan_task import (
    ScanTask,
    choose_fragments,
    default_batch_size,
    narrowed,
    row_counts,
    scan_task,
    with_index,
)
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands
from tablewright.world import World

__all__ = [
    "ScanOptions",
    "ScanPlan",
    "count_rows",
    "plan_scan",
    "run_scan_task",
    "scan_batches",
    "scan_table",
]

BLOB_HANDLINGS = ("all_binary", "all_descriptions", "blobs_descriptions")
_BATCH_SIZE_MAX = 2**32 - 1
_ROWS_MAX = 2**63 - 1
_FLAGS = ("with_row_id", "with_row_address", "include_deleted_rows", "scan_in_order", "strict_batch_size")
_EARLY_ROW_BYTES_MAX, _EARLY_BYTES_MAX = 64, 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """What a caller may ask of a scan. ``fragments`` are ids, read in the order given; ``None`` means all.

    ``late_materialization`` ``False`` reads all columns along with the filter's, ``True`` (or a list of columns) reads
    the others for matching rows only; ``None`` lets the scan decide by their width. ``blob_handling``
    ``"all_binary"`` reads the bytes of blob columns; filters see their descriptions. ``use_scalar_index`` ``True`` asks
    every index that can answer a part of the filter, ``False`` none, ``None`` those that are cheaper than a scan.
    """

    columns: Sequence[str] | Mapping[str, str] | None = None
    filter: Filter | None = None
    limit: int | None = None
    offset: int | None = None
    order_by: Any = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    include_deleted_rows: bool = False
    fragments: Sequence[int] | None = None
    scan_in_order: bool = True
    strict_batch_size: bool = False
    late_materialization: bool | Sequence[str] | None = None
    blob_handling: str | None = None
    use_scalar_index: bool | None = None

    def __post_init__(self) -> None:
        if self.blob_handling is not None and self.blob_handling not in BLOB_HANDLINGS:
            raise InvalidRequest(
                f"Invalid blob_handling: {self.blob_handling}. Expected one of: {', '.join(BLOB_HANDLINGS)}"
            )
        for name, label in (("limit", "Limit"), ("offset", "Offset"), ("batch_size", "batch_size")):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, whole_number(given, label, maximum=_ROWS_MAX))
        for name in _FLAGS:
            check_flag(getattr(self, name), name)
        if self.use_scalar_index is not None:
            check_flag(self.use_scalar_index, "use_scalar_index")
        if self.late_materialization is not None and not isinstance(self.late_materialization, bool):
            for column in listed(self.late_materialization, "late_materialization"):
                check_text(column, "each column of late_materialization")
        if self.fragments is not None:
            ids = tuple(whole_number(each, "each fragment id") for each in listed(self.fragments, "fragments"))
            object.__setattr__(self, "fragments", ids)
        if self.batch_size is not None and not 0 < self.batch_size <= _BATCH_SIZE_MAX:
            raise InvalidRequest(
                f"Invalid user input: batch_size must be between 1 and {_BATCH_SIZE_MAX}, got {self.batch_size}"
            )
        if self.include_deleted_rows and not self.with_row_id:
            raise InvalidRequest("Invalid user input: include_deleted_rows is set but with_row_id is false")

    @property
    def rows_per_batch(self) -> int:
        """The batch size asked for, here or in the environment."""
        return default_batch_size() if self.batch_size is None else self.batch_size


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """A decided scan. ``str(plan)`` explains it."""

    whole: ScanTask
    ordering: tuple[Ordering, ...]
    limit: int | None
    offset: int
    strict_batch_size: bool
    schema: pa.Schema = field(repr=False)

    @property
    def tasks(self) -> tuple[ScanTask, ...]:
        """The scan in parts of one or more fragments, some 64 MiB each; limit, offset and ordering left out."""
        return self.whole.tasks

    @property
    def estimated_bytes(self) -> int:
        """About how much will be read into memory."""
        return self.whole.estimated_bytes

    def for_counting(self) -> ScanPlan:
        """The same scan for those who only want to know how many rows match: it reads the filter's columns only."""
        return self._counting(self.whole)

    def narrowed(self) -> ScanPlan:
        """The same scan of the rows that indices leave; they are asked now."""
        return replace(self, whole=narrowed(self.whole))

    def narrowed_for_counting(self) -> ScanPlan:
        """The same, of the rows that indices leave; they are asked now."""
        return self._counting(narrowed(self.whole, counts_only=True))

    def _counting(self, whole: ScanTask) -> ScanPlan:
        reads = whole.reads.counting()
        return replace(self, whole=replace(whole, reads=reads), ordering=(), schema=reads.selection.schema)

    def __str__(self) -> str:
        return "\n".join(_explain(self))


def plan_scan(snapshot: Snapshot, options: ScanOptions, *, now_ns: int | None = None) -> ScanPlan:
    """Decide a scan. ``now_ns`` is the moment that ``now()`` means; the world's clock tells it if not given."""
    described = as_descriptions(snapshot.schema)
    table = as_bytes(snapshot.schema) if options.blob_handling == "all_binary" else described
    moment = snapshot.world.clock.now_ns() if now_ns is None else now_ns
    selection = select_columns(
        table,
        options.columns,
        with_row_id=options.with_row_id,
        with_row_address=options.with_row_address,
        now_ns=moment,
    )
    ordering = orderings_of(options.order_by, table.kept(scope_of))
    fragments, first_rows = choose_fragments(snapshot, options.fragments)
    reads = _decide_reads(
        extend_selection(selection, table, _keys(ordering, selection.schema.names)),
        None if options.filter is None else compile_filter(options.filter, described, now_ns=moment),
        options,
        table,
        described,
        fragments,
    )
    early = None if options.limit is None or ordering else options.limit + (options.offset or 0)
    task = scan_task(snapshot, reads, fragments, first_rows, options.rows_per_batch)
    return ScanPlan(
        whole=with_index(task, snapshot, options.use_scalar_index, rows_wanted=early),
        ordering=ordering,
        limit=options.limit,
        offset=options.offset or 0,
        strict_batch_size=options.strict_batch_size,
        schema=selection.schema,
    )


def run_scan_task(task: ScanTask, world: World) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in batches of at most its batch size."""
    context = TaskContext(world, task.base_paths)
    for batch in run_reads(context, task.reads, task.fragments, task.first_rows, chosen=task.chosen):
        yield from slices(batch, task.batch_size)


def scan_batches(plan: ScanPlan, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """The rows of a whole scan, here, in batches of at most the batch size (exactly that, if asked for)."""
    size = plan.whole.batch_size
    batches = _run(plan, snapshot)
    if plan.strict_batch_size:
        yield from exact_batches(batches, size)
        return
    for batch in batches:
        yield from slices(batch, size)


def scan_table(plan: ScanPlan, snapshot: Snapshot) -> pa.Table:
    """The rows of a whole scan in memory."""
    return pa.Table.from_batches(list(_run(plan, snapshot)), plan.schema)


def count_rows(plan: ScanPlan, snapshot: Snapshot) -> int:
    """How many rows the scan returns; without a filter that is read from the metadata."""
    whole = plan.whole
    if whole.reads.predicate is not None:
        with while_it_stands(snapshot):
            left = plan.narrowed_for_counting().whole
            rows = count_matches(snapshot, left.reads, left.fragments, left.first_rows, left.chosen)
    else:
        physical, live = row_counts(whole.fragments)
        rows = physical if whole.reads.include_deleted else live
    rows = max(0, rows - plan.offset)
    return rows if plan.limit is None else min(rows, plan.limit)


def _run(plan: ScanPlan, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    with while_it_stands(snapshot):
        yield from _read(plan, snapshot)


def _read(plan: ScanPlan, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    if plan.limit == 0:
        return
    whole = narrowed(plan.whole)
    if plan.ordering:
        wanted = None if plan.limit is None else min(plan.limit + plan.offset, _ROWS_MAX)
        batches = run_reads(snapshot, whole.reads, whole.fragments, whole.first_rows, chosen=whole.chosen)
        keys = whole.schema.names[len(plan.schema.names) :]
        best = best_rows(batches, whole.schema, keys, plan.ordering, wanted)
        yield from best.slice(plan.offset).select(plan.schema.names).combine_chunks().to_batches()
        return
    if whole.reads.predicate is None:
        yield from run_reads(
            snapshot, whole.reads, whole.fragments, whole.first_rows, skip=plan.offset, take=plan.limit
        )
        return
    batches = run_reads(snapshot, whole.reads, whole.fragments, whole.first_rows, chosen=whole.chosen)
    yield from limited(batches, plan.offset, plan.limit)


def _keys(ordering: Sequence[Ordering], taken: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Hidden columns with the values to sort by, after those that come back and under names not ``taken`` by them."""
    prefix = "__order_"
    while any(name.startswith(prefix) for name in taken):
        prefix = "_" + prefix
    return {f"{prefix}{index}": key.path for index, key in enumerate(ordering)}


def _decide_reads(
    selection: Selection,
    predicate: Predicate | None,
    options: ScanOptions,
    table: Schema,
    described: Schema,
    fragments: Sequence[Fragment],
) -> ReadPlan:
    """Read in two steps where the columns that the filter does not need are worth waiting for."""

    def plan(late: bool) -> ReadPlan:
        return ReadPlan.of(
            table,
            selection,
            predicate,
            late=late,
            include_deleted=options.include_deleted_rows,
            filtered=described,
        )

    if options.late_materialization is not None or predicate is None or not fragments:
        return plan(options.late_materialization is not False)
    late = plan(True)
    if not late.rest.names or predicate.is_selective:
        return late
    rest = late.shapes()[1].sizes.bytes_per_row(fragments[0])
    worth_it = rest > _EARLY_ROW_BYTES_MAX and rest * fragments[0].physical_rows > _EARLY_BYTES_MAX
    return late if worth_it else plan(False)


def _explain(plan: ScanPlan) -> Iterator[str]:
    if plan.limit is not None or plan.offset:
        yield f"Limit: limit={plan.limit}, offset={plan.offset}"
    if plan.ordering:
        yield f"Sort: order_by=[{', '.join(map(str, plan.ordering))}]"
    yield str(plan.whole)
