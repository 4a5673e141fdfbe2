"""Casts as Lance does them: which pairs, which values, and what its messages call the types."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.casts import cast_array, castable, lance_name

FAMILIES = [
    [pa.int8(), pa.uint64(), pa.dictionary(pa.int8(), pa.int32())],
    [pa.float16(), pa.float64()],
    [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    [pa.binary(), pa.large_binary()],
    [pa.decimal128(5, 2), pa.decimal256(50, 2)],
    [pa.duration("s"), pa.duration("ns")],
    [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("s", "UTC")],
    [pa.bool_()],
]


@pytest.mark.parametrize("own", range(len(FAMILIES)))
def test_types_become_others_of_their_family_only(own: int) -> None:
    for number, family in enumerate(FAMILIES):
        assert {castable(one, other) for one in FAMILIES[own] for other in family} == {number == own}


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [
        (pa.timestamp("us"), pa.time32("s"), True),
        (pa.time32("s"), pa.timestamp("us"), False),
        (pa.list_(pa.float32()), pa.list_(pa.float64(), 3), True),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3), False),
        (pa.large_list(pa.int8()), pa.list_(pa.string()), False),
        (pa.binary(4), pa.binary(), False),
        (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int8()}), False),
        (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int16()}), False),
    ],
    ids=str,
)
def test_lists_and_times(own: pa.DataType, wanted: pa.DataType, expected: bool) -> None:
    assert castable(own, wanted) is expected


def test_values() -> None:
    assert cast_array(pa.array([1, None, 127]), pa.int8()).to_pylist() == [1, None, 127]
    moment = pa.array([dt.datetime(2024, 1, 2, 3)], pa.timestamp("us"))
    assert cast_array(moment, pa.date32()).to_pylist() == [dt.date(2024, 1, 2)]
    with pytest.raises(InvalidRequest, match="Can't cast value 128 to type Int8"):
        cast_array(pa.array([128]), pa.int8())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.uint8(), "UInt8"),
        (pa.float16(), "Float16"),
        (pa.string(), "Utf8"),
        (pa.large_string(), "LargeUtf8"),
        (pa.date32(), "Date32"),
        (pa.bool_(), "Boolean"),
    ],
    ids=str,
)
def test_names(kind: pa.DataType, name: str) -> None:
    assert lance_name(kind) == name
