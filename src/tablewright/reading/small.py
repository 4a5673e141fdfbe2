"""A run of small fragments in a scan: read as one batch, so that what has a price per batch is paid once for many.

The counterpart of :mod:`.fragment`, which reads one fragment in pieces. Fragments are decoded only where a row of them
needs more than its columns: stable row ids, or further columns in a second step.

Tests: ``tests/unit/reading/test_small.py``, ``tests/unit/operations/test_scan.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.read import Rows, beside
from tablewright.data.shape import ReadShape
from tablewright.data.small import SmallFragments, SmallRows
from tablewright.data.small_runs import small_runs
from tablewright.data.system_columns import SystemColumns
from tablewright.format.arrow_bits import Bools
from tablewright.format.fragment import FragmentList
from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import Offsets
from tablewright.lazy import cached_property
from tablewright.reading.fragment import FragmentScan, Matches, ReadPlan

__all__ = ["SmallRun", "SmallScan", "runs_of"]


class SmallScan:
    """A scan over a list of fragments, of which runs of small ones are read together."""

    def __init__(
        self,
        context: ReadContext,
        plan: ReadPlan,
        shapes: tuple[ReadShape, ReadShape],
        fragments: FragmentList,
        first_rows: Sequence[int],
    ) -> None:
        self.context, self.plan, self.shapes = context, plan, shapes
        self.fragments, self.first_rows = fragments, first_rows

    @cached_property
    def _files(self) -> SmallFragments:
        """What reads runs; a table whose fragments are all large needs none."""
        return SmallFragments(self.context, self.shapes[0], self.fragments)

    def read(self, start: int, stop: int) -> SmallRows:
        """The live rows of some fragments with the columns of the first step."""
        rows = self._files.read(start, stop)
        names = self.plan.first.system
        if not names:
            return rows
        columns = [self._system(name, rows) for name in names]
        system = pa.RecordBatch.from_arrays(columns, names=list(names))
        return SmallRows(beside(rows.batch, system), rows.first, rows.counts, rows.offsets)

    def are_mostly_kept(self, start: int, stop: int) -> bool:
        """Whether most of some fragments are in the cache."""
        return self._files.are_mostly_kept(start, stop)

    def _system(self, name: str, rows: SmallRows) -> pa.Array:
        facts, stop = self.fragments.facts, rows.first + len(rows.counts)
        has_ids = facts.has_row_ids[rows.first : stop].any()
        if name == "_rowaddr" or (name == "_rowid" and not has_ids):
            owners = np.repeat(facts.ids[rows.first : stop], rows.counts)
            return pa.array(RowAddress.join(owners, rows.offsets))
        parts = np.split(rows.offsets, rows.ends[:-1])
        return pa.concat_arrays(
            [
                SystemColumns(self.context, self.fragments[position], self.first_rows[position]).column(name, offsets)
                for position, offsets in zip(range(rows.first, stop), parts, strict=True)
            ]
        )

    def fragment_scan(self, position: int) -> FragmentScan:
        """One of the fragments by itself."""
        return FragmentScan(self.context, self.plan, self.shapes, self.fragments[position], self.first_rows[position])


@dataclass(frozen=True, slots=True, eq=False)
class SmallRun:
    """The small fragments of a scan from position ``start`` up to ``stop``."""

    scan: SmallScan
    start: int
    stop: int

    def read(self) -> SmallRows:
        """The live rows with the columns of the first step."""
        return self.scan.read(self.start, self.stop)

    @property
    def rows(self) -> int:
        """How many rows the fragments have, deleted ones included."""
        return int(self.scan.fragments.physical_rows[self.start : self.stop].sum())

    def is_followed_by(self, other: SmallRun) -> bool:
        """Whether ``other`` begins in the same scan where this one ends."""
        return self.scan is other.scan and self.stop == other.start

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as asked for, of a scan without a filter."""
        rows = self.read()
        return [self.scan.plan.selection.shape(rows.batch)] if len(rows) else []

    def places(self) -> tuple[SmallRows, Offsets]:
        """The rows, and the places among them of those that match the filter."""
        rows = self.read()
        return rows, np.flatnonzero(self._mask(rows))

    def count(self) -> int:
        """How many rows match the filter."""
        return int(np.count_nonzero(self._mask(self.read())))

    def matches(self) -> list[Matches]:
        """The rows that match, by fragment; all of them together if no further column has to be read."""
        rows, places = self.places()
        if not len(places):
            return []
        plan = self.scan.plan
        kept = rows.batch.select(list(plan.kept))
        if not plan.rest.names:
            taken = kept if len(places) == len(rows) else kept.take(pa.array(places))
            return [Matches(self.scan.fragment_scan(self.start), Rows(taken))]
        return [
            Matches(
                self.scan.fragment_scan(position),
                Rows(kept.take(pa.array(part)), chosen=rows.offsets[part]),
            )
            for position, part in rows.by_fragment(places)
        ]

    def _mask(self, rows: SmallRows) -> Bools:
        predicate = self.scan.plan.predicate
        assert predicate is not None
        return predicate.mask(rows.batch)


def runs_of(scan: SmallScan, *, all_wanted: bool = False) -> Iterator[SmallRun | range]:
    """The fragments in order: runs of small ones, and the positions of others."""
    for start, stop, is_small in small_runs(
        scan.fragments, scan.shapes[0], scan.are_mostly_kept, all_wanted=all_wanted
    ):
        yield SmallRun(scan, start, stop) if is_small else range(start, stop)
