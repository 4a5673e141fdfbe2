"""Few rows whose offsets are known, read without a plan of pieces: for lookups, and for changes of few rows.

Tests: ``tests/unit/operations/test_lookup.py``, ``tests/differential/test_known_rows.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.number_rows import read_number_rows, read_rows_together
from tablewright.data.read import FragmentReader, Rows, beside
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.projection import Selection

__all__ = ["KnownReads", "KnownRows", "read_known_numbers"]

_FEW_ROWS = 64
_FEW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class KnownReads:
    """What is read of rows for a selection of columns, in all versions that have this schema."""

    table: Schema
    plan: ReadPlan
    shape: ReadShape

    @classmethod
    def of(cls, table: Schema, selection: Selection) -> KnownReads:
        """What is read for a selection."""
        plan = ReadPlan.of_known_rows(table, selection)
        return cls(table, plan, plan.shapes()[1])

    def are_few(self, fragment: Fragment, rows: int) -> bool:
        """Whether this many rows of a fragment are read at once."""
        return rows <= _FEW_ROWS and rows * self.shape.sizes.bytes_per_row(fragment) <= _FEW_BYTES


class KnownRows:
    """Rows of one fragment at ascending ``offsets``. The codec, if it has to read them, does so from the
    moment this is made.
    """

    def __init__(
        self, context: ReadContext, reads: KnownReads, fragment: Fragment, first_row: int, offsets: Offsets
    ) -> None:
        self._context, self._plan, self._first_row = context, reads.plan, first_row
        self._fragment, self._count = fragment, len(offsets)
        self._reader: FragmentReader | None = None
        batch = read_number_rows(context, fragment, reads.shape, offsets)
        if batch is not None:
            self._parts: Iterator[Rows] = iter((Rows(batch, chosen=offsets),))
            return
        self._reader = FragmentReader(context, fragment, reads.shape)
        self._parts = self._reader.start_at(offsets)

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as asked for; called once."""
        found = _rows(self._parts, self._count)
        if self._reader is not None:
            self._reader.release()
        batches = [rows.batch for rows in found]
        if wanted := self._plan.rest.system:
            system = SystemColumns(self._context, self._fragment, self._first_row)
            batches = [beside(rows.batch, system.batch(wanted, rows.offsets)) for rows in found]
        return [self._plan.selection.shape(batch) for batch in batches]


def read_known_numbers(
    context: ReadContext, reads: KnownReads, wanted: Sequence[tuple[Fragment, int, Offsets]]
) -> list[pa.RecordBatch] | None:
    """Few rows of some fragments, each given with the number of its first row, as asked for, in one batch if they can.

    ``None`` if the codec has to read those of one of them, each in its own way (:class:`KnownRows`).
    """
    batch = read_rows_together(context, reads.shape, [(fragment, offsets) for fragment, _, offsets in wanted])
    if batch is None:
        return None
    system, found = reads.plan.rest.system, [batch]
    if system:
        ends = np.cumsum([len(offsets) for _, _, offsets in wanted]).tolist()
        found = [
            beside(
                batch.slice(end - len(offsets), len(offsets)),
                SystemColumns(context, fragment, first_row).batch(system, offsets),
            )
            for end, (fragment, first_row, offsets) in zip(ends, wanted, strict=True)
        ]
    return [reads.plan.selection.shape(each) for each in found]


def _rows(parts: Iterator[Rows], count: int) -> list[Rows]:
    """Parts of this many rows in all: the codec is not asked for the end, which costs as much as a part."""
    found: list[Rows] = []
    while count > 0 and (part := next(parts, None)) is not None:
        found.append(part)
        count -= len(part)
    return found
