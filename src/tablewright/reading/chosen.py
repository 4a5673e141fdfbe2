"""Rows that were chosen before a scan, by an index: read by their offsets, and judged again where that is needed.

*Exact* rows match: they go straight to the second step of a scan, which reads the columns of the result. Of other rows
the filter's columns are read first. Both read ranges where the rows are dense, and take single rows where they are not
(:class:`~tablewright.reading.fragment.FragmentScan`).

Tests: ``tests/unit/reading/test_chosen.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablewright.data.context import ReadContext
from tablewright.data.read import Rows, no_columns
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import RowSet
from tablewright.reading.fragment import FragmentScan, Matches, ReadPlan, match_rows
from tablewright.reading.projection import RowLayout

__all__ = ["ChosenPart", "ChosenRows", "ChosenScans"]


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Live rows of a fragment: those that match, if ``exact``, else those that may."""

    rows: RowSet
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class ChosenPart:
    """Some chosen rows of a fragment, as many as a thread reads at a time.

    ``judge`` is the scan whose filter looks at the rows, ``reader`` the one that reads the filter's columns of them;
    rows that match already have no judge, and ``reader`` completes them.
    """

    reader: FragmentScan
    rows: Rows
    judge: FragmentScan | None = None

    def read(self) -> list[tuple[FragmentScan, Rows]]:
        """The rows that have to be judged, with the filter's columns."""
        assert self.judge is not None
        return [(self.judge, self.rows.with_batch(self.reader.remaining(self.rows)))]

    def matches(self) -> list[Matches]:
        """The rows that match."""
        return [Matches(self.reader, self.rows)] if self.judge is None else match_rows(self.read())


class ChosenScans:
    """The three ways to read a fragment of which rows were chosen; what they share is worked out once."""

    def __init__(self, context: ReadContext, plan: ReadPlan) -> None:
        self._context, self._plan = context, plan
        self._known = ReadPlan.of_known_rows(plan.table, plan.selection)
        table = plan.filtered or plan.table
        nothing = RowLayout.of(table, ())
        self._looked_at = ReadPlan(
            table=table, selection=plan.selection, predicate=None, first=nothing, rest=plan.first, take=plan.take
        )
        self._shapes = {id(each): each.shapes() for each in (self._plan, self._known, self._looked_at)}

    def parts(self, fragment: Fragment, first_row: int, chosen: ChosenRows) -> Iterator[ChosenPart]:
        """The chosen rows of a fragment, in order."""
        offsets = chosen.rows.to_numpy()
        rows = Rows(no_columns(len(offsets)), chosen=offsets)
        if not len(offsets):
            return
        if chosen.exact:
            yield ChosenPart(self._scan(self._known, fragment, first_row), rows)
            return
        judge, reader = (self._scan(plan, fragment, first_row) for plan in (self._plan, self._looked_at))
        for window in reader.windows(rows):
            yield ChosenPart(reader, window, judge)

    def _scan(self, plan: ReadPlan, fragment: Fragment, first_row: int) -> FragmentScan:
        return FragmentScan(self._context, plan, self._shapes[id(plan)], fragment, first_row)
