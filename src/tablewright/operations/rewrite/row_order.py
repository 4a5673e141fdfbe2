"""The order in which rows that move are written: that of their row ids, on tables that have stable ones.

Rows are found in the order of their addresses. After a few scattered updates that is no order of ids any more, and ids
without order take 4 to 8 bytes each in the manifest, with every later commit. Written in the order of ids they stay a
range with holes or a bitmap: one bit per id and less, however often rows move.

Ids that ascend with the addresses, as in a table that was only appended to, cost nothing here. Otherwise rows are read
in *windows* of consecutive ids: from each fragment the rows that it has in the window, which are put in order then. As
each fragment holds its own rows in the order of ids, it is still read from front to back. Fragments that don't (other
writers leave such) would be read up and down; if many of their rows have to be read, they stay in the order found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablewright.data.dictionaries import as_one
from tablewright.data.read import Rows, no_columns
from tablewright.format.row_ids import RowIdSequence
from tablewright.format.row_set import Offsets
from tablewright.format.segment_choice import segments_of_runs
from tablewright.operations.rewrite.limits import DEFAULT_LIMITS
from tablewright.reading.fragment import FragmentScan

__all__ = ["IdWindow", "RowOrder", "row_order", "windows"]


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The ids of the rows as they are written (``None`` without stable ones), and which rows these are.

    ``places`` counts the rows in the order of their addresses; ``None`` stands for that very order.
    """

    ids: RowIdSequence | None = None
    places: Offsets | None = None


def row_order(
    found: Sequence[RowIdSequence], *, are_read: bool, up_and_down_rows: int = DEFAULT_LIMITS.up_and_down_rows
) -> RowOrder:
    """The order of rows whose ids are these, fragment by fragment; ``are_read`` if the fragments are read for them.

    >>> order = row_order([RowIdSequence.from_values([5, 9]), RowIdSequence.from_values([6])], are_read=True)
    >>> order.ids.to_numpy().tolist(), order.places.tolist()
    ([5, 6, 9], [0, 2, 1])
    """
    runs = [ids.runs() for ids in found]
    firsts = np.concatenate([np.zeros(0, np.uint64), *(first for first, _, _ in runs)])
    lasts = np.concatenate([np.zeros(0, np.uint64), *(last for _, last, _ in runs)])
    if np.all(firsts[1:] > lasts[:-1]):
        return RowOrder(RowIdSequence(segments_of_runs(firsts, lasts)))
    numbers = np.concatenate([ids.to_numpy() for ids in found])
    up_and_down = any(np.any(first[1:] <= last[:-1]) for first, last, _ in runs)
    if are_read and up_and_down and len(numbers) > up_and_down_rows:
        return RowOrder(RowIdSequence.from_values(numbers))
    places = np.argsort(numbers, kind="stable")
    return RowOrder(RowIdSequence.from_values(numbers[places]), places)


@dataclass(frozen=True, slots=True)
class IdWindow:
    """Rows that are written one after the other, and the fragments that they are read from."""

    places: Offsets
    parts: tuple[tuple[FragmentScan, Offsets], ...]

    def read(self) -> pa.RecordBatch:
        """The rows in their order."""
        found = [
            batch
            for scan, offsets in self.parts
            for batch in scan.complete(Rows(no_columns(len(offsets)), chosen=offsets))
        ]
        together = as_one(found)
        rank = np.empty(len(self.places), np.int64)
        rank[np.argsort(self.places, kind="stable")] = np.arange(len(rank))
        return together.take(pa.array(rank))


def windows(
    scans: Sequence[FragmentScan], offsets: Sequence[Offsets], places: Offsets, rows_max: int | None = None
) -> Iterator[IdWindow]:
    """Rows at ``offsets`` of each fragment, in the order of their places, cut into windows that fit in memory."""
    ends = np.cumsum([len(rows) for rows in offsets])
    step = max(1, min([scan.rows_at_a_time for scan in scans] + ([] if rows_max is None else [rows_max])))
    for begin in range(0, len(places), step):
        wanted = places[begin : begin + step]
        ascending = np.sort(wanted)
        cuts = np.searchsorted(ascending, np.append(0, ends)).tolist()
        parts = [
            (scan, rows[ascending[low:high] - (end - len(rows))])
            for scan, rows, end, low, high in zip(scans, offsets, ends.tolist(), cuts, cuts[1:], strict=False)
            if low < high
        ]
        yield IdWindow(wanted, tuple(parts))
