"""One fragment under way in a scan: its readers, its pieces, and the two ways through them.

*Without a filter* a piece (a range of physical rows) is read and shaped.

*With a filter* two steps, so that few matches cost little:

1. The filter's columns are read for a piece; the offsets of the rows that match remain, and those of its columns that
   the result needs too (:class:`Matches`).
2. The remaining columns are read for the matches. Where matches are dense, ranges are read and filtered; where they
   are sparse, rows are taken one by one; where there are none, nothing is read.

Readers serve one thread at a time: each fragment keeps a stack of idle ones for whichever thread comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.dictionaries import as_one, joined
from tablewright.data.number_rows import FEW_ROWS, read_number_rows
from tablewright.data.prefetch import processors
from tablewright.data.read import FragmentReader, Rows, beside
from tablewright.data.rows import rows_where
from tablewright.data.shape import ReadShape, read_shape
from tablewright.data.sizes import PIECE_ROWS_MAX
from tablewright.data.system_columns import SystemColumns
from tablewright.expressions.filters import Predicate
from tablewright.expressions.kernels import Judge
from tablewright.format.arrow_bits import Bools
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.reading.gather import Gathered
from tablewright.reading.projection import RowLayout, Selection

__all__ = [
    "FragmentScan",
    "Matches",
    "ReadPlan",
    "TakeLimits",
    "count_rows_that_match",
    "judged",
    "match_rows",
]


_SHARED_PIECE_ROWS = 1 << 18
_JUDGED_TOGETHER_ROWS = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeLimits:
    """When rows are taken one by one, and when the range that holds them is read and filtered.

    A share of matches above ``dense`` (``dense_wide``, where a row has ``wide_row_bytes``) makes a range faster; it is
    looked at in windows of ``window_rows`` physical rows. A window whose share is within ``clear`` times of the limit
    is read as most of the rows are: rows that lie scattered are not cut into runs by chance. At most ``taken_rows`` are
    taken at a time.
    """

    window_rows: int = 8192
    dense: float = 1 / 50
    dense_wide: float = 1 / 12
    wide_row_bytes: int = 256
    taken_rows: int = 8192
    clear: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """What to read: ``first`` for the filter (or for everything, without one), ``rest`` for the rows that match.

    ``filtered`` is the table as the filter sees it, if that is another form of it: then it is read in two steps.
    """

    table: Schema
    selection: Selection
    predicate: Predicate | None
    first: RowLayout
    rest: RowLayout
    include_deleted: bool = False
    filtered: Schema | None = None
    take: TakeLimits = TakeLimits()

    @classmethod
    def of(
        cls,
        table: Schema,
        selection: Selection,
        predicate: Predicate | None,
        *,
        late: bool = True,
        include_deleted: bool = False,
        filtered: Schema | None = None,
    ) -> ReadPlan:
        """Split the reads. Without ``late`` all columns are read at once."""
        if filtered is table or predicate is None:
            filtered = None
        if predicate is None or not (late or filtered is not None):
            paths = selection.paths if predicate is None else (*predicate.paths, *selection.paths)
            first, rest = RowLayout.of(table, paths), RowLayout.of(table, ())
        else:
            first = RowLayout.of(filtered or table, predicate.paths)
            missing = {path[0] for path in selection.paths if not first.covers(table, path)}
            if filtered is not None:
                missing |= _in_another_form(filtered).intersection(path[0] for path in selection.paths)
            rest = RowLayout.of(table, [path for path in selection.paths if path[0] in missing])
        return cls(
            table=table,
            selection=selection,
            predicate=predicate,
            first=first,
            rest=rest,
            include_deleted=include_deleted,
            filtered=filtered,
        )

    @classmethod
    def of_known_rows(cls, table: Schema, selection: Selection) -> ReadPlan:
        """The reads for rows whose offsets are known."""
        first, rest = RowLayout.of(table, ()), RowLayout.of(table, selection.paths)
        return cls(table=table, selection=selection, predicate=None, first=first, rest=rest)

    def counting(self) -> ReadPlan:
        """The reads that tell how many rows match: the filter's columns and no others."""
        if self.predicate is None:
            return self
        table = self.filtered or self.table
        return ReadPlan.of(table, Selection.nothing(), self.predicate, include_deleted=self.include_deleted)

    def shapes(self) -> tuple[ReadShape, ReadShape]:
        """What both steps read."""
        rows_max = PIECE_ROWS_MAX if self.predicate is None else _filtered_rows_max()
        first = read_shape(self.filtered or self.table, self.first.fields, rows_max)
        return first, read_shape(self.table, self.rest.fields)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of the first step that the result needs."""
        later = set(self.rest.names)
        needed = {path[0] for path in self.selection.paths} - later
        return tuple(name for name in self.first.names if name in needed)


def _filtered_rows_max() -> int:
    """How many rows a piece has at most for a filter.

    The codec decodes on a thread of its own while ours judges, so a piece occupies two processors. Where there are
    more, pieces are small enough that threads share a fragment; on two, more threads cost a fifth more processor time.
    """
    return PIECE_ROWS_MAX if processors() <= 2 else _SHARED_PIECE_ROWS


def _in_another_form(filtered: Schema) -> set[str]:
    """The columns that hold blobs, which the result shows in another form than the filter sees."""
    tops = {node.id: node.name for node in filtered.top_level}
    return {tops[(*filtered.ancestors(blob), blob)[0]] for blob in filtered.blob_ids}


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of a fragment that match, with the columns that are known of them so far."""

    scan: FragmentScan
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)


class FragmentScan:
    """A fragment, what to read of it, and its idle readers."""

    def __init__(
        self,
        context: ReadContext,
        plan: ReadPlan,
        shapes: tuple[ReadShape, ReadShape],
        fragment: Fragment,
        first_row: int,
    ) -> None:
        self.fragment, self.plan = fragment, plan
        self._context = context
        self._first, self._rest = shapes
        take = plan.take
        is_wide = self._rest.sizes.bytes_per_row(fragment) >= take.wide_row_bytes
        self._dense = take.dense_wide if is_wide else take.dense
        self._system = SystemColumns(context, fragment, first_row)
        # How many rows a batch has of a filter that costs little per batch; 0 of others.
        predicate = plan.predicate
        is_quick = predicate is not None and predicate.simple is not None and not plan.first.system
        self.small_rows = self._first.sizes.rows_per_small_batch if is_quick else 0
        self._idle: dict[bool, list[FragmentReader]] = {False: [], True: []}

    def __del__(self) -> None:
        """Its last piece was read, or the scan was left: readers that no thread uses serve the next scan."""
        for readers in getattr(self, "_idle", {}).values():
            for reader in readers:
                reader.release()

    # ------------------------------------------------------------------------------------------------ pieces
    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[FragmentScan, int, int]]:
        """Ranges of physical rows, each of a size that one thread reads at a time."""
        end = self.fragment.physical_rows if stop is None else stop
        rows = self._first.sizes.rows_per_piece(self.fragment)
        for begin in range(start, end, rows):
            yield self, begin, min(end, begin + rows)

    def range_of_live(self, skip: int, count: int | None) -> tuple[int, int]:
        """The physical range that holds ``count`` live rows after the first ``skip`` ones."""
        rows = self.fragment.physical_rows
        vector = None if self.plan.include_deleted else self._context.deletion_vector(self.fragment)
        if vector is None:
            return skip, rows if count is None else min(rows, skip + count)
        live = rows - len(vector)
        end = live if count is None else min(live, skip + count)
        if skip >= end:
            return 0, 0
        first, last = vector.nth_absent(np.array([skip, end - 1])).tolist()
        return first, last + 1

    # ------------------------------------------------------------------------------------------------- first step
    def read(self, start: int, stop: int) -> Iterator[Rows]:
        """The rows of a piece with the columns of the first step, batch by batch."""
        with self._reader(rest=False) as reader:
            yield from (rows for rows in self._rows(reader, self.plan.first, start, stop) if len(rows))

    # ------------------------------------------------------------------------------------------------ second step
    def complete(self, rows: Rows) -> list[pa.RecordBatch]:
        """Matches as asked for: with the remaining columns, which are read now."""
        if not self.plan.rest.names:
            return [self.plan.selection.shape(rows.batch)]
        return [self.plan.selection.shape(beside(rows.batch, self.remaining(rows)))]

    def remaining(self, rows: Rows) -> pa.RecordBatch:
        """The columns of the second step, of some rows."""
        numbers = self._numbers(rows.offsets)
        if numbers is not None:
            return numbers
        with self._reader(rest=True) as reader:
            return self._remaining(reader, rows.offsets)

    @property
    def asked_codec(self) -> bool:
        """Whether the codec has read some of its rows."""
        return any(self._idle.values())

    def _numbers(self, offsets: Offsets) -> pa.RecordBatch | None:
        """The columns of the second step, read without the codec; ``None`` if it has to read them."""
        if len(offsets) > FEW_ROWS or self.plan.include_deleted:
            return None
        batch = read_number_rows(self._context, self.fragment, self._rest, offsets)
        return None if batch is None else self._with_system(self.plan.rest, None, Rows(batch, chosen=offsets)).batch

    def _remaining(self, reader: FragmentReader, offsets: Offsets) -> pa.RecordBatch:
        first, last = int(offsets[0]), int(offsets[-1]) + 1
        size = self._rest.sizes.rows_per_batch(self.fragment)
        if len(offsets) < self._dense * (last - first):
            found = reader.take(offsets, size)
        else:
            found = (_among(rows, offsets) for rows in reader.read(first, last, size, include_deleted=True))
        parts = [self._with_system(self.plan.rest, reader, rows).batch for rows in found if len(rows)]
        return as_one(parts)

    @property
    def rows_at_a_time(self) -> int:
        """How many rows are best read at once in the second step."""
        return self._rest.sizes.rows_per_piece(self.fragment)

    def windows(self, rows: Rows) -> Iterator[Rows]:
        """Matches cut into runs that are dense or sparse throughout, each small enough to be read at a time."""
        if not self.plan.rest.names or len(rows) == 1:
            yield rows
            return
        window_rows = self.plan.take.window_rows
        window = rows.offsets // window_rows
        starts = np.concatenate(([0], np.flatnonzero(np.diff(window)) + 1))
        dense = self._are_dense(np.diff(starts, append=len(rows)))
        gaps = np.diff(window[starts]) > 1
        breaks = np.flatnonzero((dense[1:] != dense[:-1]) | (dense[1:] & gaps)) + 1
        edges = [*starts[[0, *breaks]].tolist(), len(rows)]
        limit = self._rest.sizes.rows_per_piece(self.fragment)
        for begin, end in pairwise(edges):
            yield from _cut(rows, begin, end, limit, self._dense, self.plan.take.taken_rows)

    def _are_dense(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether each window is read as a range, from how many matches it has."""
        take = self.plan.take
        limit = self._dense * take.window_rows
        mostly = counts.mean() > limit
        return np.where(mostly, counts * take.clear >= limit, counts > limit * take.clear)

    # ------------------------------------------------------------------------------------------------ readers
    @contextmanager
    def _reader(self, *, rest: bool) -> Iterator[FragmentReader]:
        idle = self._idle[rest]
        try:
            reader = idle.pop()
        except IndexError:
            reader = FragmentReader(self._context, self.fragment, self._rest if rest else self._first)
        yield reader
        idle.append(reader)

    def _rows(self, reader: FragmentReader, layout: RowLayout, start: int, stop: int) -> Iterator[Rows]:
        size = self._first.sizes.rows_per_batch(self.fragment)
        size = min(size, self.small_rows or size)
        for rows in reader.read(start, stop, size, include_deleted=self.plan.include_deleted):
            yield self._with_system(layout, reader, rows)

    def _with_system(self, layout: RowLayout, reader: FragmentReader | None, rows: Rows) -> Rows:
        """Without a reader the rows are live ones."""
        if not layout.system:
            return rows
        is_live = reader.live if reader is not None and self.plan.include_deleted else None
        live = None if is_live is None else is_live[rows.offsets]
        return rows.with_batch(beside(rows.batch, self._system.batch(layout.system, rows.offsets, live)))


def judged(found: Iterable[tuple[FragmentScan, Rows]]) -> Iterator[tuple[FragmentScan, Rows, Bools]]:
    """The filter's answer for each row. Small batches are judged together: a judgement has a fixed price."""
    judge: Judge | None = None
    for group in _groups(found):
        judge = judge or _judge_of(group[0][0].plan)
        if len(group) == 1:
            ((scan, rows),) = group
            yield scan, rows, judge(rows.batch)
            continue
        masks = _masks(judge, [rows.batch for _, rows in group])
        for (scan, rows), mask in zip(group, masks, strict=True):
            yield scan, rows, mask


def match_rows(found: Iterable[tuple[FragmentScan, Rows]]) -> list[Matches]:
    """Those of the rows that match the filter; the matches of small batches of a fragment together."""
    matches: list[Matches] = []
    for (scan, is_small), answers in groupby(judged(found), _scan_and_size):
        if is_small:
            gathered = Gathered(scan.plan.kept, with_offsets=bool(scan.plan.rest.names))
            for _, rows, mask in answers:
                gathered.add(rows, mask)
            if len(gathered):
                matches.append(Matches(scan, gathered.rows()))
        else:
            matches.extend(Matches(scan, _matching(scan.plan, rows, mask)) for _, rows, mask in answers if mask.any())
    return matches


def _scan_and_size(answer: tuple[FragmentScan, Rows, Bools]) -> tuple[FragmentScan, bool]:
    scan, rows, _ = answer
    return scan, len(rows) <= scan.small_rows


def count_rows_that_match(found: Iterable[tuple[FragmentScan, Rows]]) -> int:
    """How many of the rows match the filter."""
    return sum(int(np.count_nonzero(mask)) for _, _, mask in judged(found))


def _groups(found: Iterable[tuple[FragmentScan, Rows]]) -> Iterator[list[tuple[FragmentScan, Rows]]]:
    """Runs of neighbours with few rows together; one with many rows is not kept until the next one is read."""
    group: list[tuple[FragmentScan, Rows]] = []
    count = 0
    for each in found:
        rows = len(each[1])
        if group and count + rows > _JUDGED_TOGETHER_ROWS:
            yield group
            group, count = [], 0
        group.append(each)
        count += rows
        if count >= _JUDGED_TOGETHER_ROWS:
            yield group
            group, count = [], 0
    if group:
        yield group


def _judge_of(plan: ReadPlan) -> Judge:
    assert plan.predicate is not None
    return plan.predicate.judge()


def _masks(judge: Judge, batches: list[pa.RecordBatch]) -> list[Bools]:
    """The filter's answer for each batch."""
    mask = np.concatenate([judge(each) for each in joined(batches)])
    return np.split(mask, np.cumsum([batch.num_rows for batch in batches[:-1]]))


def _matching(plan: ReadPlan, rows: Rows, mask: Bools) -> Rows:
    kept = rows.batch.select(list(plan.kept))
    if plan.rest.names:
        return rows.with_batch(kept).where(mask)
    return Rows(rows_where(kept, mask))  # the offsets are not asked for


def _among(rows: Rows, offsets: Offsets) -> Rows:
    """Those of the rows, which follow one another, that are among the offsets."""
    begin, end = np.searchsorted(offsets, [rows.start, rows.start + len(rows)])
    wanted = offsets[begin:end]
    if len(wanted) == len(rows):
        return rows
    return Rows(rows.batch.take(pa.array(wanted - rows.start)), chosen=wanted)


def _cut(rows: Rows, begin: int, end: int, limit: int, dense: float, taken_rows: int) -> Iterator[Rows]:
    """Runs that span at most ``limit`` physical rows, or are as many sparse ones, about equally many in each."""
    offsets = rows.offsets
    few_max = min(limit, taken_rows)
    while begin < end:
        reach = int(np.searchsorted(offsets[begin:end], offsets[begin] + limit)) + begin
        runs = -(-(end - begin) // few_max)
        few = begin - (-(end - begin) // runs)
        if few > reach and few - begin < dense * (int(offsets[few - 1]) + 1 - int(offsets[begin])):
            reach = few
        yield rows.slice(begin, reach)
        begin = reach
