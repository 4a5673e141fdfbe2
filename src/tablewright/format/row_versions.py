"""Row versions of a fragment (created at, last updated at), run-length encoded.

A run is as long as its span has numbers; the numbers themselves mean nothing. Scattered updates make a run of nearly
every row, so runs are kept as columns (number of rows, version), and both directions are vectorised:

- *encode*: runs are coalesced, and a span is the range of row offsets that the run covers. Where runs are many, every
  span begins at 0, as Lance writes it after a compaction: that saves up to 8 bytes each. All runs are written to one
  buffer: the offset of each part is the prefix sum of the sizes before it.
- *decode*: the columnar scanner of ``wire.py`` reads run, span and range in three steps. Only spans of other shapes
  (Lance writes them after a compaction) are decoded one by one.

What was decoded encodes to the same bytes again, spans included.

Format: ``docs/format/row-ids.md#sequences``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.proto import rows_pb2
from tablewright.format.row_set import Offsets, RowSet, distinct_offsets
from tablewright.format.segment_codec import segment_from_proto
from tablewright.format.segments import Numbers
from tablewright.format.wire import as_buffer, decode_message, field_sizes, put_fields, scan

__all__ = ["VersionSequence", "check_versions", "decode_versions", "encode_versions"]

Column = npt.NDArray[Any]  # of whole numbers, as narrow as they are small

_ROWS_MAX = 2**32
_RUNS_BY_OFFSET_MAX = 64
_ONE_BYTE = 0x80
_FEW_RUNS = 4
_MANY_BYTES = 1024
_SHORT_RUN = bytes.fromhex("0a080a040a0210001000")  # a run of 0 rows of version 0: bytes 7 and 9
_BLOCK_RUNS = 4096
_SHORT_WORDS = np.frombuffer(_SHORT_RUN * _BLOCK_RUNS, "<u2")
_SHORT_MASK = np.frombuffer(bytes.fromhex("ffffffffffffff80ff80") * _BLOCK_RUNS, "<u2")  # without numbers below 128
_SPAN, _VERSION = 1, 2  # fields of a run
_RANGE, _START, _END = 1, 1, 2  # of a segment, and of a range in it


@dataclass(frozen=True, slots=True, eq=False)
class VersionSequence:
    """One version per row, in the order of the rows. Make it with :meth:`constant` or :meth:`from_values`.

    Both columns have the narrowest type that was known to fit: where a run is a row, memory bandwidth is the cost.

    >>> versions = VersionSequence.constant(4, 1).patched(np.array([2]), 7)
    >>> versions.runs, versions.to_numpy().tolist()
    (((2, 1), (1, 7), (1, 1)), [1, 1, 7, 1])
    """

    _counts: Column = field(default_factory=lambda: np.array([], np.int64))
    _versions: Column = field(default_factory=lambda: np.array([], np.uint64))
    _stored: bytes | None = field(default=None, repr=False)  # what it was decoded from

    def __post_init__(self) -> None:
        self._counts.flags.writeable = self._versions.flags.writeable = False

    @classmethod
    def constant(cls, count: int, version: int) -> VersionSequence:
        """``count`` rows of one version."""
        return cls.from_runs([(count, version)])

    @classmethod
    def from_runs(cls, runs: Iterable[tuple[int, int]]) -> VersionSequence:
        """Number of rows and version of each run; neighbours of one version become one run."""
        pairs = list(runs)
        counts, versions = [count for count, _ in pairs], [version for _, version in pairs]
        return _coalesced(np.array(counts, np.int64), np.array(versions, np.uint64))

    @classmethod
    def from_values(cls, versions: npt.ArrayLike) -> VersionSequence:
        """The runs of one version per row."""
        values = np.asarray(versions).astype(np.uint64, copy=False)
        if not len(values):
            return cls()
        ends = np.flatnonzero(values[1:] != values[:-1])
        bounds = np.empty(len(ends) + 2, np.int64)
        bounds[0], bounds[-1] = 0, len(values)
        np.add(ends, 1, out=bounds[1:-1])
        return cls(bounds[1:] - bounds[:-1], values[bounds[:-1]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionSequence):
            return NotImplemented
        return np.array_equal(self._counts, other._counts) and np.array_equal(self._versions, other._versions)

    def __hash__(self) -> int:
        return hash((self.counts.tobytes(), self.versions.tobytes()))

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def counts(self) -> Offsets:
        """How many rows each run has."""
        return self._counts.astype(np.int64, copy=False)

    @property
    def versions(self) -> Numbers:
        """The version of each run."""
        return self._versions.astype(np.uint64, copy=False)

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Number of rows and version of each run."""
        return tuple(zip(self.counts.tolist(), self.versions.tolist(), strict=True))

    def to_numpy(self) -> Numbers:
        """One version per row."""
        return np.repeat(self.versions, self.counts)

    def at(self, offsets: npt.NDArray[Any]) -> Numbers:
        """The version of each row at ``offsets``, which lie within the sequence, in that order."""
        return self.versions[np.searchsorted(np.cumsum(self.counts), offsets, side="right")]

    def concat(self, other: VersionSequence) -> VersionSequence:
        """The rows of this sequence and then the others."""
        return VersionSequence.join((self, other))

    @classmethod
    def join(cls, sequences: Iterable[VersionSequence]) -> VersionSequence:
        """The rows of all sequences, one after the other; neighbours of one version become one run.

        >>> VersionSequence.join(VersionSequence.constant(10, 1 + at // 5000) for at in range(10_000)).runs
        ((50000, 1), (50000, 2))
        """
        parts = list(sequences)
        counts = np.concatenate([np.zeros(0, np.int64), *(each.counts for each in parts)])
        return _coalesced(counts, np.concatenate([np.zeros(0, np.uint64), *(each.versions for each in parts)]))

    def slice(self, start: int, stop: int) -> VersionSequence:
        """The rows from ``start`` up to ``stop`` (exclusive, and at most the end)."""
        ends = np.cumsum(self.counts).clip(max(start, 0), max(start, stop, 0))
        return _coalesced(np.diff(ends, prepend=max(start, 0)), self.versions)

    def select(self, rows: npt.NDArray[Any]) -> VersionSequence:
        """The versions at the offsets ``rows``, in that order; or where the mask ``rows`` is true."""
        return VersionSequence.from_values(self.at(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows))

    def without(self, rows: npt.NDArray[Any] | RowSet) -> VersionSequence:
        """All rows but ``rows``: offsets in any order, or a set such as a deletion vector.

        >>> VersionSequence.from_runs([(3, 1), (1, 7), (2, 1)]).without(RowSet.of([3, 5])).runs
        ((4, 1),)
        """
        gone = distinct_offsets(rows)
        if not len(gone):
            return self
        ends = np.cumsum(self.counts)
        if not (int(gone[0]) >= 0 and int(gone[-1]) < int(ends[-1] if len(ends) else 0)):
            raise InvalidRequest(f"A row offset lies outside 0..{len(self)}.")
        left = ends - np.searchsorted(gone, ends, side="left")
        return _coalesced(np.diff(left, prepend=0), self.versions)

    def patched(self, offsets: npt.NDArray[Any] | RowSet, version: int) -> VersionSequence:
        """The same rows, those at ``offsets`` with another version."""
        rows = len(self)
        if isinstance(offsets, RowSet):
            if (last := offsets.last) is not None and last >= rows:
                raise InvalidRequest(f"A row offset lies outside 0..{rows}.")
            offsets = np.frombuffer(offsets.bitmap.to_array(), np.uint32)
        if len(offsets) and not (int(offsets.min()) >= 0 and int(offsets.max()) < rows):
            raise InvalidRequest(f"A row offset lies outside 0..{rows}.")
        if len(self._versions) == 1 and version != int(self._versions[0]) and _ascend(offsets):
            return _alternating(offsets, rows, int(self._versions[0]), version)
        values = self.to_numpy()
        values[offsets.astype(np.int64)] = version
        return VersionSequence.from_values(values)


def _ascend(offsets: Column) -> bool:
    return bool((offsets[1:] > offsets[:-1]).all())


def _alternating(offsets: Column, rows: int, old: int, new: int) -> VersionSequence:
    """``rows`` rows of version ``old``, those at ``offsets`` (ascending) of version ``new``: runs alternate."""
    if not len(offsets):
        return VersionSequence.constant(rows, old)
    kind = np.uint8 if max(old, new) < _ONE_BYTE else np.uint64
    breaks = np.flatnonzero(offsets[1:] - offsets[:-1] != 1)
    begins, ends = np.append(offsets[:1], offsets[breaks + 1]), np.append(offsets[breaks], offsets[-1:]) + 1
    counts = np.empty(2 * len(begins) + 1, np.uint32)
    counts[0], counts[2:-1:2], counts[-1] = begins[0], begins[1:] - ends[:-1], rows - int(ends[-1])
    counts[1::2] = ends - begins
    versions = np.full(len(counts), old, kind)
    versions[1::2] = new
    there = slice(0 if counts[0] else 1, None if counts[-1] else -1)
    return VersionSequence(counts[there], versions[there])


def _coalesced(counts: Offsets, versions: Numbers) -> VersionSequence:
    full = counts > 0
    counts, versions = counts[full], versions[full]
    if not len(counts):
        return VersionSequence()
    begins = np.concatenate([[0], np.flatnonzero(versions[1:] != versions[:-1]) + 1]).astype(np.int64)
    return VersionSequence(np.add.reduceat(counts, begins), versions[begins])


# -------------------------------------------------------------------------------------------------------------- encode
def encode_versions(sequence: VersionSequence) -> bytes:
    """The bytes of a sequence; those that were decoded come back as they were.

    >>> encode_versions(VersionSequence.from_runs([(2, 1), (1, 2)])).hex(" ", 12)
    '0a080a040a0210021001 0a0a0a060a04080210031002'
    """
    if sequence._stored is not None:
        return sequence._stored
    narrow, versions = sequence._counts, sequence._versions
    many = len(narrow) > _RUNS_BY_OFFSET_MAX
    if many and int(narrow.max()) < _ONE_BYTE and 0 < int(versions.min()) <= int(versions.max()) < _ONE_BYTE:
        return _short_runs(narrow, versions)
    counts, versions = sequence.counts.view(np.uint64), sequence.versions
    ends = counts if many else np.cumsum(counts)
    starts = ends - counts
    parts = [field_sizes(starts, optional=True), field_sizes(ends), field_sizes(versions, optional=True)]
    within_range = parts[0] + parts[1]
    within_span = within_range + 2  # tag and length of the range; all lengths here fit one byte
    within_run = within_span + 2 + parts[2]
    at = np.cumsum(within_run + 2) - (within_run + 2)
    out = np.zeros(int((within_run + 2).sum()), np.uint8)
    for depth, size in enumerate((within_run, within_span, within_range)):
        out[at + 2 * depth] = 0x0A  # field 1 of sequence, run and segment: run, span, range
        out[at + 2 * depth + 1] = size
    at = at + 6
    for tag, values, size in ((0x08, starts, parts[0]), (0x10, ends, parts[1]), (0x10, versions, parts[2])):
        put_fields(out, at, tag, values, size)
        at = at + size
    return out.tobytes()


def _short_runs(counts: Column, versions: Column) -> bytes:
    """Runs that begin at 0, all numbers in one byte: each takes ten bytes, of which two differ.

    Written in blocks through one buffer that stays in the processor's cache: first touches of memory dominate the cost.
    """
    block = bytearray(_SHORT_RUN) * _BLOCK_RUNS
    rows, out = np.frombuffer(block, np.uint8).reshape(-1, len(_SHORT_RUN)), io.BytesIO()
    for at in range(0, len(counts), _BLOCK_RUNS):
        count = min(_BLOCK_RUNS, len(counts) - at)
        rows[:count, 7], rows[:count, 9] = counts[at : at + count], versions[at : at + count]
        out.write(memoryview(block)[: count * len(_SHORT_RUN)])
    return out.getvalue()


# -------------------------------------------------------------------------------------------------------------- decode
def decode_versions(data: bytes, path: str, expected_rows: int | None = None) -> VersionSequence:
    """The sequence in ``data``; :class:`CorruptTable` for anything else, or for another count than expected."""
    counts, versions = _checked(data, path, expected_rows)
    return VersionSequence(np.asarray(counts), versions, bytes(data))


def check_versions(data: bytes, path: str, expected_rows: int) -> None:
    """Raise what :func:`decode_versions` would, and make no sequence."""
    _checked(data, path, expected_rows)


def _checked(
    data: bytes, path: str, expected_rows: int | None
) -> tuple[npt.NDArray[Any] | list[int], npt.NDArray[Any]]:
    found = _decode_many(data)
    try:
        counts, versions = _decode_runs(data, path) if found is None else found
    except ValueError as error:
        raise CorruptTable(path, (f"row versions: {error}",)) from error
    rows = int(counts.sum()) if isinstance(counts, np.ndarray) else sum(counts)
    if rows > _ROWS_MAX if expected_rows is None else rows != expected_rows:
        limit = f"at most {_ROWS_MAX}" if expected_rows is None else str(expected_rows)
        raise CorruptTable(path, (f"there are {rows} row versions for {limit} rows",))
    return counts, versions


def _decode_many(data: bytes) -> tuple[Column, Column] | None:
    """Very many runs of the usual layout, parsed without messages; ``None`` if they are few, or of another layout.

    Candidates are all places with the three tags and lengths of a run. They are the runs if each begins where the one
    before it ends.
    """
    if len(data) < _MANY_BYTES:
        return None
    short = _decode_short(data)
    if short is not None:
        return short
    buffer, _, ends = as_buffer([data])
    end = int(ends[0])
    head = buffer[: end - 5]
    begins = np.flatnonzero(
        (head == 0x0A)
        & (buffer[2 : end - 3] == 0x0A)
        & (buffer[4 : end - 1] == 0x0A)
        & (buffer[1 : end - 4] < _ONE_BYTE)
        & (buffer[3 : end - 2] == buffer[5:end] + np.uint8(2))
    )
    if not len(begins) or begins[0] != 0:
        return None
    run_ends = begins + 2 + buffer[begins + 1]
    range_begins, range_ends = begins + 6, begins + 6 + buffer[begins + 5]
    if not np.array_equal(np.append(begins[1:], end), run_ends) or np.any(range_ends > run_ends):
        return None
    ranges = scan(buffer, range_begins, range_ends, numbers=(_START, _END))
    rest = scan(buffer, range_ends, run_ends, numbers=(_VERSION,), spans=(_SPAN,))
    start, stop = ranges.numbers[_START], ranges.numbers[_END]
    if ranges.bad.any() or rest.bad.any() or len(rest.spans[_SPAN].rows) or np.any(stop < start):
        return None
    counts = stop - start
    if int(counts.max()) > _ROWS_MAX:
        return None
    return counts.astype(np.int64), rest.numbers[_VERSION]


def _decode_short(data: bytes) -> tuple[Column, Column] | None:
    """What :func:`_short_runs` wrote; ``None`` for anything else."""
    if len(data) % len(_SHORT_RUN):
        return None
    words = np.frombuffer(data, "<u2")
    for at in range(0, len(words), len(_SHORT_WORDS)):  # blocks stay in the processor's cache
        block = words[at : at + len(_SHORT_WORDS)]
        if ((block & _SHORT_MASK[: len(block)]) != _SHORT_WORDS[: len(block)]).any():
            return None
    rows = np.frombuffer(data, np.uint8).reshape(-1, len(_SHORT_RUN))
    return rows[:, 7], rows[:, 9]


def _decode_runs(data: bytes, path: str) -> tuple[list[int], Numbers]:
    """The number of rows (as Python numbers: hostile bytes may say 2**64) and the version of each run."""
    messages: list[bytes] = list(decode_message(rows_pb2.VersionSequenceShell, data, path, "the row versions").runs)
    if len(messages) <= _FEW_RUNS:
        few = [_decode_run(message, path) for message in messages]
        return [count for count, _ in few], np.array([version for _, version in few], np.uint64)
    buffer, begins, ends = as_buffer(messages)
    runs = scan(buffer, begins, ends, numbers=(_VERSION,), spans=(_SPAN,))
    if runs.bad.any():
        raise ValueError("a run can't be decoded")
    spans = runs.spans[_SPAN]
    segments = scan(buffer, spans.starts, spans.ends, spans=(_RANGE,))
    inner = segments.spans[_RANGE]
    ranges = scan(buffer, inner.starts, inner.ends, numbers=(_START, _END))
    is_plain = np.zeros(len(messages), np.bool_)
    counts = np.zeros(len(messages), np.uint64)
    if _is_one_each(spans.rows, len(messages)) and not segments.bad.any() and not ranges.bad.any():
        rows = spans.rows[inner.rows]
        alone = (inner.ends == spans.ends[inner.rows]) & (np.bincount(rows, minlength=len(messages))[rows] == 1)
        start, end = ranges.numbers[_START], ranges.numbers[_END]
        plain = alone & (start <= end)
        is_plain[rows[plain]] = True
        counts[rows[plain]] = (end - start)[plain]
    slow = np.flatnonzero(~is_plain).tolist()
    numbers = counts.tolist()
    for row in slow:
        numbers[row], _ = _decode_run(messages[row], path)
    return numbers, runs.numbers[_VERSION]


def _is_one_each(rows: Offsets, count: int) -> bool:
    return len(rows) == count and bool(np.all(np.bincount(rows, minlength=count) == 1))


def _decode_run(message: bytes, path: str) -> tuple[int, int]:
    run: Any = decode_message(rows_pb2.VersionRun, message, path, "a run of versions")
    return segment_from_proto(run.span).count, run.version
