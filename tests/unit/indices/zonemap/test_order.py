"""The order of values in a zone map: floats by their bits, everything else as Arrow has it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from tablewright.indices.zonemap.order import floats_of, has_order, keys_of, lowest_and_highest, ranks

ASCENDING = [-math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_floats_have_a_total_order(kind: pa.DataType) -> None:
    floats = pa.array(ASCENDING).cast(kind)
    keys = keys_of(floats)
    assert (np.diff(keys) > 0).all()
    assert keys[3] == -1
    assert keys[4] == 0
    back = floats_of(keys, kind)
    assert back.tobytes() == floats.to_numpy(zero_copy_only=False).tobytes()


def test_ranks_compare_values_of_several_arrays() -> None:
    one, other = ranks(pa.array([b"\x80", b""]), pa.array([b"\x7f", b"\x80\x00", b""]))
    assert (one.tolist(), other.tolist()) == ([3, 1], [2, 4, 1])
    assert [part.tolist() for part in ranks(pa.array([0.0]), pa.array([-0.0]))] == [[0], [-1]]


def test_extremes_of_groups() -> None:
    bounds = np.array([0, 2, 3])
    low, high = lowest_and_highest(pa.array(["b", "a", None, "c", None]), bounds)
    assert (low.to_pylist(), high.to_pylist()) == (["a", None, "c"], ["b", None, "c"])
    low, high = lowest_and_highest(pa.array([1.0, -math.nan, None, 0.0, -0.0]), bounds)
    assert repr(low.to_pylist()) == "[nan, None, -0.0]"
    assert np.signbit(low[0].as_py())
    assert repr(high.to_pylist()) == "[1.0, None, 0.0]"
    low, _ = lowest_and_highest(pa.array([[1], [2], [3]]), bounds)
    assert low.null_count == 3


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([]), pa.null(), pa.month_day_nano_interval()], ids=str)
def test_some_types_have_none(kind: pa.DataType) -> None:
    assert not has_order(kind)
    assert not has_order(pa.dictionary(pa.int8(), pa.list_(pa.int8())))
