"""Finding the rows of fragments that have a key of the source: tasks that read key columns and nothing else.

1. The key columns of some fragments are read in pieces; each piece's keys are looked up at once (:mod:`..keys`). Where
   an index or a shuffle has found the pairs already, nothing is looked up.
2. Where clauses have conditions, their columns are read for the pairs that were found, and for those only.
3. Where rows that match nothing may change or go, the columns of these conditions are read along with the keys.

What comes back are offsets and positions, as arrays.

Tests: ``tests/unit/operations/merge_insert/match/test_pairing.py``, ``tests/unit/api/test_merge_insert.py``,
``tests/unit/operations/merge_insert/test_reuse.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.prefetch import spread
from tablewright.data.read import Rows, no_columns
from tablewright.data.small import SmallRows
from tablewright.data.task_context import TaskContext
from tablewright.expressions.filters import Predicate
from tablewright.format.fragment import FragmentList
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import KeyTable
from tablewright.operations.merge_insert.match.condition import MatchConditions, chosen_clauses
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, PairOffsets, Pairs
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedKeys, SharedSource, key_table, opened
from tablewright.reading.chosen import ChosenPart
from tablewright.reading.fragment import FragmentScan
from tablewright.reading.run import Part, joined_runs, parts_of, rows_of
from tablewright.reading.scan_task import ScanTask
from tablewright.reading.small import SmallRun
from tablewright.world import World

__all__ = ["PairingResult", "PairingTask", "find_pairs", "offsets_of", "run_pairing_task"]

_BUNDLE_ROWS_MIN, _BUNDLE_ROWS_MAX, _BUNDLE_PARTS_MAX = 8192, 1 << 20, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingTask:
    """Some fragments to be matched, as a message.

    ``known`` are pairs that were found already, by fragment id; these fragments are not searched, or none is if there
    are no ``keys``. ``by_source`` says whether rows without a source row are wanted, ``by_source_conditions`` which.
    """

    scan: ScanTask
    key: KeyColumns
    keys: KeyTable | SharedKeys | None
    known: Mapping[int, Pairs] = field(default_factory=dict)
    conditions: MatchConditions | None = None
    source: KeptSource | SharedSource | None = None
    by_source: bool = False
    by_source_conditions: tuple[Predicate | None, ...] = (None,)


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
    fragments = (
        task.scan.fragments if isinstance(task.scan.fragments, FragmentList) else FragmentList.of(task.scan.fragments)
    )
    reads, ids = task.scan.reads, fragments.ids.tolist()
    looks_at_all = task.by_source or not task.known
    searched = range(len(ids)) if looks_at_all else [place for place, id in enumerate(ids) if id not in task.known]
    looked_up = _Looked()
    if searched:
        finder = _Finder(task, None if task.keys is None else key_table(task.keys, world))
        some = fragments if len(searched) == len(ids) else fragments.at(searched)
        first_rows = [task.scan.first_rows[place] for place in searched]
        parts = parts_of(context, reads, some, first_rows, task.scan.chosen, all_wanted=True)
        looked_up.add(spread(finder.find, finder.parts(parts)))
    judge = None if task.conditions is None else _Judge(task.conditions, task, world)
    shapes = reads.shapes()
    matches, rows_read, bytes_read = [], looked_up.rows, looked_up.nbytes
    told = {*looked_up.by_fragment, *task.known}  # most fragments have nothing to say
    for place, id in [(place, id) for place, id in enumerate(ids) if task.by_source or id in told]:
        own = looked_up.by_fragment.get(id, ())
        known = task.known.get(id)
        if not own and not known and not task.by_source:
            continue
        pairs = known or Pairs.joined(part.pairs for part in own)
        matched = FragmentMatches(fragment_id=id, pairs=pairs, unmatched=_unmatched(task, own))
        if judge is not None and len(pairs):
            scan = FragmentScan(context, reads, shapes, fragments[place], task.scan.first_rows[place])
            matched, nbytes = judge.judged(scan, matched)
            rows_read, bytes_read = rows_read + len(pairs), bytes_read + nbytes
        if len(pairs) or task.by_source:
            matches.append(matched)
    return PairingResult(found=tuple(matches), rows_read=rows_read, bytes_read=bytes_read)


def _unmatched(task: PairingTask, parts: Sequence[_Part]) -> tuple[RowSet, ...] | None:
    if not task.by_source:
        return None
    return tuple(
        RowSet.of(np.concatenate([part.unmatched[number] for part in parts])) if parts else RowSet()
        for number in range(len(task.by_source_conditions))
    )


# -------------------------------------------------------------------------------------------------------------- finding
@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What was found in a piece: pairs, and rows without a source row, by clause, where these are wanted."""

    fragment_id: int
    pairs: Pairs
    unmatched: tuple[PairOffsets, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What was found in a bundle, and what was read for it."""

    parts: list[_Part]
    rows: int = 0
    nbytes: int = 0


class _Looked:
    """All that was found, by fragment id."""

    def __init__(self) -> None:
        self.by_fragment: dict[int, list[_Part]] = {}
        self.rows = self.nbytes = 0

    def add(self, found: Iterable[_Found]) -> None:
        for each in found:
            self.rows, self.nbytes = self.rows + each.rows, self.nbytes + each.nbytes
            for part in each.parts:
                self.by_fragment.setdefault(part.fragment_id, []).append(part)


class _Finder:
    """Looks up the keys of pieces; without keys, the pairs are known."""

    def __init__(self, task: PairingTask, keys: KeyTable | None) -> None:
        self._task, self._keys = task, keys

    def parts(self, parts: Iterable[Part]) -> Iterator[list[Part]]:
        """Bundles of parts with enough rows for a lookup to pay.

        Neighbouring runs of a bundle are joined, so that a store that answers slowly gets more requests at a time.
        """
        price = 0 if self._keys is None else self._keys.rows_per_call
        enough = min(_BUNDLE_ROWS_MAX, max(_BUNDLE_ROWS_MIN, price))
        bundle: list[Part] = []
        rows = 0
        for part in parts:
            bundle.append(part)
            rows += _rows_of(part)
            if rows >= enough or len(bundle) >= _BUNDLE_PARTS_MAX:
                yield joined_runs(bundle)
                bundle, rows = [], 0
        if bundle:
            yield joined_runs(bundle)

    def find(self, bundle: Sequence[Part]) -> _Found:
        """The pairs of a bundle, piece by piece."""
        pieces = [each for part in bundle for each in _read(part)]
        if not pieces:
            return _Found([])
        if self._keys is None:
            answers = [self._known(piece) for piece in pieces]
        else:
            columns = zip(*(self._task.key.of(piece.batch) for piece in pieces), strict=True)
            positions = self._keys.find([pa.chunked_array(arrays) for arrays in columns])
            answers = np.split(positions, np.cumsum([len(piece) for piece in pieces])[:-1])
        parts = [part for piece, answer in zip(pieces, answers, strict=True) for part in self._parts(piece, answer)]
        return _Found(parts, sum(map(len, pieces)), sum(int(piece.batch.nbytes) for piece in pieces))

    def _known(self, piece: _Read) -> np.ndarray:
        answer = np.full(len(piece), -1, np.int64)
        for id, places in piece.by_fragment(np.arange(len(piece))):
            pairs = self._task.known.get(id, Pairs())
            _, own, found = np.intersect1d(
                piece.offsets_at(places), pairs.offsets, assume_unique=True, return_indices=True
            )
            answer[places[own]] = pairs.positions[found]
        return answer

    def _parts(self, piece: _Read, positions: np.ndarray) -> Iterator[_Part]:
        hits = np.flatnonzero(positions >= 0)
        clauses = len(self._task.by_source_conditions)
        none = (Pairs().offsets,) * clauses
        for id, places in piece.by_fragment(hits) if len(hits) else ():
            yield _Part(id, Pairs(piece.offsets_at(places), positions[places]), none)
        if self._task.by_source:
            for number, unmatched in enumerate(self._unmatched(piece.batch, positions)):
                for id, places in piece.by_fragment(unmatched):
                    offsets = piece.offsets_at(places)
                    yield _Part(id, Pairs(), (*none[:number], offsets, *none[number + 1 :]))

    def _unmatched(self, batch: pa.RecordBatch, positions: np.ndarray) -> list[np.ndarray]:
        missing, conditions = np.flatnonzero(positions < 0), self._task.by_source_conditions
        if conditions == (None,) or not len(missing):
            return [missing] * len(conditions)
        rows = batch if len(missing) == batch.num_rows else batch.take(pa.array(missing))
        chosen = chosen_clauses(conditions, rows)
        return [missing[chosen == number] for number in range(len(conditions))]


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Rows that were read: of one fragment, or of a run of small ones."""

    batch: pa.RecordBatch
    by_fragment: Callable[[np.ndarray], Iterable[tuple[int, np.ndarray]]]
    offsets_at: Callable[[np.ndarray], PairOffsets]

    def __len__(self) -> int:
        return int(self.batch.num_rows)


def _read(part: Part) -> Iterator[_Read]:
    if isinstance(part, SmallRun):
        run = part.read()
        if len(run):
            yield _Read(
                run.batch, partial(_by_fragment, part, run), lambda places: run.offsets[places].astype(np.uint32)
            )
        return
    for scan, rows in part.read() if isinstance(part, ChosenPart) else rows_of(part):
        yield _Read(rows.batch, partial(_of_one, scan.fragment.id), partial(_offsets_at, rows))


def _by_fragment(part: SmallRun, run: SmallRows, places: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    ids = part.scan.fragments.ids
    return ((int(ids[position]), own) for position, own in run.by_fragment(places))


def _of_one(fragment_id: int, places: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return [(fragment_id, places)] if len(places) else []


def _rows_of(part: Part) -> int:
    if isinstance(part, SmallRun):
        return part.rows
    return len(part.rows) if isinstance(part, ChosenPart) else sum(stop - start for _, start, stop in part)


def offsets_of(rows: Rows) -> PairOffsets:
    """The offsets of rows in their fragment, ascending."""
    return _offsets_at(rows, np.arange(len(rows)))


def _offsets_at(rows: Rows, places: np.ndarray) -> PairOffsets:
    return rows.offsets_at(places).astype(np.uint32)


# -------------------------------------------------------------------------------------------------------------- judging
class _Judge:
    """Asks the conditions about pairs."""

    def __init__(self, conditions: MatchConditions, task: PairingTask, world: World) -> None:
        assert task.source is not None
        self._conditions, self._source = conditions, opened(task.source, world)

    def judged(self, scan: FragmentScan, matched: FragmentMatches) -> tuple[FragmentMatches, int]:
        """The matches with those pairs only that a clause takes; and how many bytes were read for it."""
        pairs = matched.pairs
        offsets = pairs.offsets.astype(np.int64)
        windows = list(self._windows(scan, Rows(no_columns(len(offsets)), chosen=offsets)))
        ends = np.cumsum([len(rows) for rows in windows])
        answers = spread(
            lambda place: self._answer(scan, *place), zip(windows, np.split(pairs.positions, ends[:-1]), strict=True)
        )
        chosen = np.concatenate([answer for answer, _ in answers])
        passes, one = chosen >= 0, len(self._conditions.items) == 1
        judged = FragmentMatches(
            fragment_id=matched.fragment_id,
            pairs=Pairs(pairs.offsets[passes], pairs.positions[passes], None if one else chosen[passes]),
            passed_over=pairs.where(~passes),
            unmatched=matched.unmatched,
        )
        return judged, sum(nbytes for _, nbytes in answers)

    def _windows(self, scan: FragmentScan, rows: Rows) -> Iterator[Rows]:
        step = self._source.rows_per_batch_of(self._conditions.source_columns)
        for window in scan.windows(rows):
            for begin in range(0, len(window), step):
                yield window.slice(begin, min(len(window), begin + step))

    def _answer(self, scan: FragmentScan, rows: Rows, positions: np.ndarray) -> tuple[np.ndarray, int]:
        (target,) = scan.complete(rows)
        columns = self._conditions.source_columns
        source = self._source.take(positions, columns) if columns else no_columns(len(positions))
        return self._conditions.choose(source, target), int(target.nbytes)
