"""Few rows whose offsets are known, read without a plan of pieces: for lookups, and for changes of few rows.

Tests: ``tests/unit/operations/test_lookup.py``, ``tests/differential/test_known_rows.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.number_rows import read_number_rows, read_number_runs
from tablewright.data.prefetch import spread
from tablewright.data.read import FragmentReader, beside
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.projection import Selection
from tablewright.storage.together import answers_slowly

__all__ = ["KnownReads", "KnownRows", "read_known_rows"]

_FEW_ROWS = 64
_FEW_BYTES = 1 << 20
_ROWS_PER_BATCH = 64  # rows may be wide, and texts of a batch have 2 GiB at most
_OPEN_MAX = 16  # fragments whose files are open at a time


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

    def bytes_of(self, wanted: Iterable[KnownRows]) -> int:
        """About how many bytes some rows have."""
        return sum(len(each.offsets) * self.shape.sizes.bytes_per_row(each.fragment) for each in wanted)

    def are_few(self, fragment: Fragment, rows: int) -> bool:
        """Whether this many rows of a fragment are read at once."""
        return rows <= _FEW_ROWS and rows * self.shape.sizes.bytes_per_row(fragment) <= _FEW_BYTES


class KnownRows(NamedTuple):
    """Rows of one fragment at ascending offsets, deleted or not. ``first_row``: how many rows come before it."""

    fragment: Fragment
    first_row: int
    offsets: Offsets


def read_known_rows(context: ReadContext, reads: KnownReads, wanted: Sequence[KnownRows]) -> list[pa.RecordBatch]:
    """The rows as asked for, in the order given. Numbers of neighbouring fragments are one batch where they can."""
    if len(wanted) == 1:
        (fragment, _, offsets), shape = wanted[0], reads.shape
        runs: Iterable[tuple[int, pa.RecordBatch | None]] = [(1, read_number_rows(context, fragment, shape, offsets))]
    else:
        runs = read_number_runs(context, reads.shape, [(each.fragment, each.offsets) for each in wanted])
    found, done = list[pa.RecordBatch](), 0
    for count, numbers in runs:
        run, done = wanted[done : done + count], done + count
        if numbers is not None:
            found += _with_system(context, reads, run, numbers)
            continue
        for each, parts in zip(run, _decoded(context, reads.shape, run), strict=True):
            begin = 0
            for part in parts:
                rows = each._replace(offsets=each.offsets[begin : begin + len(part)])
                found += _with_system(context, reads, [rows], part)
                begin += len(part)
    return [reads.plan.selection.shape(batch) for batch in found]


def _with_system(
    context: ReadContext, reads: KnownReads, wanted: Sequence[KnownRows], batch: pa.RecordBatch
) -> list[pa.RecordBatch]:
    """The rows with row ids, addresses and the like, where these are asked for: a batch for each fragment."""
    system = reads.plan.rest.system
    if not system:
        return [batch]
    found, done = [], 0
    for fragment, first_row, offsets in wanted:
        values = SystemColumns(context, fragment, first_row).batch(system, offsets)
        found.append(beside(batch.slice(done, len(offsets)), values))
        done += len(offsets)
    return found


def _decoded(context: ReadContext, shape: ReadShape, wanted: Sequence[KnownRows]) -> Iterator[list[pa.RecordBatch]]:
    """The rows of each fragment, by the codec, which works on some fragments at the same time."""
    if len(wanted) > 1 and answers_slowly(context.store_of(None)):
        yield from spread(lambda each: _Decoding(context, shape, each).batches(), wanted)
        return
    for begin in range(0, len(wanted), _OPEN_MAX):
        begun = [_Decoding(context, shape, each) for each in wanted[begin : begin + _OPEN_MAX]]
        yield from (each.batches() for each in begun)


class _Decoding:
    """Rows of one fragment that the codec reads from the moment this is made."""

    def __init__(self, context: ReadContext, shape: ReadShape, wanted: KnownRows) -> None:
        self._reader, self._count = FragmentReader(context, wanted.fragment, shape), len(wanted.offsets)
        self._parts = self._reader.start_at(wanted.offsets, _ROWS_PER_BATCH)

    def batches(self) -> list[pa.RecordBatch]:
        """Called once. The codec is not asked for the end, which costs as much as a part."""
        found, count = list[pa.RecordBatch](), self._count
        while count > 0 and (part := next(self._parts, None)) is not None:
            found.append(part.batch)
            count -= len(part)
        self._reader.release()
        return found
