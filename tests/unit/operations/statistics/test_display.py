"""Texts of values, as DataFusion prints them; the differential tests compare them with pylance's."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablewright.operations.statistics.display import display

CASES: list[tuple[Any, pa.DataType, str]] = [
    (5, pa.int8(), "5"),
    (2**64 - 1, pa.uint64(), "18446744073709551615"),
    (None, pa.string(), "NULL"),
    (1.0, pa.float64(), "1"),
    (-0.0, pa.float64(), "-0"),
    (1e-7, pa.float64(), "0.0000001"),
    (float("nan"), pa.float32(), "NaN"),
    (float("-inf"), pa.float64(), "-inf"),
    (0.1, pa.float32(), "0.1"),
    (1e30, pa.float32(), "1000000000000000000000000000000"),
    (0.1, pa.float16(), "0.099975586"),
    (True, pa.bool_(), "true"),
    ('a"b', pa.string(), 'a"b'),
    (date(1696, 3, 17), pa.date32(), "1696-03-17"),
    (date(2020, 1, 1), pa.date64(), "2020-01-01"),
    (7, pa.timestamp("us", "UTC"), "7"),
    (7, pa.time32("s"), "7"),
    (7, pa.duration("ns"), "7"),
    (Decimal("-1.50"), pa.decimal256(40, 2), "Some(-150),40,2"),
    (b"\xff", pa.large_binary(), "FF"),
    (b"0123456789", pa.binary(), "30313233343536373839"),
    (b"0123456789a", pa.binary(11), "30313233343536373839..."),
]


@pytest.mark.parametrize(("value", "kind", "expected"), CASES, ids=[f"{kind}-{text}" for _, kind, text in CASES])
def test_a_value(value: Any, kind: pa.DataType, expected: str) -> None:
    assert display(pa.scalar(value, kind)) == expected
