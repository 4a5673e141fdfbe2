"""Finding the rows of fragments that have a key of the source: tasks that read key columns and nothing else.

1. The key columns of some fragments are read in pieces; each piece's keys are looked up at once (:mod:`..keys`). Where
   an index or a shuffle has found the pairs already, nothing is looked up.
2. Where the update has a condition, its columns are read for the pairs that were found, and for those only.
3. Where rows that match nothing may be deleted, the columns of that condition are read along with the keys.

What comes back are offsets and positions, as arrays.

Tests: ``tests/unit/api/test_merge_insert.py``, ``tests/unit/operations/merge_insert/test_reuse.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.prefetch import spread
from tablewright.data.read import Rows, no_columns
from tablewright.expressions.filters import Predicate
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import KeyTable
from tablewright.operations.merge_insert.match.condition import MatchCondition, true_where
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, PairOffsets, Pairs
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedKeys, SharedSource, key_table, opened
from tablewright.reading.context import TaskContext
from tablewright.reading.fragment import FragmentScan
from tablewright.reading.run import fragment_scans
from tablewright.reading.scan_task import ScanTask
from tablewright.world import World

__all__ = ["PairingResult", "PairingTask", "find_pairs", "offsets_of", "run_pairing_task"]

Piece = tuple[FragmentScan, int, int]

_BUNDLE_ROWS_MIN, _BUNDLE_ROWS_MAX, _BUNDLE_PIECES_MAX = 8192, 1 << 20, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingTask:
    """Some fragments to be matched, as a message.

    ``known`` are pairs that were found already, by fragment id; these fragments are not searched, or none is if there
    are no ``keys``. ``by_source`` says whether rows without a source row are wanted, ``by_source_condition`` which.
    """

    scan: ScanTask
    key: KeyColumns
    keys: KeyTable | SharedKeys | None
    known: Mapping[int, Pairs] = field(default_factory=dict)
    condition: MatchCondition | None = None
    source: KeptSource | SharedSource | None = None
    by_source: bool = False
    by_source_condition: Predicate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingResult:
    """What a task found, and what it read to find it."""

    found: tuple[FragmentMatches, ...]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it wrote: none."""
        return ()


def run_pairing_task(task: PairingTask, world: World) -> PairingResult:
    """Match the fragments of a task, on a worker."""
    return find_pairs(task, TaskContext(world, task.scan.base_paths), world)


def find_pairs(task: PairingTask, context: ReadContext, world: World) -> PairingResult:
    """Match the fragments of a task; those with nothing to say are left out, unless the rest of their rows matters."""
    scans = tuple(fragment_scans(context, task.scan.reads, task.scan.fragments, task.scan.first_rows))
    searched = [scan for scan in scans if task.by_source or scan.fragment.id not in task.known]
    parts: list[_Part] = []
    if searched:
        finder = _Finder(task, None if task.keys is None else key_table(task.keys, world))
        parts = [part for found in spread(finder.find, finder.bundles(searched)) for part in found]
    judge = None if task.condition is None else _Judge(task.condition, task, world)
    matches, rows_read, bytes_read = [], sum(part.rows for part in parts), sum(part.nbytes for part in parts)
    by_fragment: dict[int, list[_Part]] = {}
    for part in parts:
        by_fragment.setdefault(part.fragment_id, []).append(part)
    for scan in scans:
        own = by_fragment.get(scan.fragment.id, [])
        pairs = task.known.get(scan.fragment.id) or Pairs.joined(part.pairs for part in own)
        matched = FragmentMatches(fragment_id=scan.fragment.id, pairs=pairs, unmatched=_unmatched(task, own))
        if judge is not None and len(pairs):
            matched, nbytes = judge.judged(scan, matched)
            rows_read, bytes_read = rows_read + len(pairs), bytes_read + nbytes
        if len(pairs) or task.by_source:
            matches.append(matched)
    return PairingResult(found=tuple(matches), rows_read=rows_read, bytes_read=bytes_read)


def _unmatched(task: PairingTask, parts: Sequence[_Part]) -> RowSet | None:
    if not task.by_source:
        return None
    return RowSet.of(np.concatenate([part.unmatched for part in parts])) if parts else RowSet()


# -------------------------------------------------------------------------------------------------------------- finding
@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What was found in a piece."""

    fragment_id: int
    pairs: Pairs
    unmatched: PairOffsets
    rows: int
    nbytes: int


class _Finder:
    """Looks up the keys of pieces; without keys, the pairs are known."""

    def __init__(self, task: PairingTask, keys: KeyTable | None) -> None:
        self._task, self._keys = task, keys

    def bundles(self, scans: Iterable[FragmentScan]) -> Iterator[list[Piece]]:
        """Pieces together, as many as make a lookup worth its price."""
        price = 0 if self._keys is None else self._keys.rows_per_call
        enough = min(_BUNDLE_ROWS_MAX, max(_BUNDLE_ROWS_MIN, price))
        bundle: list[Piece] = []
        for piece in (piece for scan in scans for piece in scan.pieces()):
            bundle.append(piece)
            rows = sum(stop - start for _, start, stop in bundle)
            if rows >= enough or len(bundle) >= _BUNDLE_PIECES_MAX:
                yield bundle
                bundle = []
        if bundle:
            yield bundle

    def find(self, bundle: Sequence[Piece]) -> list[_Part]:
        """The pairs of a bundle, piece by piece."""
        found = [(scan, rows) for scan, start, stop in bundle for rows in scan.read(start, stop)]
        if not found:
            return []
        if self._keys is None:
            return [self._part(scan, rows, self._known(scan, rows)) for scan, rows in found]
        columns = zip(*(self._task.key.of(rows.batch) for _, rows in found), strict=True)
        positions = self._keys.find([pa.chunked_array(arrays) for arrays in columns])
        ends = np.cumsum([len(rows) for _, rows in found])
        parts = np.split(positions, ends[:-1])
        return [self._part(scan, rows, part) for (scan, rows), part in zip(found, parts, strict=True)]

    def _known(self, scan: FragmentScan, rows: Rows) -> np.ndarray:
        pairs, offsets = self._task.known.get(scan.fragment.id, Pairs()), offsets_of(rows)
        positions = np.full(len(offsets), -1, np.int64)
        _, places, own = np.intersect1d(offsets, pairs.offsets, assume_unique=True, return_indices=True)
        positions[places] = pairs.positions[own]
        return positions

    def _part(self, scan: FragmentScan, rows: Rows, positions: np.ndarray) -> _Part:
        hits = np.flatnonzero(positions >= 0)
        pairs = Pairs(_offsets_at(rows, hits), positions[hits])
        unmatched = self._unmatched(rows, positions) if self._task.by_source else Pairs().offsets
        return _Part(scan.fragment.id, pairs, unmatched, len(rows), rows.batch.nbytes)

    def _unmatched(self, rows: Rows, positions: np.ndarray) -> PairOffsets:
        missing = np.flatnonzero(positions < 0)
        condition = self._task.by_source_condition
        if condition is not None and len(missing):
            batch = rows.batch if len(missing) == len(rows) else rows.batch.take(pa.array(missing))
            missing = missing[true_where(condition, batch)]
        return _offsets_at(rows, missing)


def offsets_of(rows: Rows) -> PairOffsets:
    """The offsets of rows in their fragment, ascending."""
    return _offsets_at(rows, np.arange(len(rows)))


def _offsets_at(rows: Rows, places: np.ndarray) -> PairOffsets:
    return rows.offsets_at(places).astype(np.uint32)


# -------------------------------------------------------------------------------------------------------------- judging
class _Judge:
    """Asks the condition about pairs."""

    def __init__(self, condition: MatchCondition, task: PairingTask, world: World) -> None:
        assert task.source is not None
        self._condition, self._source = condition, opened(task.source, world)

    def judged(self, scan: FragmentScan, matched: FragmentMatches) -> tuple[FragmentMatches, int]:
        """The matches with those pairs only that satisfy the condition; and how many bytes were read for it."""
        pairs = matched.pairs
        offsets = pairs.offsets.astype(np.int64)
        windows = list(self._windows(scan, Rows(no_columns(len(offsets)), chosen=offsets)))
        ends = np.cumsum([len(rows) for rows in windows])
        answers = spread(
            lambda place: self._answer(scan, *place), zip(windows, np.split(pairs.positions, ends[:-1]), strict=True)
        )
        passes = np.concatenate([answer for answer, _ in answers])
        judged = FragmentMatches(
            fragment_id=matched.fragment_id,
            pairs=pairs.where(passes),
            passed_over=pairs.where(~passes),
            unmatched=matched.unmatched,
        )
        return judged, sum(nbytes for _, nbytes in answers)

    def _windows(self, scan: FragmentScan, rows: Rows) -> Iterator[Rows]:
        step = self._source.rows_per_batch_of(self._condition.source_columns)
        for window in scan.windows(rows):
            for begin in range(0, len(window), step):
                yield window.slice(begin, min(len(window), begin + step))

    def _answer(self, scan: FragmentScan, rows: Rows, positions: np.ndarray) -> tuple[np.ndarray, int]:
        (target,) = scan.complete(rows)
        columns = self._condition.source_columns
        source = self._source.take(positions, columns) if columns else no_columns(len(positions))
        return self._condition.mask(source, target), int(target.nbytes)
