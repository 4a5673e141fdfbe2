"""Segments of row ids: each shape agrees with the values that it stands for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.segments import (
    Array,
    NumberArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
)

TOP = 2**64 - 1


def numbers(*values: int) -> NumberArray:
    return NumberArray.of(np.array(values, np.uint64))


SEGMENTS: list[Segment] = [
    Range(0, 0),
    Range(7, 12),
    Range(TOP - 3, TOP),
    RangeWithHoles(10, 20, numbers()),
    RangeWithHoles(10, 20, numbers(10, 11, 15, 19)),
    RangeWithHoles(0, 3, numbers(0, 1, 2)),
    RangeWithHoles(TOP - 4, TOP, numbers(TOP - 4, TOP - 1)),
    RangeWithBitmap(3, 14, b"\xff\x05"),
    RangeWithBitmap(3, 3, b""),
    RangeWithBitmap(0, 8, b"\0"),
    SortedArray(numbers()),
    SortedArray(numbers(0, 5, TOP)),
    SortedArray(NumberArray(64, 0, np.array([1, 2], "<u8").tobytes())),
    Array(numbers(9, 2, TOP, 0)),
    Array(NumberArray(32, 4, np.array([9, 2], "<u4").tobytes())),
]


@pytest.mark.parametrize("segment", SEGMENTS, ids=str)
def test_each_shape_agrees_with_its_values(segment: Segment) -> None:
    values = segment.values()
    assert values.dtype == np.uint64
    assert segment.count == len(values)
    assert segment.bounds() == ((int(values.min()), int(values.max())) if len(values) else None)
    asked = np.array(sorted({0, 1, 2, 3, 5, 7, 9, 10, 11, 15, 19, 20, TOP - 4, TOP - 3, TOP - 1, TOP}), np.uint64)
    places = values.tolist()
    expected = [places.index(number) if number in places else -1 for number in asked.tolist()]
    assert segment.positions(asked).tolist() == expected
    firsts, lasts = segment.intervals()
    spread = [
        number for low, high in zip(firsts.tolist(), lasts.tolist(), strict=True) for number in range(low, high + 1)
    ]
    assert spread == places
    sequence = RowIdSequence((segment,))
    assert decode_row_ids(encode_row_ids(sequence), "p", len(values)) == sequence
    assert pickle.loads(pickle.dumps(sequence)) == sequence
