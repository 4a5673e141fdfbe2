"""A fragment's live rows, window by window: runs of physical rows of one size, each with the rows that are left of it.

Windows begin at multiples of their size whatever is deleted, so a window can be found again later (that is how a
checkpoint knows it). Several are read by one request to the codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tablewright.data.context import ReadContext
from tablewright.data.dictionaries import as_one
from tablewright.data.read import FragmentReader, Rows, beside, no_columns
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
from tablewright.reading.projection import RowLayout

__all__ = ["Window", "live_windows"]


@dataclass(frozen=True, slots=True)
class Window:
    """The physical rows from ``start`` up to ``stop`` of a fragment, of which ``rows`` are live."""

    fragment: Fragment
    start: int
    stop: int
    rows: Rows


class Reads(Protocol):
    """What is to be read: see :class:`tablewright.operations.columns.ColumnsWork`."""

    @property
    def table(self) -> Schema: ...

    @property
    def reads(self) -> RowLayout: ...

    @property
    def batch_size(self) -> int | None: ...


def live_windows(context: ReadContext, wanted: Reads, fragment: Fragment, first_row: int = 0) -> Iterator[Window]:
    """All windows of a fragment, in order, also those without a live row."""
    shape = ReadShape(wanted.table, wanted.reads.fields)
    reader = FragmentReader(context, fragment, shape)
    system = SystemColumns(context, fragment, first_row)
    sizes = shape.sizes
    size = wanted.batch_size or sizes.rows_per_batch(fragment)
    piece = max(size, sizes.rows_per_piece(fragment) // size * size)
    for begin in range(0, fragment.physical_rows, piece):
        end = min(fragment.physical_rows, begin + piece)
        found = list(reader.read(begin, end, max(size, sizes.rows_per_batch(fragment))))
        if wanted.reads.system:
            found = [r.with_batch(beside(r.batch, system.batch(wanted.reads.system, r.offsets))) for r in found]
        for start in range(begin, end, size):
            stop = min(end, start + size)
            yield Window(fragment, start, stop, _together([_within(rows, start, stop) for rows in found]))


_NO_ROWS = Rows(no_columns(0), chosen=np.empty(0, np.int64))


def _together(parts: list[Rows]) -> Rows:
    parts = [rows for rows in parts if len(rows)]
    if len(parts) < 2:
        return parts[0] if parts else _NO_ROWS
    return Rows(as_one([rows.batch for rows in parts]), chosen=np.concatenate([r.offsets for r in parts]))


def _within(rows: Rows, start: int, stop: int) -> Rows:
    begin, end = np.searchsorted(rows.offsets, [start, stop]).tolist()
    return rows if end - begin == len(rows) else rows.slice(begin, end)
