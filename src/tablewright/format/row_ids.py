"""The stable row ids of one fragment: the id at each physical offset.

The ids are a sequence of segments (``segments.py``), one id per physical row, deleted rows included. No id comes twice
in a sequence. Fragments just written hold one range; updates and compaction slice, concatenate and select:

1. *concat* appends segments and merges adjacent ranges, as Lance does; *join* does so for any number of sequences in
   linear time and chooses their segments again, so that ids which come together again are ranges again;
2. *slice* keeps whole segments as they are; *select* and *without* work on runs of consecutive ids, so that ranges are
   never expanded, and encode the result in few bytes (``segment_choice.py``);
3. *position_of* searches each segment, or the sorted runs of all segments if there are many.

Input is not trusted: :func:`decode_row_ids` raises :class:`CorruptTable` for broken segments,
duplicates, and more ids than a fragment can have rows; with the fragment's row count it checks that too, before any
array of that size is made. A change looks at the same sequences many times, and so does the next one: long ones that
were decoded, and found good, are kept by their bytes.

Format: ``docs/format/row-ids.md#sequences``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.cache import CacheKind
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.many_ranges import ManyRanges, many_ranges
from tablewright.format.proto import rows_pb2
from tablewright.format.row_set import Offsets, RowSet, distinct_offsets
from tablewright.format.row_versions import VersionSequence, decode_versions, encode_versions
from tablewright.format.segment_choice import segments_of, segments_of_runs
from tablewright.format.segment_codec import segment_from_proto, segments_to_proto
from tablewright.format.segments import Array, NumberArray, Numbers, Range, Segment, SortedArray
from tablewright.format.wire import decode_message, encode_message

__all__ = [
    "RowIdSequence",
    "VersionSequence",
    "decode_row_ids",
    "decode_versions",
    "encode_row_ids",
    "encode_versions",
]

ROWS_MAX = 2**32
_KEPT_BYTES_MIN = 1024
_GROWTH = 4  # bytes in memory for each stored one, which are the key
_SEGMENTS_TO_ASK_EACH = 8


@dataclass(frozen=True, slots=True)
class RowIdSequence:
    """Row ids in the order of their rows. Invariant: no id comes twice.

    >>> ids = RowIdSequence.from_range(10, 14).concat(RowIdSequence.from_values([3, 1]))
    >>> ids.to_numpy().tolist(), ids.position_of([1, 10, 99]).tolist()
    ([10, 11, 12, 13, 3, 1], [5, 0, -1])
    """

    segments: tuple[Segment, ...] = ()

    @classmethod
    def from_range(cls, start: int, end: int) -> RowIdSequence:
        """The ids from ``start`` up to ``end`` (exclusive)."""
        return cls((Range(start, end),)) if start < end else cls()

    @classmethod
    def from_values(cls, values: npt.ArrayLike) -> RowIdSequence:
        """These ids in as few bytes as possible. An id that comes twice is InvalidRequest."""
        sequence = cls(segments_of(_numbers(values)))
        if _has_duplicates(sequence.segments):
            raise InvalidRequest("A row id comes twice: row ids are unique within a fragment.")
        return sequence

    def __len__(self) -> int:
        return sum(segment.count for segment in self.segments)

    def __bool__(self) -> bool:
        return any(segment.count for segment in self.segments)

    def to_numpy(self) -> Numbers:
        """All ids, one per row."""
        if not self.segments:
            return np.zeros(0, np.uint64)
        return np.concatenate([segment.values() for segment in self.segments])

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The lowest and the highest id, both included; ``None`` without ids."""
        found = [bounds for segment in self.segments if (bounds := segment.bounds()) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    # ------------------------------------------------------------------------------------------- cut, join, pick
    def concat(self, other: RowIdSequence) -> RowIdSequence:
        """These ids and then the others'. Precondition: they share no id, as sequences of one table do."""
        border = _adjacent_merged((*self.segments[-1:], *other.segments[:1]))
        return RowIdSequence((*self.segments[:-1], *border, *other.segments[1:]))

    @classmethod
    def join(cls, sequences: Iterable[RowIdSequence], gone: npt.NDArray[Any] | RowSet | None = None) -> RowIdSequence:
        """The ids of all sequences, one after the other, in few bytes; a single sequence stays as it is.

        Rows at the offsets ``gone`` among all of them are left out. Precondition: of the others, none share an id. A
        row that was updated keeps its id: its old place and its new one may be in two of the sequences.

        >>> parts = [RowIdSequence.from_range(at, at + 10) for at in range(0, 100_000, 10)]
        >>> RowIdSequence.join(parts).segments
        (Range(start=0, end=100000),)
        >>> RowIdSequence.join(parts, np.arange(20, 100_000)).segments
        (Range(start=0, end=20),)
        """
        every = list(sequences)
        if len(every) == 1:
            return every[0] if gone is None else every[0].without(gone)
        segments = tuple(segment for sequence in every for segment in sequence.segments if segment.count)
        if gone is not None and len(gone):
            return cls(segments).without(gone)
        if len(segments) <= 1:
            return cls(segments)
        firsts, lasts, owners = _runs(segments)
        return cls(segments_of_runs(firsts, lasts, owners[1:] != owners[:-1]))

    def slice(self, start: int, stop: int) -> RowIdSequence:
        """The ids of the rows from ``start`` up to ``stop`` (exclusive, and at most the end)."""
        cut: list[Segment] = []
        begin = 0
        for segment in self.segments:
            end = begin + segment.count
            low, high = max(start, begin) - begin, min(stop, end) - begin
            if low < high:
                cut += _part(segment, low, high)
            begin = end
        return RowIdSequence(tuple(_adjacent_merged(cut)))

    def select(self, rows: npt.NDArray[Any]) -> RowIdSequence:
        """The ids at the offsets ``rows``, in that order; or where the mask ``rows`` (one bool per row) is true."""
        if rows.dtype == np.bool_:
            if len(rows) != len(self):
                raise InvalidRequest(f"A mask of {len(rows)} rows does not fit {len(self)} row ids.")
            return self._select(np.flatnonzero(rows))
        offsets = rows.astype(np.int64)
        self._check_within(offsets)
        return self._select(offsets)

    def picked(self, rows: Offsets) -> RowIdSequence:
        """As :meth:`select`, without looking for a short form: for ids that are not stored as they are."""
        self._check_within(rows)
        numbers = self._at(rows)
        if not len(numbers):
            return RowIdSequence()
        ascends = bool(np.all(numbers[1:] > numbers[:-1]))
        return RowIdSequence(((SortedArray if ascends else Array)(NumberArray.of(numbers)),))

    def without(self, rows: npt.NDArray[Any] | RowSet) -> RowIdSequence:
        """The ids of all rows but ``rows``: offsets in any order, or a set such as a deletion vector.

        >>> RowIdSequence.from_range(0, 10**9).without(np.array([5])).segments
        (RangeWithHoles(start=0, end=1000000000, holes=NumberArray(width=16, base=5, data=b'\\x00\\x00')),)
        """
        gone = distinct_offsets(rows)
        self._check_within(gone)
        if not len(gone):
            return self
        firsts, lasts, owners = _runs(self.segments)
        begins = _begins(firsts, lasts)
        ends = begins + (lasts - firsts).astype(np.int64) + 1
        starts, stops = np.sort(np.concatenate([begins, gone + 1])), np.sort(np.concatenate([ends, gone]))
        full = starts < stops
        starts, stops = starts[full], stops[full]
        run = np.searchsorted(begins, starts, side="right") - 1
        low = firsts[run] + (starts - begins[run]).astype(np.uint64)
        high = low + (stops - starts - 1).astype(np.uint64)
        return RowIdSequence(segments_of_runs(low, high, owners[run[1:]] != owners[run[:-1]]))

    def _check_within(self, offsets: Offsets) -> None:
        if len(offsets) and not (int(offsets.min()) >= 0 and int(offsets.max()) < len(self)):
            raise InvalidRequest(f"A row offset lies outside 0..{len(self)}.")

    def _select(self, offsets: Offsets) -> RowIdSequence:
        if len(offsets) and int(offsets[-1]) - int(offsets[0]) + 1 == len(offsets) and np.all(np.diff(offsets) == 1):
            return self.slice(int(offsets[0]), int(offsets[-1]) + 1)
        return RowIdSequence.from_values(self._at(offsets))

    def _at(self, offsets: Offsets) -> Numbers:
        firsts, _, begins = self.runs()
        run = np.searchsorted(begins, offsets, side="right") - 1
        return firsts[run] + (offsets - begins[run]).astype(np.uint64)

    def runs(self) -> tuple[Numbers, Numbers, Offsets]:
        """Runs of consecutive ids: first id, last id (included), and offset of the first."""
        firsts, lasts, _ = _runs(self.segments)
        return firsts, lasts, _begins(firsts, lasts)

    # --------------------------------------------------------------------------------------------------- questions
    def position_of(self, ids: npt.ArrayLike) -> Offsets:
        """The row offset of each id; -1 for those that are not here."""
        numbers = _numbers(ids)
        if len(self.segments) > _SEGMENTS_TO_ASK_EACH:
            return self._position_by_runs(numbers)
        found = np.full(len(numbers), -1, np.int64)
        begin = 0
        for segment in self.segments:
            positions = segment.positions(numbers)
            found = np.where(positions >= 0, positions + begin, found)
            begin += segment.count
        return found

    def _position_by_runs(self, numbers: Numbers) -> Offsets:
        firsts, lasts, begins = self.runs()
        if not len(firsts):
            return np.full(len(numbers), -1, np.int64)
        order = np.argsort(firsts, kind="stable")
        run = order[np.maximum(np.searchsorted(firsts[order], numbers, side="right") - 1, 0)]
        inside = (numbers >= firsts[run]) & (numbers <= lasts[run])
        return np.where(inside, begins[run] + (numbers - firsts[run]).astype(np.int64), -1)

    def contains(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """One bool per given id: whether it is here."""
        return self.position_of(ids) >= 0


def _numbers(values: npt.ArrayLike) -> Numbers:
    numbers = np.asarray(values)
    if numbers.dtype.kind == "f" and isinstance(values, list) and all(isinstance(value, int) for value in values):
        numbers = np.array(values, object)  # numpy makes floats of a list with numbers below and above 2**63
    if numbers.size and (numbers.dtype.kind not in "iuO" or not 0 <= numbers.min() <= numbers.max() < 2**64):
        raise InvalidRequest("Row ids are whole numbers from 0 up to 2**64.")
    return numbers.astype(np.uint64)


def _runs(segments: Sequence[Segment]) -> tuple[Numbers, Numbers, Offsets]:
    """Runs of consecutive numbers: first, last (included), and the position of the segment each is in."""
    parts = [segment.intervals() for segment in segments]
    none = np.zeros(0, np.uint64)
    firsts = np.concatenate([none, *(first for first, _ in parts)])
    lasts = np.concatenate([none, *(last for _, last in parts)])
    return firsts, lasts, np.repeat(np.arange(len(parts)), [len(first) for first, _ in parts])


def _begins(firsts: Numbers, lasts: Numbers) -> Offsets:
    """The offset of the first number of each run."""
    sizes = (lasts - firsts).astype(np.int64) + 1
    return np.cumsum(sizes) - sizes


def _adjacent_merged(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, where ranges that continue each other are one."""
    last: Segment | None = None
    for segment in segments:
        if isinstance(last, Range) and isinstance(segment, Range) and last.end == segment.start:
            last = Range(last.start, segment.end)
            continue
        if last is not None:
            yield last
        last = segment
    if last is not None:
        yield last


def _part(segment: Segment, low: int, high: int) -> tuple[Segment, ...]:
    """The numbers at some positions of a segment; the others are not expanded."""
    if isinstance(segment, Range):
        return (Range(segment.start + low, segment.start + high),)
    if (low, high) == (0, segment.count):
        return (segment,)
    firsts, lasts = segment.intervals()
    ends = np.cumsum((lasts - firsts).astype(np.int64) + 1)
    first, last = np.searchsorted(ends, [low, high - 1], side="right").tolist()
    starts, stops = firsts[first : last + 1].copy(), lasts[first : last + 1].copy()
    begin = int(ends[first]) - (int(lasts[first]) - int(firsts[first]) + 1)
    starts[0] += np.uint64(low - begin)
    stops[-1] -= np.uint64(int(ends[last]) - high)
    return segments_of_runs(starts, stops)


def _has_duplicates(segments: Sequence[Segment]) -> bool:
    """Whether a number comes twice. Works on runs, whose number is bounded by the stored bytes."""
    if not segments or (len(segments) == 1 and not isinstance(segments[0], Array | ManyRanges)):
        return False  # all other shapes ascend
    runs = [segment.intervals() for segment in segments]
    firsts = np.concatenate([first for first, _ in runs])
    lasts = np.concatenate([last for _, last in runs])
    if np.all(firsts[1:] > lasts[:-1]):
        return False
    order = np.argsort(firsts, kind="stable")
    return bool(np.any(firsts[order][1:] <= lasts[order][:-1]))


# --------------------------------------------------------------------------------------------------------------- bytes
_sequences = CacheKind[RowIdSequence]("row ids")


def encode_row_ids(sequence: RowIdSequence) -> bytes:
    """The bytes of a sequence; those that were decoded come back as they were."""
    return encode_message(
        "row ids",
        lambda: rows_pb2.RowIdSequence(
            segments=[message for part in sequence.segments for message in segments_to_proto(part)]
        ),
    )


def _decoded(data: bytes, path: str) -> RowIdSequence:
    message = decode_message(rows_pb2.RowIdSequence, data, path, "the row ids")
    try:
        return RowIdSequence(tuple(segment_from_proto(part) for part in message.segments))
    except ValueError as error:
        raise CorruptTable(path, (f"row ids: {error}",)) from error


def decode_row_ids(data: bytes, path: str, expected_rows: int | None = None) -> RowIdSequence:
    """The sequence in ``data``; :class:`CorruptTable` for anything else, or for another count than expected."""
    known = _sequences.find(data) if len(data) >= _KEPT_BYTES_MIN else None
    if known is not None:
        _check_count(known, path, expected_rows)
        return known
    ranges = many_ranges(data)
    sequence = _decoded(data, path) if ranges is None else RowIdSequence((ranges,))
    _check_count(sequence, path, expected_rows)
    if _has_duplicates(sequence.segments):
        raise CorruptTable(path, ("a row id comes twice in one fragment",))
    if len(data) >= _KEPT_BYTES_MIN:
        _sequences.keep(data, sequence, _GROWTH * len(data))
    return sequence


def _check_count(sequence: RowIdSequence, path: str, expected_rows: int | None) -> None:
    rows = sum(segment.count for segment in sequence.segments)
    if rows > ROWS_MAX if expected_rows is None else rows != expected_rows:
        limit = f"at most {ROWS_MAX}" if expected_rows is None else str(expected_rows)
        raise CorruptTable(path, (f"there are {rows} row ids for {limit} rows",))
