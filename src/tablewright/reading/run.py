"""The reads of a scan under way: pieces of all fragments, in order, by threads ahead of the consumer.

Without a filter there is one line of pieces. With one there are two, and the second feeds on the first: matches that
come out of the filter are cut into runs, and the remaining columns of each run are read, again ahead of the consumer.
Small pieces go through in bundles; small fragments are read together (:mod:`.small`).

Tests: ``tests/unit/reading/test_fragment.py``, ``tests/unit/operations/test_scan.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.dictionaries import joined
from tablewright.data.number_rows import FEW_ROWS, are_read_here
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.reading.chosen import ChosenPart, ChosenRows, ChosenScans
from tablewright.reading.fragment import (
    FragmentScan,
    Matches,
    ReadPlan,
    count_rows_that_match,
    match_rows,
)
from tablewright.reading.small import SmallRun, SmallScan, runs_of

__all__ = [
    "Part",
    "Piece",
    "ahead_of_codec",
    "bundles",
    "coalesced",
    "count_matches",
    "exact_batches",
    "fragment_scans",
    "joined_runs",
    "limited",
    "parts_of",
    "rows_of",
    "run_reads",
    "slices",
]

T = TypeVar("T")
R = TypeVar("R")
Piece = tuple[FragmentScan, int, int]
Bundle = list[Piece]
Part = SmallRun | Bundle | ChosenPart
"""What a thread reads at a time."""

_BUNDLE_ROWS, _BUNDLE_PIECES_MAX = 8192, 16
_COPIED_BYTES_MAX = 1 << 18


def run_reads(
    context: ReadContext,
    plan: ReadPlan,
    fragments: Sequence[Fragment],
    first_rows: Sequence[int],
    *,
    chosen: Mapping[int, ChosenRows] | None = None,
    skip: int = 0,
    take: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some fragments. ``skip`` and ``take`` count rows and are for scans without a filter only.

    Of fragments in ``chosen`` these rows are read and no others.
    """
    parts: Iterable[Part]
    if skip or take is not None:
        scans = fragment_scans(context, plan, fragments, first_rows)
        parts = bundles(_pieces(scans, plan, skip, take))
    else:
        parts = parts_of(context, plan, fragments, first_rows, chosen)
    if plan.predicate is None:
        for batches in prefetch(_read, parts):
            yield from batches
        return
    if _are_few(context, plan, fragments, chosen):
        runs = _runs(ahead_of_codec(_match, parts, _reader_of))
        completed = ahead_of_codec(_complete, runs, _scan_of)
    else:
        runs = _runs(prefetch(_match, parts))
        completed = prefetch(_complete, runs) if plan.rest.names or chosen else map(_complete, runs)
    for batches in completed:
        yield from batches


def ahead_of_codec(function: Callable[[T], R], items: Iterable[T], scan_of: Callable[[T], FragmentScan]) -> Iterator[R]:
    """``function`` of each item, in order: one by one until the codec is needed, then by threads ahead of the consumer.

    Few rows that are read without the codec are read by one thread: several would wait for each other.
    """
    left = iter(items)
    for item in left:
        yield function(item)
        if scan_of(item).asked_codec:
            yield from prefetch(function, left)


def _are_few(
    context: ReadContext, plan: ReadPlan, fragments: Sequence[Fragment], chosen: Mapping[int, ChosenRows] | None
) -> bool:
    """Whether few rows were chosen of each fragment that is read, all of which may be read without the codec."""
    if chosen is None or len(fragments) > len(chosen) or len(chosen) > FEW_ROWS:
        return False
    if sum(len(each.rows) for each in chosen.values()) > FEW_ROWS:
        return False
    return all(not shape.columns or are_read_here(context, shape) for shape in plan.shapes())


def _reader_of(part: Part) -> FragmentScan:
    assert isinstance(part, ChosenPart), "rows of each fragment were chosen"
    return part.reader


def _scan_of(run: tuple[FragmentScan, Rows]) -> FragmentScan:
    return run[0]


def count_matches(
    context: ReadContext,
    plan: ReadPlan,
    fragments: Sequence[Fragment],
    first_rows: Sequence[int],
    chosen: Mapping[int, ChosenRows] | None = None,
) -> int:
    """How many rows match the plan's filter."""
    parts = parts_of(context, plan, fragments, first_rows, chosen, all_wanted=True)
    if _are_few(context, plan, fragments, chosen):
        return sum(ahead_of_codec(_count, parts, _reader_of))
    return sum(prefetch(_count, parts))


def parts_of(
    context: ReadContext,
    plan: ReadPlan,
    fragments: Sequence[Fragment],
    first_rows: Sequence[int],
    chosen: Mapping[int, ChosenRows] | None = None,
    *,
    all_wanted: bool = False,
) -> Iterator[Part]:
    """Some fragments in parts, in order: small ones together, others as pieces, those with chosen rows alone.

    ``all_wanted``: the caller does not stop before the last one.
    """
    if chosen:
        yield from _parts_with_chosen(context, plan, fragments, first_rows, chosen, all_wanted=all_wanted)
        return
    if not isinstance(fragments, FragmentList) or plan.include_deleted:
        yield from _bundled(fragment_scans(context, plan, fragments, first_rows))
        return
    scan = SmallScan(context, plan, plan.shapes(), fragments, first_rows)
    for part in runs_of(scan, all_wanted=all_wanted):
        if isinstance(part, SmallRun):
            yield part
        else:
            yield from _bundled(map(scan.fragment_scan, part))


def joined_runs(parts: Iterable[Part]) -> list[Part]:
    """The same parts, in order; runs of small fragments that follow on each other are one run, read at once."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if not isinstance(part, SmallRun) or not isinstance(last, SmallRun) or not last.is_followed_by(part):
            joined.append(part)
        else:
            joined[-1] = SmallRun(part.scan, last.start, part.stop)
    return joined


def _parts_with_chosen(
    context: ReadContext,
    plan: ReadPlan,
    fragments: Sequence[Fragment],
    first_rows: Sequence[int],
    chosen: Mapping[int, ChosenRows],
    *,
    all_wanted: bool,
) -> Iterator[Part]:
    scans = ChosenScans(context, plan)
    ids = fragments.ids.tolist() if isinstance(fragments, FragmentList) else [fragment.id for fragment in fragments]
    for is_chosen, places in groupby(range(len(ids)), lambda place: ids[place] in chosen):
        positions = list(places)
        if is_chosen:
            for place in positions:
                yield from scans.parts(fragments[place], first_rows[place], chosen[ids[place]])
        else:
            stretch = slice(positions[0], positions[-1] + 1)
            yield from parts_of(context, plan, fragments[stretch], first_rows[stretch], all_wanted=all_wanted)


def _bundled(scans: Iterable[FragmentScan]) -> Iterator[Bundle]:
    return bundles(piece for scan in scans for piece in scan.pieces())


def fragment_scans(
    context: ReadContext, plan: ReadPlan, fragments: Sequence[Fragment], first_rows: Sequence[int]
) -> Iterator[FragmentScan]:
    """The fragments, ready to be read; what they share is worked out once."""
    shapes = plan.shapes()
    for fragment, first_row in zip(fragments, first_rows, strict=True):
        yield FragmentScan(context, plan, shapes, fragment, first_row)


def _pieces(scans: Iterable[FragmentScan], plan: ReadPlan, skip: int, take: int | None) -> Iterator[Piece]:
    for scan in scans:
        rows = scan.fragment.physical_rows if plan.include_deleted else scan.fragment.live_rows
        if skip >= rows:
            skip -= rows
            continue
        if skip or (take is not None and take < rows - skip):
            start, stop = scan.range_of_live(skip, take)
        else:
            start, stop = 0, scan.fragment.physical_rows
        yield from scan.pieces(start, stop)
        if take is not None:
            take -= min(take, rows - skip)
            if not take:
                return
        skip = 0


def _runs(found: Iterator[list[Matches]]) -> Iterator[tuple[FragmentScan, Rows]]:
    for matches in found:
        for match in matches:
            for rows in match.scan.windows(match.rows):
                yield match.scan, rows


def bundles(pieces: Iterable[Piece]) -> Iterator[Bundle]:
    """Small pieces together, so that a thread has something to do."""
    bundle: Bundle = []
    rows = 0
    for piece in pieces:
        bundle.append(piece)
        rows += piece[2] - piece[1]
        if rows >= _BUNDLE_ROWS or len(bundle) >= _BUNDLE_PIECES_MAX:
            yield bundle
            bundle, rows = [], 0
    if bundle:
        yield bundle


def rows_of(bundle: Bundle) -> Iterator[tuple[FragmentScan, Rows]]:
    """The rows of some pieces, batch by batch: one that was judged by a filter need not stay until the last is read."""
    return ((scan, rows) for scan, start, stop in bundle for rows in scan.read(start, stop))


def _read(part: Part) -> list[pa.RecordBatch]:
    if isinstance(part, SmallRun):
        return part.batches()
    assert not isinstance(part, ChosenPart), "rows are chosen by a filter"
    return [scan.plan.selection.shape(rows.batch) for scan, rows in rows_of(part)]


def _match(part: Part) -> list[Matches]:
    return part.matches() if isinstance(part, SmallRun | ChosenPart) else match_rows(rows_of(part))


def _count(part: Part) -> int:
    if isinstance(part, SmallRun):
        return part.count()
    if not isinstance(part, ChosenPart):
        return count_rows_that_match(rows_of(part))
    return len(part.rows) if part.judge is None else count_rows_that_match(part.read())


def _complete(run: tuple[FragmentScan, Rows]) -> list[pa.RecordBatch]:
    scan, rows = run
    return scan.complete(rows)


# ------------------------------------------------------------------------------------------------------- batches
def slices(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of at most ``size`` rows, without copying."""
    if batch.num_rows <= size:
        yield batch
        return
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def coalesced(batches: Iterable[pa.RecordBatch], rows: int = _BUNDLE_ROWS) -> Iterator[pa.RecordBatch]:
    """Small neighbours together, so that what has a price per batch is paid once; others as they are, without a copy.

    >>> three = [pa.record_batch({"id": [n]}) for n in range(3)]
    >>> [batch.num_rows for batch in coalesced(three, 2)]
    [2, 1]
    """
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows >= rows or batch.nbytes >= _COPIED_BYTES_MAX:
            yield from joined(waiting)
            waiting, count = [], 0
            yield batch
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield from joined(waiting)
            waiting, count = [], 0
    yield from joined(waiting)


def limited(batches: Iterator[pa.RecordBatch], skip: int, take: int | None) -> Iterator[pa.RecordBatch]:
    """Rows after the first ``skip``, at most ``take`` of them; the source is left as soon as there are enough."""
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        batch = batch.slice(skip, take)
        skip = 0
        yield batch
        if take is not None:
            take -= batch.num_rows
            if not take:
                return


def exact_batches(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly ``size``, the last one maybe smaller.

    Batches whose dictionaries do not fit into one are smaller, too.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= size:
            waiting.append(batch.slice(0, size - rows))
            batch = batch.slice(size - rows)
            yield from joined(waiting)
            waiting, rows = [], 0
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if waiting:
        yield from joined(waiting)
