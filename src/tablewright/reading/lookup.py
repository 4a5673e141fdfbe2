"""Lookups: which rows have one value, or one of some, or one in a range, by an index that covers most of the table.

Services ask ``id = 7``, then ``id = 8``. Such a filter needs no scan: the index says which rows there are. What is
worked out for the first filter holds for all that differ in the literals only. So:

1. *Recognise* a filter of one column (:mod:`tablewright.expressions.one_column`).
2. *Compile* the filter as that of any scan. If that gives the condition that step 1 says, the next filters of that
   shape on tables of that schema skip this step.
3. *Plan*: an exact index has to cover all fragments but a few small ones, and to cost less than a scan. What was found
   is kept in the cache of the process for the version.
4. *Ask* the index for the values, and read the column of the small fragments (:mod:`.uncovered`). Where there are many
   rows, ``None`` is returned, and they are found by a scan as for any other filter.

Tests: ``tests/unit/operations/test_lookup.py``, ``tests/differential/test_known_rows.py``.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.cache import CacheKind
from tablewright.data.number_rows import FEW_ROWS
from tablewright.data.shape import read_shape
from tablewright.expressions.conditions import Leaf, Path, normal_form
from tablewright.expressions.filters import Filter, compile_filter
from tablewright.expressions.one_column import OneColumn, recognise, same_query
from tablewright.expressions.sql_conditions import conditions_of
from tablewright.format.blobs import as_descriptions
from tablewright.format.envelope import ManifestFile
from tablewright.format.index import IndexMetadata
from tablewright.format.schema import Schema
from tablewright.indices.files import check_sizes
from tablewright.indices.query import Between, Ids, IsIn, Query
from tablewright.indices.registry import offered
from tablewright.indices.rows import RowsByFragment, count_at, rows_at
from tablewright.reading.index_costs import rows_worth_taking
from tablewright.reading.index_filter import Asked, plan_index_query, scalar_indices
from tablewright.reading.projection import RowLayout
from tablewright.reading.scan_task import bytes_of_each
from tablewright.reading.uncovered import Uncovered, uncovered_fragments
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Lookup", "LookupFilter", "plan_lookup", "recognised"]

_ROWS_MAX = FEW_ROWS
_SEGMENTS_MAX = 4
_ENTRY_BYTES, _FRAGMENT_BYTES = 4096, 1024
_COLUMNS_MAX = 64


@dataclass(frozen=True, slots=True)
class LookupFilter:
    """A filter of one column: its text, what it was recognised as, and whether the caller insists on indices."""

    text: str
    wish: OneColumn
    use_scalar_index: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A filter whose rows one index knows, and what it is asked. ``rows_max``: how many may be taken.

    ``uncovered`` are the fragments that the index does not cover, if there are any.
    """

    snapshot: Snapshot
    asked: Asked
    uncovered: Uncovered | None
    query: Query
    rows_max: int

    @property
    def path(self) -> Path:
        """The column that the filter compares."""
        return self.asked.leaf.path

    def rows(self) -> RowsByFragment | None:
        """The rows; ``None`` if there are too many to take them one by one."""
        rows: RowsByFragment = {}
        for segment, fragments in self.asked.segments:
            ids = self._ids(segment, self.rows_max)
            if ids is None:
                return None
            if len(ids):
                rows.update(rows_at(self.snapshot, segment, fragments, ids))
        if self.uncovered is None:
            return rows
        rows.update(self.uncovered.rows(self.snapshot, self.query))
        return rows if sum([len(found) for found in rows.values()]) <= self.rows_max else None

    def count(self) -> int | None:
        """How many rows there are; ``None`` if the index has to read too much for that."""
        total = 0 if self.uncovered is None else self.uncovered.count(self.snapshot, self.query)
        for segment, fragments in self.asked.segments:
            ids = self._ids(segment)
            if ids is None:
                return None
            total += count_at(self.snapshot, segment, fragments, ids)
        return total

    def _ids(self, segment: IndexMetadata, rows_max: int | None = None) -> Ids | None:
        find = offered(self.asked.kind).find
        assert find is not None
        return find(self.snapshot, segment, self.query, rows_max=rows_max)


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The index that finds rows of a filter's shape in the version of ``file``, if one does; how many may be taken.

    ``type`` is that of the column.
    """

    file: weakref.ref[ManifestFile]
    asked: Asked | None
    uncovered: Uncovered | None
    type: pa.DataType
    rows_max: int


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The column that filters of one shape mean, in all versions that have this schema."""

    table: Schema
    path: Path
    type: pa.DataType


_indices = CacheKind[_Index]("lookups")
_columns: dict[Hashable, _Column] = {}


def recognised(snapshot: Snapshot, filter: Filter | None, use_scalar_index: bool | None = None) -> LookupFilter | None:
    """The filter, if it is of one column and the table has indices that may be asked."""
    if not isinstance(filter, str) or use_scalar_index is False or not scalar_indices(snapshot):
        return None
    wish = recognise(filter)
    return None if wish is None else LookupFilter(filter, wish, use_scalar_index)


def plan_lookup(snapshot: Snapshot, filter: LookupFilter, now_ns: int | None = None) -> Lookup | None:
    """The index for a filter, what it is asked, and how many rows may be taken; ``None`` if a scan has to find them."""
    wish = filter.wish
    key = (id(snapshot.file), wish.shape, filter.use_scalar_index)
    kept = _indices.find(key)
    if kept is not None and kept.file() is snapshot.file:
        query = wish.query(kept.type)
        if query is None or kept.asked is None:
            return None
        return Lookup(snapshot, kept.asked, kept.uncovered, query, kept.rows_max)
    table = as_descriptions(snapshot.schema)
    leaf, kind = _condition(snapshot, table, filter, now_ns)
    if leaf is None:
        return None
    asked, uncovered, rows_max = _planned(snapshot, table, leaf, forced=bool(filter.use_scalar_index))
    if kind is not None:
        nbytes = _ENTRY_BYTES + (0 if uncovered is None else _FRAGMENT_BYTES * len(uncovered.fragments))
        _indices.keep(key, _Index(weakref.ref(snapshot.file), asked, uncovered, kind, rows_max), nbytes)
    return None if asked is None else Lookup(snapshot, asked, uncovered, leaf.query, rows_max)


def _condition(
    snapshot: Snapshot, table: Schema, filter: LookupFilter, now_ns: int | None
) -> tuple[Leaf | None, pa.DataType | None]:
    """What the filter asks of its column; and the type of that, if the compiler's query is the one recognised.

    The compiler is asked once for a schema and a shape.
    """
    wish = filter.wish
    key = (id(table), wish.shape)
    known = _columns.get(key)
    if known is not None and known.table is table:
        query = wish.query(known.type)
        return (None, None) if query is None else (Leaf(known.path, query), known.type)
    moment = snapshot.world.clock.now_ns() if now_ns is None else now_ns
    predicate = compile_filter(filter.text, table, now_ns=moment)
    leaf = normal_form(conditions_of(predicate, table))
    if not isinstance(leaf, Leaf) or leaf.negated or not isinstance(leaf.query, IsIn | Between):
        return None, None
    kind = _value_type(leaf.query)
    own = wish.query(kind)
    if own is None or not leaf.exact or not same_query(own, leaf.query):
        return leaf, None
    if len(_columns) >= _COLUMNS_MAX:
        _columns.clear()
    _columns[key] = _Column(table, leaf.path, kind)
    return leaf, kind


def _value_type(query: Query) -> pa.DataType:
    """The type of the literals of a list or a range."""
    if isinstance(query, IsIn):
        return query.values.type
    assert isinstance(query, Between), "lookups ask for lists and ranges"
    bound = query.high if query.low is None else query.low
    return pa.null() if bound is None else bound.type


def _planned(
    snapshot: Snapshot, table: Schema, leaf: Leaf, *, forced: bool
) -> tuple[Asked | None, Uncovered | None, int]:
    """A single index worth asking, if one answers the filter; what it leaves out; and how many rows may be taken."""
    asked = plan_index_query(leaf, snapshot, table)
    if not isinstance(asked, Asked) or not _is_plain(asked):
        return None, None, 0
    uncovered = None
    if len(asked.fragments) < len(snapshot.fragments):
        uncovered = uncovered_fragments(snapshot, table, leaf.path, asked.fragments, _value_type(leaf.query))
        if uncovered is None:
            return None, None, 0
    rows_max = _ROWS_MAX if forced else min(_ROWS_MAX, _rows_worth_taking(snapshot, table, asked))
    if not rows_max:
        return None, None, 0
    for segment, _ in asked.segments:
        check_sizes(*snapshot.index_place(segment), segment)
    return asked, uncovered, rows_max


def _is_plain(asked: Asked) -> bool:
    """Whether one exact index says all of the fragments that it covers: its segments cover each of them once."""
    covered = [fragments for _, fragments in asked.segments]
    return (
        offered(asked.kind).find is not None
        and len(covered) <= _SEGMENTS_MAX
        and asked.exact == asked.fragments
        and sum(map(len, covered)) == len(FrozenBitMap.union(FrozenBitMap(), *covered))
    )


def _rows_worth_taking(snapshot: Snapshot, table: Schema, asked: Asked) -> int:
    """How many rows may be taken one by one before a scan costs less; 0 if it does in any case."""
    fragments = snapshot.fragments
    shape = read_shape(table, RowLayout.of(table, [asked.leaf.path]).fields)
    nbytes = int(bytes_of_each(fragments, [shape]).sum())
    return rows_worth_taking(asked, int(fragments.physical_rows.sum()), nbytes)
