"""The last-updated-at version of each fragment whose rows all have the same one, for all fragments at once.

A fragment that was written at once, or compacted from such, has one run of versions. A columnar scan (``wire.py``)
reads them all from the fragments' bytes; none is decoded. Fragments with several runs, spans of other shapes or no
versions are left to the caller to decode.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablewright.format.wire import Bools, Ints, Longs, Scan, Spans, as_buffer, scan

__all__ = ["uniform_versions"]

_PHYSICAL_ROWS, _UPDATED = 4, 7  # of a fragment
_RUN = 1  # of a sequence
_SPAN, _VERSION = 1, 2  # of a run
_RANGE, _START, _END = 1, 1, 2  # of a span
_BLOCK = 1 << 13


def uniform_versions(fragments: Sequence[bytes]) -> tuple[Longs, Bools]:
    """The version of each serialised fragment, and for which of them it is known.

    >>> from tablewright.format.fragment import Fragment, encode_fragment
    >>> from tablewright.format.row_versions import VersionSequence, encode_versions
    >>> sequences = [VersionSequence.constant(3, 7), VersionSequence.from_runs([(1, 7), (2, 8)])]
    >>> made = [Fragment(id=0, files=(), physical_rows=3, last_updated_at=encode_versions(each)) for each in sequences]
    >>> versions, known = uniform_versions([encode_fragment(each) for each in made])
    >>> versions[known].tolist(), known.tolist()
    ([7], [True, False])
    """
    blocks = [_of_block(fragments[start : start + _BLOCK]) for start in range(0, len(fragments), _BLOCK)]
    return (
        np.concatenate([np.zeros(0, np.uint64), *(versions for versions, _ in blocks)]),
        np.concatenate([np.zeros(0, np.bool_), *(known for _, known in blocks)]),
    )


def _of_block(fragments: Sequence[bytes]) -> tuple[Longs, Bools]:
    buffer, starts, ends = as_buffer(fragments)
    count = len(fragments)
    top = scan(buffer, starts, ends, numbers=(_PHYSICAL_ROWS,), spans=(_UPDATED,))
    owners, sequences = _alone(top, _UPDATED, np.arange(count))
    owners, runs = _alone(scan(buffer, sequences.starts, sequences.ends, spans=(_RUN,)), _RUN, owners)
    found = scan(buffer, runs.starts, runs.ends, numbers=(_VERSION,), spans=(_SPAN,))
    version = np.zeros(count, np.uint64)
    version[owners] = found.numbers[_VERSION]
    owners, spans = _alone(found, _SPAN, owners)
    owners, ranges = _alone(scan(buffer, spans.starts, spans.ends, spans=(_RANGE,)), _RANGE, owners)
    bounds = scan(buffer, ranges.starts, ranges.ends, numbers=(_START, _END))
    low, high = bounds.numbers[_START], bounds.numbers[_END]
    whole = ~bounds.bad & (low <= high) & (high - low == top.numbers[_PHYSICAL_ROWS][owners])
    known = np.zeros(count, np.bool_)
    known[owners[whole]] = True
    return version, known


def _alone(found: Scan, field: int, owners: Ints) -> tuple[Ints, Spans]:
    """The spans of a field that occurs exactly once in its message, and the positions of their owners."""
    spans = found.spans[field]
    once = ~found.bad & (np.bincount(spans.rows, minlength=len(owners)) == 1)
    kept = once[spans.rows]
    return owners[spans.rows[kept]], Spans(spans.rows[kept], spans.starts[kept], spans.ends[kept])
