from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablewright.expressions.placing import Place, compared, place_of, plain_type
from tablewright.expressions.queries import Between, IsIn


@pytest.mark.parametrize(
    ("literal", "kind", "value", "exact"),
    [
        (pa.scalar(5), pa.int8(), 5, True),
        (pa.scalar(300), pa.int8(), 127, False),
        (pa.scalar(-300), pa.int8(), None, False),
        (pa.scalar(1.5), pa.int64(), 1, False),
        (pa.scalar(-1.5), pa.int64(), -2, False),
        (pa.scalar(2.0), pa.int64(), 2, True),
        (pa.scalar(math.nan), pa.int16(), 2**15 - 1, False),
        (pa.scalar(-math.inf), pa.int16(), None, False),
        (pa.scalar(Decimal("-1"), pa.decimal128(20, 0)), pa.uint64(), None, False),
        (pa.scalar(0.5), pa.float32(), 0.5, True),
        (pa.scalar(1e300), pa.float32(), 3.4028234663852886e38, False),
        (pa.scalar(Decimal("1.505")), pa.decimal128(10, 2), Decimal("1.50"), False),
        (pa.scalar(Decimal("-1.505")), pa.decimal128(10, 2), Decimal("-1.51"), False),
        (pa.scalar(Decimal("123456")), pa.decimal128(4, 2), Decimal("99.99"), False),
    ],
)
def test_a_literal_has_a_place_among_the_values_of_a_type(literal: Any, kind: Any, value: Any, exact: bool) -> None:
    place = place_of(literal, kind)
    assert place is not None
    assert (None if place.value is None else place.value.as_py(), place.exact) == (value, exact)


def test_where_a_cast_may_change_values_nothing_is_said() -> None:
    assert place_of(pa.scalar(2.0**53), pa.int64()) is None
    assert place_of(pa.scalar("a"), pa.int64()) is None
    assert place_of(pa.scalar(2.0**53), pa.int32()) is not None


def test_a_float_below_the_literal_is_its_place() -> None:
    place = place_of(pa.scalar(0.1), pa.float32())
    assert place is not None and place.value is not None and not place.exact
    assert 0.0999999 < place.value.as_py() < 0.1


def test_comparisons_with_zero_mean_both_zeros() -> None:
    def text(operator: str) -> str:
        found = compared(operator, Place(pa.scalar(0.0)))
        if isinstance(found, IsIn):
            return str(found.values.to_pylist())
        assert isinstance(found, Between)
        bound, inclusive = (
            (found.low, found.low_inclusive) if found.high is None else (found.high, found.high_inclusive)
        )
        assert bound is not None
        return f"{bound.as_py()}{' included' if inclusive else ''}"

    assert [text(operator) for operator in ("=", "<", "<=", ">", ">=")] == [
        "[-0.0, 0.0]",
        "-0.0",
        "0.0 included",
        "0.0",
        "-0.0 included",
    ]


def test_indices_hold_plain_types() -> None:
    assert plain_type(pa.dictionary(pa.int8(), pa.string())) == pa.string()
    assert plain_type(pa.int8()) == pa.int8()
