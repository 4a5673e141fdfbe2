"""Keys in the type of an index: every one stays what it is, or all are refused."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.indices.btree.keys import fitted

NAN = float("nan")


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (pa.array([1, None], pa.int8()), pa.int64()),
        (pa.array([255], pa.int64()), pa.uint8()),
        (pa.array([1.0, NAN, -0.0], pa.float64()), pa.float32()),
        (pa.array([2**40], pa.int64()), pa.float64()),
        (pa.array([3], pa.int64()), pa.decimal128(30, 3)),
        (pa.array(["a"], pa.string_view()), pa.large_string()),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string()),
        (pa.chunked_array([["a"], ["b"]]), pa.string()),
        (pa.array([dt.date(2024, 1, 1)]), pa.date64()),
        (pa.array([b"ab"]), pa.binary(2)),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_cast_where_nothing_is_lost(keys: pa.Array, kind: pa.DataType) -> None:
    found = fitted(keys, kind)
    assert found.type == kind
    assert str(found.to_pylist()) == str(pa.array(keys.to_pylist(), kind).to_pylist())


def test_nulls_are_of_any_type() -> None:
    assert fitted(pa.nulls(3), pa.string()).equals(pa.nulls(3, pa.string()))


@pytest.mark.parametrize(
    ("keys", "kind", "words"),
    [
        (pa.array([1.5]), pa.int64(), "do not fit|would change"),
        (pa.array([0.1]), pa.float32(), "would change"),
        (pa.array([2**53 + 1]), pa.float64(), "do not fit|would change"),
        (pa.array([300]), pa.int8(), "do not fit"),
        (pa.array([decimal.Decimal("1.25")]), pa.decimal128(5, 1), "do not fit"),
        (pa.array(["1"]), pa.int64(), "can't be looked up"),
        (pa.array([1]), pa.bool_(), "can't be looked up"),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC"), "can't be looked up"),
        (pa.array([1500], pa.timestamp("ms")), pa.timestamp("s"), "do not fit"),
        (pa.array([b"abc"]), pa.binary(2), "do not fit"),
        (pa.array([[1]]), pa.list_(pa.int64(), 1), "can't be looked up"),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_refused_where_something_would_be(keys: pa.Array, kind: pa.DataType, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        fitted(keys, kind)
