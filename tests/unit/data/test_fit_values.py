"""Values in another type: all of them as they were, or an error that names the first one that is not."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tablewright.data.fit_values import fit_array
from tablewright.errors import InvalidRequest

PAIRS = pa.map_(pa.string(), pa.int64())
KEPT: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array([1, None, -128]), pa.int8()),
    (pa.array([2**53, None, -(2**53)]), pa.float64()),
    (pa.array([2**11, None, -(2**11)]), pa.float16()),
    (pa.array([5, None, -999]), pa.decimal128(5, 2)),
    (pa.array([2**64 - 1, None], pa.uint64()), pa.decimal256(50, 2)),
    (pa.array([1.0, None, -3.0]), pa.int8()),
    (pa.array([0.5, None, float("inf"), float("-inf")]), pa.float16()),
    (pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0)), pa.uint64()),
    (pa.array([Decimal("2.00"), None], pa.decimal32(5, 2)), pa.int64()),
    (pa.array([Decimal("1.20"), None]), pa.decimal32(3, 1)),
    (pa.array([Decimal("1.25"), None]), pa.float32()),
    (pa.array(["a", None], pa.string_view()), pa.large_string()),
    (pa.array([b"ab", None]), pa.binary(2)),
    (pa.array([2_000, None], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([2_000, None], pa.timestamp("us", "UTC")), pa.timestamp("ms", "UTC")),
    (pa.array([3, None], pa.duration("s")), pa.duration("us")),
    (pa.array(["a", None, "b"]), pa.dictionary(pa.int8(), pa.string())),
    (pa.array([3, None, 3]), pa.dictionary(pa.int8(), pa.int32())),
    (pa.array(["a", None, "b"]).dictionary_encode(), pa.string_view()),
    (pa.array(["a", None, "b"]).dictionary_encode(), pa.dictionary(pa.int8(), pa.large_string())),
    (pa.array([[1.0, 2.0], None, [3.0, 4.0], None]), pa.list_(pa.float32(), 2)),
    (pa.array([None, None], pa.list_(pa.float64())), pa.list_(pa.float32(), 2)),
    (pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2)), pa.list_(pa.float32(), 2)),
    (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)), pa.large_list(pa.int64())),
    (pa.array([["a"], None, [], ["b", None]], pa.large_list(pa.string())), pa.list_(pa.large_string())),
    (pa.array([[[1, 2]], None, [], [None, [3, 4]]]), pa.list_(pa.list_(pa.float32(), 2))),
    (pa.array([{"v": [1.5]}, None, {"v": None}]), pa.struct({"v": pa.list_(pa.float32(), 1)})),
    (pa.array([[("k", 1), ("l", 2)], None, []], PAIRS), pa.map_(pa.large_string(), pa.int8())),
]


@pytest.mark.parametrize(("array", "kind"), KEPT, ids=lambda value: str(getattr(value, "type", value)))
@pytest.mark.parametrize("start", [0, 1, 2])
def test_what_fits_is_kept(array: pa.Array, kind: pa.DataType, start: int) -> None:
    array = array.slice(start)
    found = fit_array(array, kind, "c")
    found.validate(full=True)
    assert found.type == kind and len(found) == len(array)
    assert found.to_pylist() == array.to_pylist()


BAD: list[tuple[pa.Array, pa.DataType, str]] = [
    (pa.array([1, None, 300, 400]), pa.int8(), "300"),
    (pa.array([1, -1]), pa.uint64(), "-1"),
    (pa.array([1, 2**53 + 1]), pa.float64(), str(2**53 + 1)),
    (pa.array([1, 2049]), pa.float16(), "2049"),
    (pa.array([1, 1000]), pa.decimal128(5, 2), "1000"),
    (pa.array([1.0, 2.5]), pa.int64(), "2.5"),
    (pa.array([1.0, float("nan")]), pa.int64(), "nan"),
    (pa.array([1.0, 1e300]), pa.float32(), r"1e\+300"),
    (pa.array([1.0, 70000.0], pa.float32()), pa.float16(), "70000"),
    (pa.array([Decimal("1.00"), Decimal("2.50")]), pa.int64(), "2.50"),
    (pa.array([Decimal("1.00"), Decimal("2.25")]), pa.decimal128(9, 1), "2.25"),
    (pa.array([Decimal(10**70)], pa.decimal256(76, 0)), pa.float32(), "1000000"),
    (pa.array([b"ab", b"abc"]), pa.binary(2), "abc"),
    (pa.array([1_000, 1_001], pa.timestamp("ns")), pa.timestamp("us"), "00.000001001"),
    (pa.array([1, 2**60], pa.timestamp("s")), pa.timestamp("ns"), ""),
    (pa.array([1_000, 1_001], pa.duration("ns")), pa.duration("us"), "1001"),
    (pa.array([[1.0, 2.0], None, [3.0]]), pa.list_(pa.float32(), 2), r"\[3"),
    (pa.array([[1.0, 2.0], None, [3.0, 1e300]]), pa.list_(pa.float32(), 2), "1e"),
    (pa.array([[("k", 300)]], PAIRS), pa.map_(pa.string(), pa.int8()), "300"),
]


@pytest.mark.parametrize(("array", "kind", "value"), BAD, ids=lambda value: str(getattr(value, "type", value)))
def test_the_first_value_that_does_not_fit_is_named(array: pa.Array, kind: pa.DataType, value: str) -> None:
    with pytest.raises(InvalidRequest, match=rf'Cannot cast column "c.*the value .*{value}.* does not fit\. Clean'):
        fit_array(array, kind, "c")


def test_the_place_inside_is_named_and_the_remedy_ends_it() -> None:
    array = pa.array([{"a": [1, 300]}])
    with pytest.raises(InvalidRequest, match=r'column "c\.a" from int64 to int8: the value 300 does not fit. Give up.'):
        fit_array(array, pa.struct({"a": pa.list_(pa.int8())}), "c", "Give up.")


def test_more_values_than_a_dictionary_counts() -> None:
    with pytest.raises(InvalidRequest, match="300 different values are more than int8 counts"):
        fit_array(pa.array([str(number) for number in range(300)]), pa.dictionary(pa.int8(), pa.string()), "c")


def test_vectors_of_no_values_have_memory() -> None:
    """Those of empty lists come from Spark 4.0 without any, and the codec takes no null pointers."""
    nothing = pa.Array.from_buffers(pa.float32(), 0, [None, pa.foreign_buffer(0, 0)])
    vectors = pa.ListArray.from_arrays(pa.array([0], pa.int32()), nothing)
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), vectors)
    found = fit_array(lists, pa.list_(pa.list_(pa.float32(), 2)), "c")
    assert found.to_pylist() == [[], []]
    assert found.values.values.buffers()[1].address


def test_members_that_are_missing_are_null() -> None:
    found = fit_array(pa.array([{"a": 1}, None]), pa.struct({"b": pa.string(), "a": pa.int8()}), "c")
    assert found.to_pylist() == [{"b": None, "a": 1}, None]
