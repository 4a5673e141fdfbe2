"""The few small fragments that an index does not cover yet: a lookup reads the filter's column of them.

Each update or append leaves a fragment that no index covers until ``optimize_indices`` runs. As long as these are few
and small, their rows are compared with the lookup's values here, without the plan of a scan. What was read of them is
kept in the cache of the process, as for any scan (:mod:`tablewright.data.small`).

Tests: ``tests/unit/reading/test_uncovered.py``, ``tests/differential/test_known_rows.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from pyroaring import FrozenBitMap

from tablewright.data.shape import ReadShape, read_shape
from tablewright.data.small import SmallFragments, SmallRows
from tablewright.data.small_runs import are_small
from tablewright.expressions.conditions import Path
from tablewright.format.fragment import FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.indices.query import Between, IsIn, Query
from tablewright.indices.rows import RowsByFragment
from tablewright.reading.projection import RowLayout
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Uncovered", "uncovered_fragments"]

_FRAGMENTS_MAX = 256
_ROWS_MAX = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Uncovered:
    """Small fragments that no segment covers, and what is read of them: the filter's column."""

    fragments: FragmentList
    shape: ReadShape

    def rows(self, snapshot: Snapshot, query: Query) -> RowsByFragment:
        """The live rows that match."""
        read, places = self._matches(snapshot, query)
        ids = self.fragments.ids
        return {int(ids[position]): RowSet.of(read.offsets[part]) for position, part in read.by_fragment(places)}

    def count(self, snapshot: Snapshot, query: Query) -> int:
        """How many live rows match."""
        return len(self._matches(snapshot, query)[1])

    def _matches(self, snapshot: Snapshot, query: Query) -> tuple[SmallRows, npt.NDArray[np.int64]]:
        rows = SmallFragments(snapshot, self.shape, self.fragments).read(0, len(self.fragments))
        return rows, np.flatnonzero(_is_true(query, rows.batch.column(0)))


def uncovered_fragments(
    snapshot: Snapshot, table: Schema, path: Path, covered: FrozenBitMap, kind: pa.DataType
) -> Uncovered | None:
    """The fragments outside ``covered``, which are fragments of the version, if they are few and small.

    ``None`` too unless the column at ``path`` is a top-level one of type ``kind``, and its values are whole numbers or
    texts: for these a value equals itself and nothing else.
    """
    every = snapshot.fragments
    count = len(every) - len(covered)
    if count > _FRAGMENTS_MAX or not (at.is_integer(kind) or at.is_string(kind) or at.is_large_string(kind)):
        return None
    positions = _outside(every, covered, count)
    shape = read_shape(table, RowLayout.of(table, [path]).fields)
    fragments = every.at(positions)
    if int(fragments.physical_rows.sum()) > _ROWS_MAX or [each for _, each in shape.columns] != [kind]:
        return None
    return Uncovered(fragments, shape) if are_small(fragments, shape) else None


def _outside(fragments: FragmentList, covered: FrozenBitMap, count: int) -> list[int]:
    """The positions of the ``count`` fragments that are not covered: most often the last ones of the list."""
    first = len(fragments) - count
    if not any(number in covered for number in fragments.ids[first:].tolist()):
        return list(range(first, len(fragments)))
    return np.flatnonzero(~np.isin(fragments.ids, np.array(covered.to_array(), np.uint64))).tolist()


def _is_true(query: Query, column: pa.Array) -> npt.NDArray[np.bool_]:
    """For which values the condition is true; it is not for nulls."""
    if isinstance(query, IsIn):
        return _bools(pc.is_in(column, value_set=query.values))
    assert isinstance(query, Between), "lookups ask for lists and ranges"
    true = np.ones(len(column), np.bool_)
    if query.low is not None:
        true &= _bools(pc.call_function("greater_equal" if query.low_inclusive else "greater", [column, query.low]))
    if query.high is not None:
        true &= _bools(pc.call_function("less_equal" if query.high_inclusive else "less", [column, query.high]))
    return true


def _bools(mask: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return found
