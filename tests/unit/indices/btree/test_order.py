"""The order of values in a BTREE: floats by the total order of their bits, the rest by value or by bytes."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablewright.indices.btree.order import Order, equal_values, order_of, spread

ASCENDING: dict[str, pa.Array] = {
    "int8": pa.array([-128, -1, 0, 127], pa.int8()),
    "uint64": pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()),
    "bool": pa.array([False, True]),
    "float": pa.array([-math.nan, -math.inf, -1.5, -0.0, 0.0, 1e-300, math.inf, math.nan]),
    "half": pa.array(np.array([-2, -0.0, 0, 2], np.float16)),
    "date": pa.array([-5, 0, 5], pa.date32()),
    "text": pa.array(["", "A", "a", "a\0", "ab", "é", "𝄞"]),
    "fixed": pa.array([b"\0\0", b"\0\1", b"\xff\xff"], pa.binary(2)),
    "decimal": pa.array([decimal.Decimal(n) for n in (-300, -1, 0, 1, 300)], pa.decimal128(5)),
}


def order_for(kind: pa.DataType) -> Order:
    order = order_of(kind)
    assert order is not None
    return order


@pytest.mark.parametrize("name", ASCENDING)
def test_ranks(name: str) -> None:
    array = ASCENDING[name]
    order = order_for(array.type)
    shuffled = np.random.default_rng(1).permutation(np.repeat(np.arange(len(array)), 2))
    distinct, which = order.distinct(order.values(array.take(pa.array(shuffled))))
    assert which.tolist() == shuffled.tolist()
    assert equal_values(distinct, order.values(array)).all()


@pytest.mark.parametrize("name", ASCENDING)
def test_places_and_matches(name: str) -> None:
    array = ASCENDING[name]
    order, count = order_for(array.type), len(array)
    values = order.values(array)
    first, last = order.places(values, values, values)
    assert first.tolist() == last.tolist() == list(range(count))
    rows, keys = order.matches(order.pick(values, np.arange(0, count, 2)), values)
    assert rows.tolist() == list(range(0, count, 2)) and keys.tolist() == list(range(len(rows)))
    assert [each.tolist() for each in order.matches(values, order.pick(values, np.arange(0)))] == [[], []]


@pytest.mark.parametrize("name", ASCENDING)
def test_a_comparison_never_lies(name: str) -> None:
    array = ASCENDING[name]
    order, count = order_for(array.type), len(array)
    values = order.values(array)
    lows, highs = (order.pick(values, np.full(count, at)) for at in (0, count - 1))
    signs = order.comparison(values, lows, highs)(values, np.tile(np.arange(count), (count, 1)))
    real = np.sign(np.arange(count)[np.newaxis, :] - np.arange(count)[:, np.newaxis])
    assert np.all((signs == real) | (signs == 0))
    assert np.all(np.diag(signs) == 0)


def test_null_bounds_come_first() -> None:
    for array in (pa.array([None, 5, None], pa.int8()), pa.array([None, "x", None])):
        order = order_for(array.type)
        bounds = order.bounds(array)
        lowest = order.bounds(pa.nulls(3, array.type))
        assert equal_values(bounds, lowest).tolist() == [True, False, True]


@pytest.mark.parametrize(("lows", "highs"), [([1, 5], [6, 9]), ([5], [4])])
def test_pages_out_of_order(lows: list[int], highs: list[int]) -> None:
    order = order_for(pa.int64())
    with pytest.raises(ValueError, match="not in order"):
        order.places(np.array([1]), np.array(lows), np.array(highs))


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct({}), pa.month_day_nano_interval(), pa.null()], ids=str)
def test_types_without_an_order(kind: Any) -> None:
    assert order_of(kind) is None


def test_runs() -> None:
    assert spread(np.array([7, 0, 3]), np.array([0, 2, 1])).tolist() == [0, 1, 3]
