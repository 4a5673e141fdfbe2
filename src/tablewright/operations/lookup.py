"""Lookups: the few rows that have one value, or one of some, or one in a range, by an index that covers the table.

Services ask ``id = 7``, then ``id = 8``. Such a filter needs no scan: the index says which rows there are, and these
are read. What is worked out for the first filter holds for all that differ in the literals only. So:

1. *Recognise* a filter of one column (:mod:`tablewright.expressions.one_column`), in a scan without other wishes.
2. *Compile* the filter as that of any scan. If that gives the condition that step 1 says, the next filters of that
   shape on tables of that schema skip this step.
3. *Plan*: an exact index has to cover all fragments, and to cost less than a scan. What was found is kept in the cache
   of the process for the version.
4. *Ask* the index for the values, and read the rows. Where it has many rows for them, ``None`` is returned, and the
   scan is planned as any other.

Results are those of the scan (:mod:`tablewright.operations.scan`), in the same order.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.cache import CacheKind
from tablewright.data.number_rows import read_number_rows
from tablewright.data.prefetch import spread
from tablewright.data.read import FragmentReader, Rows, beside
from tablewright.data.shape import ReadShape, read_shape
from tablewright.data.system_columns import SystemColumns
from tablewright.expressions.conditions import Leaf, Path, normal_form
from tablewright.expressions.filters import compile_filter
from tablewright.expressions.one_column import OneColumn, recognise, same_query
from tablewright.expressions.sql_conditions import conditions_of
from tablewright.format.blobs import as_descriptions
from tablewright.format.envelope import ManifestFile
from tablewright.format.index import IndexMetadata
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.indices.files import check_sizes
from tablewright.indices.query import Between, Ids, IsIn, Query
from tablewright.indices.registry import offered
from tablewright.indices.rows import RowsByFragment, count_at, rows_at
from tablewright.operations.scan import ScanOptions
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.index_costs import rows_worth_taking
from tablewright.reading.index_filter import Asked, plan_index_query, scalar_indices
from tablewright.reading.projection import RowLayout, select_columns
from tablewright.reading.scan_task import bytes_of_each
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands
from tablewright.storage.together import answers_slowly

__all__ = ["lookup_count", "lookup_table"]

_ROWS_MAX = 64
_SEGMENTS_MAX = 4
_ENTRY_BYTES = 4096
_COLUMNS_MAX = _READS_MAX = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The index that finds rows of a filter's shape in the version of ``file``, if one does; how many may be taken.

    ``type`` is that of the column.
    """

    file: weakref.ref[ManifestFile]
    asked: Asked | None
    type: pa.DataType
    rows_max: int


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The column that filters of one shape mean, in all versions that have this schema."""

    table: Schema
    path: Path
    type: pa.DataType


@dataclass(frozen=True, slots=True, eq=False)
class _Reads:
    """What is read of rows for some columns, in all versions that have this schema."""

    table: Schema
    plan: ReadPlan
    shape: ReadShape


_indices = CacheKind[_Index]("lookups")
_columns: dict[Hashable, _Column] = {}
_reads: dict[Hashable, _Reads] = {}


def lookup_table(snapshot: Snapshot, options: ScanOptions) -> pa.Table | None:
    """The rows of a scan; ``None`` if it is no lookup, and has to be planned."""
    wish = _wish(snapshot, options)
    if wish is None:
        return None
    reads = _read_plan(snapshot, options)
    with while_it_stands(snapshot):
        found = _find(snapshot, options, wish)
        if found is None:
            return None
        asked, query, rows_max = found
        rows: RowsByFragment = {}
        for segment, fragments in asked.segments:
            ids = _ids(snapshot, asked, segment, query, rows_max)
            if ids is None:
                return None
            if len(ids):
                rows.update(rows_at(snapshot, segment, fragments, ids))
        return _table(snapshot, reads, rows)


def lookup_count(snapshot: Snapshot, options: ScanOptions) -> int | None:
    """How many rows a scan has; ``None`` if it is no lookup."""
    wish = _wish(snapshot, options)
    if wish is None:
        return None
    if options.columns is not None:
        _read_plan(snapshot, options)  # columns that are not there are refused
    total = 0
    with while_it_stands(snapshot):
        found = _find(snapshot, options, wish)
        if found is None:
            return None
        asked, query, _ = found
        for segment, fragments in asked.segments:
            ids = _ids(snapshot, asked, segment, query)
            if ids is None:
                return None
            total += count_at(snapshot, segment, fragments, ids)
    return total


# ---------------------------------------------------------------------------------------------------------- recognised
def _wish(snapshot: Snapshot, options: ScanOptions) -> OneColumn | None:
    if not isinstance(options.filter, str) or not isinstance(options.columns, list | tuple | None):
        return None
    if options.limit is not None or options.offset or options.order_by is not None or options.fragments is not None:
        return None
    if options.include_deleted_rows or options.blob_handling is not None or options.use_scalar_index is False:
        return None
    return recognise(options.filter) if scalar_indices(snapshot) else None


# ------------------------------------------------------------------------------------------------------------- planned
def _find(snapshot: Snapshot, options: ScanOptions, wish: OneColumn) -> tuple[Asked, Query, int] | None:
    """The index for a filter, what it is asked, and how many rows may be taken."""
    key = (id(snapshot.file), wish.shape, options.use_scalar_index)
    kept = _indices.find(key)
    if kept is not None and kept.file() is snapshot.file:
        query = wish.query(kept.type)
        return None if query is None or kept.asked is None else (kept.asked, query, kept.rows_max)
    table = as_descriptions(snapshot.schema)
    leaf, kind = _condition(snapshot, table, options, wish)
    if leaf is None:
        return None
    asked, rows_max = _planned(snapshot, table, leaf, forced=bool(options.use_scalar_index))
    if kind is not None:
        _indices.keep(key, _Index(weakref.ref(snapshot.file), asked, kind, rows_max), _ENTRY_BYTES)
    return None if asked is None else (asked, leaf.query, rows_max)


def _condition(
    snapshot: Snapshot, table: Schema, options: ScanOptions, wish: OneColumn
) -> tuple[Leaf | None, pa.DataType | None]:
    """What the filter asks of its column; and the type of that, if the compiler's query is the one recognised.

    The compiler is asked once for a schema and a shape.
    """
    key = (id(table), wish.shape)
    known = _columns.get(key)
    if known is not None and known.table is table:
        query = wish.query(known.type)
        return (None, None) if query is None else (Leaf(known.path, query), known.type)
    assert options.filter is not None
    predicate = compile_filter(options.filter, table, now_ns=snapshot.world.clock.now_ns())
    leaf = normal_form(conditions_of(predicate, table))
    if not isinstance(leaf, Leaf) or leaf.negated or not isinstance(leaf.query, IsIn | Between):
        return None, None
    kind = leaf.query.values.type if isinstance(leaf.query, IsIn) else _bound_type(leaf.query)
    own = wish.query(kind)
    if own is None or not leaf.exact or not same_query(own, leaf.query):
        return leaf, None
    if len(_columns) >= _COLUMNS_MAX:
        _columns.clear()
    _columns[key] = _Column(table, leaf.path, kind)
    return leaf, kind


def _bound_type(query: Between) -> pa.DataType:
    bound = query.high if query.low is None else query.low
    return pa.null() if bound is None else bound.type


def _planned(snapshot: Snapshot, table: Schema, leaf: Leaf, *, forced: bool) -> tuple[Asked | None, int]:
    """What answers the filter, if that is a single index that is worth asking; and how many rows may be taken."""
    asked = plan_index_query(leaf, snapshot, table)
    if not isinstance(asked, Asked) or not _is_plain(asked, snapshot):
        return None, 0
    rows_max = _ROWS_MAX if forced else min(_ROWS_MAX, _rows_worth_taking(snapshot, table, asked))
    if not rows_max:
        return None, 0
    for segment, _ in asked.segments:
        check_sizes(*snapshot.index_place(segment), segment)
    return asked, rows_max


def _is_plain(asked: Asked, snapshot: Snapshot) -> bool:
    """Whether one exact index says all: its segments cover every fragment once."""
    covered = [fragments for _, fragments in asked.segments]
    return (
        offered(asked.kind).find is not None
        and len(covered) <= _SEGMENTS_MAX
        and asked.exact == asked.fragments
        and len(asked.fragments) == len(snapshot.fragments)
        and sum(map(len, covered)) == len(FrozenBitMap.union(FrozenBitMap(), *covered))
    )


def _rows_worth_taking(snapshot: Snapshot, table: Schema, asked: Asked) -> int:
    """How many rows may be taken one by one before a scan costs less; 0 if it does in any case."""
    fragments = snapshot.fragments
    shape = read_shape(table, RowLayout.of(table, [asked.leaf.path]).fields)
    nbytes = int(bytes_of_each(fragments, [shape]).sum())
    return rows_worth_taking(asked, int(fragments.physical_rows.sum()), nbytes)


def _read_plan(snapshot: Snapshot, options: ScanOptions) -> _Reads:
    """What is read for the columns that are wanted; unknown ones are refused here."""
    table = as_descriptions(snapshot.schema)
    columns = None if options.columns is None else tuple(options.columns)
    key = (id(table), columns, options.with_row_id, options.with_row_address)
    kept = _reads.get(key)
    if kept is not None and kept.table is table:
        return kept
    selection = select_columns(
        table, options.columns, with_row_id=options.with_row_id, with_row_address=options.with_row_address
    )
    plan = ReadPlan.of_known_rows(table, selection)
    reads = _Reads(table, plan, plan.shapes()[1])
    if len(_reads) >= _READS_MAX:
        _reads.clear()
    _reads[key] = reads
    return reads


# --------------------------------------------------------------------------------------------------------------- asked
def _ids(
    snapshot: Snapshot, asked: Asked, segment: IndexMetadata, query: Query, rows_max: int | None = None
) -> Ids | None:
    find = offered(asked.kind).find
    assert find is not None
    return find(snapshot, segment, query, rows_max=rows_max)


def _table(snapshot: Snapshot, reads: _Reads, rows: RowsByFragment) -> pa.Table:
    every = snapshot.fragments
    found = sorted((every.position(id), chosen.to_numpy()) for id, chosen in rows.items())
    if len(found) > 1 and answers_slowly(snapshot.world.store):
        parts = spread(lambda each: _Part(snapshot, reads, *each).batches(), found)
    else:
        begun = [_Part(snapshot, reads, position, offsets) for position, offsets in found]
        parts = [part.batches() for part in begun]
    return pa.Table.from_batches([batch for part in parts for batch in part], reads.plan.selection.schema)


class _Part:
    """The rows of one fragment. The codec reads them from the moment this is made, if it has to."""

    def __init__(self, snapshot: Snapshot, reads: _Reads, position: int, offsets: Offsets) -> None:
        self._snapshot, self._reads, self._position, self._rows = snapshot, reads, position, len(offsets)
        self._fragment = snapshot.fragments[position]
        self._reader: FragmentReader | None = None
        first, last = int(offsets[0]), int(offsets[-1])
        if last - first + 1 == len(offsets):
            batch = read_number_rows(snapshot, self._fragment, reads.shape, first, last + 1)
            if batch is not None:
                self._parts = iter((Rows(batch, first),))
                return
        self._reader = FragmentReader(snapshot, self._fragment, reads.shape)
        self._parts = self._reader.start_at(offsets)

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as asked for."""
        plan = self._reads.plan
        found = _rows(self._parts, self._rows)
        if self._reader is not None:
            self._reader.release()
        batches = [rows.batch for rows in found]
        if plan.rest.system:
            first = int(self._snapshot.fragments.first_rows[self._position])
            system = SystemColumns(self._snapshot, self._fragment, first)
            batches = [beside(rows.batch, system.batch(plan.rest.system, rows.offsets)) for rows in found]
        return [plan.selection.shape(batch) for batch in batches]


def _rows(parts: Iterator[Rows], count: int) -> list[Rows]:
    """Parts of this many rows in all: the codec is not asked for the end, which costs as much as a part."""
    found: list[Rows] = []
    while count > 0 and (part := next(parts, None)) is not None:
        found.append(part)
        count -= len(part)
    return found
