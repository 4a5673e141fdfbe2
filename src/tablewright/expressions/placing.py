"""Where a literal lies among the values of a column whose type can't hold it, or not exactly.

A filter compares numbers by value: it casts the column to a type that holds both, and no value changes by that. So
``x < 1.5`` means ``x <= 1`` for whole numbers, ``x = 300`` is never true for a byte, and ``x > 0.1`` on a float of 32
bits asks for the floats above the greatest one below 0.1. Where the cast may change values (64-bit integers as floats
from 2**53 on), or two types are not numbers, the answer is ``None``, and nothing is said about the comparison.

Floats are ordered as in :mod:`.queries`, but a comparison with zero means both zeros.

Tests: ``tests/unit/expressions/test_placing.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.expressions.queries import Between, IsIn

__all__ = ["Place", "compared", "place_of", "plain_type"]

_EXACT_FLOAT_LIMIT = 2**53
_FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
_WIDE = 64


@dataclass(frozen=True, slots=True)
class Place:
    """The greatest value of the column's type that is not greater than the literal, and whether it is equal.

    ``None``: all values of the type are greater.
    """

    value: pa.Scalar | None
    exact: bool = True


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that an index stores for a column: values of a dictionary, the storage of an extension type."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    return kind.value_type if at.is_dictionary(kind) else kind


def place_of(literal: pa.Scalar, kind: pa.DataType) -> Place | None:
    """Where a literal lies among the values of a type; ``None`` if that can't be said.

    >>> place_of(pa.scalar(1.5), pa.int32())
    Place(value=<pyarrow.Int32Scalar: 1>, exact=False)
    >>> place_of(pa.scalar(-3), pa.uint8())
    Place(value=None, exact=False)
    """
    if at.is_dictionary(literal.type):
        literal = literal.cast(literal.type.value_type)
    given = literal.type
    if given == kind:
        return Place(literal)
    if at.is_integer(kind) and (at.is_integer(given) or at.is_decimal(given)):
        return _whole(literal.as_py(), kind)
    if at.is_integer(kind) and at.is_float64(given):
        return _whole_of_float(literal.as_py(), kind)
    if at.is_floating(kind) and at.is_floating(given) and kind.bit_width < given.bit_width:
        return _float(literal.as_py(), kind)
    if at.is_decimal(kind) and at.is_decimal(given):
        return _decimal(literal.as_py(), kind)
    return None


def compared(operator: str, place: Place) -> IsIn | Between | bool:
    """The condition that ``column operator literal`` is; or whether it is true for every value, or for none.

    >>> compared(">=", Place(pa.scalar(1), exact=False)).low_inclusive
    False
    >>> compared("=", Place(pa.scalar(1), exact=False)), compared(">", Place(None, exact=False))
    (False, True)
    """
    value, exact = place.value, place.exact
    if value is None:
        return operator in (">", ">=")
    if exact and at.is_floating(value.type) and value.as_py() == 0:
        return _compared_with_zero(operator, value.type)
    if operator == "=":
        return IsIn(pa.array([value.as_py()], value.type)) if exact else False
    if operator in ("<", "<="):
        return Between(high=value, high_inclusive=operator == "<=" or not exact)
    assert operator in (">", ">="), operator
    return Between(low=value, low_inclusive=operator == ">=" and exact)


def _compared_with_zero(operator: str, kind: pa.DataType) -> IsIn | Between:
    """Both zeros are equal where values are compared, and two values where they are ordered."""
    below, above = (pa.scalar(_FLOATS[kind.bit_width](zero), kind) for zero in (-0.0, 0.0))
    if operator == "=":
        return IsIn(pa.array([below.as_py(), above.as_py()], kind))
    if operator in ("<", "<="):
        return Between(high=above if operator == "<=" else below, high_inclusive=operator == "<=")
    return Between(low=below if operator == ">=" else above, low_inclusive=operator == ">=")


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    return (0, 2**bits - 1) if at.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _whole(number: int | Decimal, kind: pa.DataType) -> Place:
    low, high = _bounds(kind)
    below = math.floor(number)
    if below < low:
        return Place(None, exact=False)
    if below > high:
        return Place(pa.scalar(high, kind), exact=False)
    return Place(pa.scalar(below, kind), exact=below == number)


def _whole_of_float(number: float, kind: pa.DataType) -> Place | None:
    high = _bounds(kind)[1]
    if math.isnan(number) or number == math.inf:  # NaN is greater than every number
        return Place(pa.scalar(high, kind), exact=False)
    if number == -math.inf:
        return Place(None, exact=False)
    if kind.bit_width == _WIDE and abs(number) >= _EXACT_FLOAT_LIMIT:
        return None
    return _whole(Decimal(number), kind)


def _float(number: float, kind: pa.DataType) -> Place:
    narrow: Any = _FLOATS[kind.bit_width]
    with np.errstate(over="ignore"):
        rounded = narrow(number)
    if math.isnan(number) or float(rounded) == number:
        return Place(pa.scalar(rounded, kind))
    if float(rounded) > number:
        rounded = np.nextafter(rounded, narrow(-math.inf))
    return Place(pa.scalar(rounded, kind), exact=False)


def _decimal(number: Decimal, kind: Any) -> Place:
    context = Context(prec=100)
    unit = Decimal(1).scaleb(-kind.scale, context)
    most = context.multiply(Decimal(10**kind.precision - 1), unit)
    below = number.quantize(unit, ROUND_FLOOR, context)
    if below < -most:
        return Place(None, exact=False)
    if below > most:
        return Place(pa.scalar(most, kind), exact=False)
    return Place(pa.scalar(below, kind), exact=below == number)
