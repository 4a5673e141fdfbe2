"""Many ranges of row ids are read as one segment, and mean what their ranges mean one by one."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable
from tablewright.format.many_ranges import ManyRanges, many_ranges
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.segment_choice import segments_of
from tablewright.format.segments import Range, SortedArray

MANY = 400


def _sequence(sizes: list[int], order: list[int], first: int, step: int) -> RowIdSequence:
    """Disjoint ranges in some order; a range may be empty."""
    starts = [first + number * step for number in order]
    return RowIdSequence(tuple(Range(s, s + min(size, step)) for s, size in zip(starts, sizes, strict=True)))


@given(
    st.lists(st.integers(0, 3), min_size=MANY, max_size=MANY),
    st.permutations(range(MANY)),
    st.sampled_from([0, 7, 2**31, 2**60]),
    st.sampled_from([3, 5, 2**20]),
)
def test_as_one_segment(sizes: list[int], order: list[int], first: int, step: int) -> None:
    plain = _sequence(sizes, order, first, step)
    data = encode_row_ids(plain)
    ids = plain.to_numpy()
    read = decode_row_ids(data, "p", len(ids))
    assert len(data) < 1024 or isinstance(read.segments[0], ManyRanges)
    assert len(read) == len(ids) and read.to_numpy().tolist() == ids.tolist()
    assert encode_row_ids(read) == data
    assert read.bounds == plain.bounds
    probes = np.concatenate((ids, ids + np.uint64(1), np.array([0, 2**63], np.uint64)))
    assert read.position_of(probes).tolist() == plain.position_of(probes).tolist()
    chosen = np.arange(0, len(ids), 3)
    assert read.select(chosen).to_numpy().tolist() == ids[chosen].tolist()
    assert read.slice(5, 50).to_numpy().tolist() == ids[5:50].tolist()


def test_an_id_that_comes_twice_is_found() -> None:
    ranges = tuple(Range(10 * number, 10 * number + 3) for number in range(MANY))
    data = encode_row_ids(RowIdSequence((*ranges, Range(11, 12))))
    assert many_ranges(data) is not None
    with pytest.raises(CorruptTable, match="comes twice"):
        decode_row_ids(data, "p")
    with pytest.raises(CorruptTable, match="row ids for 5 rows"):
        decode_row_ids(encode_row_ids(RowIdSequence(ranges)), "p", 5)


def test_what_is_something_else() -> None:
    ranges = tuple(Range(10 * number, 10 * number + 3) for number in range(MANY))
    data = encode_row_ids(RowIdSequence(ranges))
    (array,) = segments_of(np.array([10**6, 10**7], np.uint64))
    assert isinstance(array, SortedArray)
    mixed = RowIdSequence((*ranges, array))
    assert many_ranges(encode_row_ids(mixed)) is None
    assert decode_row_ids(encode_row_ids(mixed), "p").to_numpy().tolist() == mixed.to_numpy().tolist()
    assert (
        many_ranges(data[:-1]) is None and many_ranges(data + b"\x0a") is None and many_ranges(b"\x0a" * 2000) is None
    )
    assert many_ranges(b"\x0a\x06\x0a\x04\x08\x09\x10\x01" * 200) is None  # ends before it starts
    with pytest.raises(CorruptTable):
        decode_row_ids(b"\x0a\x06\x0a\x04\x08\x09\x10\x01" * 200, "p")


def test_no_line_runs_once_per_range() -> None:
    data = b"\x0a\x06\x0a\x04\x08\x09\x10\x0a" * 50_000
    lines, before = 0, sys.gettrace()

    def count(*_: object) -> object:
        nonlocal lines
        lines += 1
        return count

    sys.settrace(count)
    try:
        read = many_ranges(data)
    finally:
        sys.settrace(before)
    assert read is not None and read.count == 50_000
    assert lines < 5_000
