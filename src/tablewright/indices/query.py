"""What an index is asked: conditions on one column, and what comes back.

The conditions are values of :mod:`tablewright.expressions.queries`; a filter becomes a tree of them, and each kind
answers those that it can (:mod:`tablewright.reading.index_filter`).

Tests: ``tests/unit/indices/test_building.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tablewright.expressions.queries import Between, Contains, HasAll, HasAny, IsIn, IsNull, Query, StartsWith

__all__ = [
    "Between",
    "Contains",
    "HasAll",
    "HasAny",
    "Hits",
    "Ids",
    "IsIn",
    "IsNull",
    "Query",
    "RowRanges",
    "StartsWith",
]

Ids = npt.NDArray[np.uint64]
"""Row ids or row addresses, as the index stores them."""


class RowRanges(NamedTuple):
    """Ranges of physical rows: of fragment ``fragment_ids[i]`` the rows from ``starts[i]`` to before ``stops[i]``.

    Ascending by fragment and start; ranges of a fragment neither overlap nor touch.

    >>> RowRanges.of([2, 1, 1], [0, 0, 5], [9, 5, 8])
    RowRanges(fragment_ids=array([1, 2]), starts=array([0, 0]), stops=array([8, 9]))
    """

    fragment_ids: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fragment_ids: npt.ArrayLike, starts: npt.ArrayLike, stops: npt.ArrayLike) -> RowRanges:
        """Ranges in any order, which may overlap: sorted, and united where they meet. Empty ranges are left out."""
        given = [np.asarray(numbers, np.int64) for numbers in (fragment_ids, starts, stops)]
        filled = given[2] > given[1]
        fragments, first, last = (numbers[filled] for numbers in given)
        order = np.lexsort((first, fragments))
        fragments, first, last = fragments[order], first[order], last[order]
        if not len(order):
            return cls(fragments, first, last)
        new = np.concatenate([[True], fragments[1:] != fragments[:-1]])
        group = np.cumsum(new) - 1
        span = int(last.max()) + 1  # lifts each fragment above the one before, so that one running maximum serves all
        reach = np.maximum.accumulate(last + group * span) - group * span
        begins = new | np.concatenate([[True], first[1:] > reach[:-1]])
        ends = np.concatenate([begins[1:], [True]])
        return cls(fragments[begins], first[begins], reach[ends])

    @property
    def rows(self) -> int:
        """How many physical rows there are in the ranges."""
        return int((self.stops - self.starts).sum())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hits:
    """What a segment answers, in the ids that it stores: in no order, each id once.

    ``ids``: rows for which the condition is true; if not ``exact``, rows for which it may be true. ``nulls``: rows for
    which it is null, where that was asked for and is known. Stale entries are among them: of rows that are deleted,
    that moved, or whose fragment the segment no longer covers.

    ``ranges``: kinds that describe zones return candidates as ranges of physical rows, in addition to ``ids`` (which
    are then empty) and never exact. They name addresses, also on tables with stable row ids; so do the ``ids`` and
    ``nulls`` of such a kind.
    """

    ids: Ids
    nulls: Ids | None = None
    exact: bool = True
    ranges: RowRanges | None = None
