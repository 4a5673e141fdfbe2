"""The row ids of all fragments at once, where they are ranges: read from the fragments' bytes, none of them decoded.

Nearly every fragment of a table with stable row ids holds one range of ids, or a few. A columnar scan (``wire.py``) of
three steps reads them all: where each fragment keeps its row ids, which segments these have, and the bounds of the
ranges. Fragments with long sequences or with other shapes are only listed: the caller decodes them one by one.
:func:`encode_ranges` is the other direction, for many fragments of one range each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tablewright.format.wire import Bools, Ints, Longs, Spans, as_buffer, field_sizes, put_fields, scan

__all__ = ["RowIdRanges", "encode_ranges", "row_id_ranges"]

T = TypeVar("T", bound=np.generic)

_PHYSICAL_ROWS, _ROW_IDS = 4, 5  # of a fragment
_SEGMENT = 1  # of a sequence
_SHAPES = (1, 2, 3, 4, 5)  # of a segment
_RANGE, _START, _END = 1, 1, 2
_SHORT_BYTES = 128
_ROWS_MAX = np.uint64(1 << 32)
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True)
class RowIdRanges:
    """One row per range: position of its fragment, first id, last id (included), and the offset of the first id's row.

    Ranges are in the order of fragments and rows. ``others`` are the positions of fragments that have to be decoded:
    their sequences are long, of other shapes, or broken.
    """

    rows: Ints
    firsts: Longs
    lasts: Longs
    offsets: Ints
    others: Ints


def row_id_ranges(fragments: Sequence[bytes]) -> RowIdRanges:
    """The ranges of serialised fragments. They are read in blocks whose columns stay in the processor's cache."""
    blocks = [_ranges_of_block(fragments[start : start + _BLOCK]) for start in range(0, len(fragments), _BLOCK)]
    starts = range(0, len(fragments), _BLOCK)
    return RowIdRanges(
        rows=_joined([block.rows + start for block, start in zip(blocks, starts, strict=True)], np.int64),
        firsts=_joined([block.firsts for block in blocks], np.uint64),
        lasts=_joined([block.lasts for block in blocks], np.uint64),
        offsets=_joined([block.offsets for block in blocks], np.int64),
        others=_joined([block.others + start for block, start in zip(blocks, starts, strict=True)], np.int64),
    )


def _joined(columns: list[npt.NDArray[T]], kind: type[T]) -> npt.NDArray[T]:
    return np.concatenate([np.zeros(0, kind), *columns])


def _ranges_of_block(fragments: Sequence[bytes]) -> RowIdRanges:
    buffer, starts, ends = as_buffer(fragments)
    count = len(fragments)
    top = scan(buffer, starts, ends, numbers=(_PHYSICAL_ROWS,), spans=(_ROW_IDS,))
    sequences = top.spans[_ROW_IDS]
    plain = ~top.bad & (np.bincount(sequences.rows, minlength=count) == 1)
    short = (sequences.ends - sequences.starts <= _SHORT_BYTES) & plain[sequences.rows]
    plain &= _marked(sequences.rows[short], count)
    sequences = _taken(sequences, short)

    inner = scan(buffer, sequences.starts, sequences.ends, spans=(_SEGMENT,))
    segments = _in_order(inner.spans[_SEGMENT])
    owners = sequences.rows[segments.rows]
    shapes = scan(buffer, segments.starts, segments.ends, spans=_SHAPES)
    found = _in_order(shapes.spans[_RANGE])
    alone = np.bincount(found.rows, minlength=len(owners)) == 1
    alone[found.rows] &= found.ends == segments.ends[found.rows]
    alone &= ~shapes.bad
    for shape in _SHAPES[1:]:
        alone[shapes.spans[shape].rows] = False

    bounds = scan(buffer, found.starts, found.ends, numbers=(_START, _END))
    low, high = bounds.numbers[_START], bounds.numbers[_END]
    alone[found.rows] &= ~bounds.bad & (low <= high) & (high - low <= _ROWS_MAX)
    plain[sequences.rows[inner.bad]] = False
    plain[owners[~alone]] = False
    kept = plain[owners[found.rows]] & (low < high)
    return _checked(top.numbers[_PHYSICAL_ROWS], plain, owners[found.rows][kept], low[kept], high[kept])


def _checked(physical_rows: Longs, plain: Bools, owners: Ints, low: Longs, high: Longs) -> RowIdRanges:
    """Fragments with another number of ids than rows are left to the decoder, which reports what is wrong."""
    sizes = (high - low).astype(np.int64)
    counted = np.zeros(len(plain), np.int64)
    np.add.at(counted, owners, sizes)
    plain = plain & (counted.astype(np.uint64) == physical_rows)
    before = np.cumsum(sizes) - sizes
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    offsets = before - np.repeat(before[begins], np.diff(begins, append=len(owners)))
    kept = plain[owners]
    return RowIdRanges(
        owners[kept], low[kept], high[kept] - np.uint64(1), offsets[kept], np.flatnonzero(~plain).astype(np.int64)
    )


def _marked(rows: Ints, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def _taken(spans: Spans, where: Bools) -> Spans:
    return Spans(spans.rows[where], spans.starts[where], spans.ends[where])


def _in_order(spans: Spans) -> Spans:
    """In the order of the bytes: a scan finds fields round by round, not in that order."""
    order = np.argsort(spans.starts, kind="stable")
    return Spans(spans.rows[order], spans.starts[order], spans.ends[order])


def encode_ranges(starts: Longs, ends: Longs) -> list[bytes]:
    """The bytes of many sequences of one range each, from ``starts`` up to ``ends`` (exclusive, and above).

    >>> encode_ranges(np.array([10], np.uint64), np.array([20], np.uint64))[0].hex()
    '0a060a04080a1014'
    """
    start_sizes, end_sizes = field_sizes(starts, optional=True), field_sizes(ends)
    inner = start_sizes + end_sizes
    stops = np.cumsum(inner + 4)
    at = stops - inner - 4
    out = np.zeros(int(stops[-1]) if len(stops) else 0, np.uint8)
    for depth, size in enumerate((inner + 2, inner)):
        out[at + 2 * depth] = 0x0A  # field 1 of sequence and segment: segment, range
        out[at + 2 * depth + 1] = size
    put_fields(out, at + 4, 0x08, starts, start_sizes)
    put_fields(out, at + 4 + start_sizes, 0x10, ends, end_sizes)
    data = out.tobytes()
    return [data[begin:stop] for begin, stop in zip(at.tolist(), stops.tolist(), strict=True)]
