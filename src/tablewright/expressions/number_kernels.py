"""Comparisons of columns of numbers with a literal, on numpy.

65,536 floats take 16 us instead of 103 by Arrow's kernels, which need a second pass for NaN; whole numbers 15 instead
of 38.

Floats compare as DataFusion orders them: NaN comes after everything, a NaN with a negative sign before everything. The
bits of a float, read as a whole number, have that order on either side of zero: signed for a positive literal; unsigned
and turned round for a negative one, since numbers further below zero have larger bits. So a literal is neither zero nor
NaN. Nulls compare as false.

Tests: ``tests/unit/expressions/test_kernels.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.arrow_bits import Bools, valid_bools

__all__ = ["COMPARISONS", "Remainder", "compares_numbers", "number_comparison", "numbers_of"]

OfColumn = Callable[[pa.Array], Bools]
"""A comparison that was prepared once and is asked for each batch: preparing takes longer than 8,192 rows."""

COMPARISONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_LESS = ("less", "less_equal")
_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_BITS = {4: (np.int32, np.uint32), 8: (np.int64, np.uint64)}
_NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_DTYPES = {getattr(pa, name)(): np.dtype(name) for name in _NAMES}
_DTYPES_BY_ID = {kind.id: dtype for kind, dtype in _DTYPES.items()}  # a type's own hash takes microseconds
_BLOCK_ROWS = 1 << 13
_NARROW = 1 << 32


def compares_numbers(function: str, kind: pa.DataType) -> bool:
    """Whether a comparison of a column of this type is one of :func:`number_comparison`."""
    return kind in _DTYPES and function in COMPARISONS.values()


def number_comparison(function: str, kind: pa.DataType, literal: int | float) -> OfColumn:
    """Tells for which rows a column of type ``kind`` compares so with a literal that the type can hold exactly.

    >>> number_comparison("greater", pa.float64(), 1.0)(pa.array([1.5, None, float("nan"), 0.5])).tolist()
    [True, False, True, False]
    """
    dtype = _DTYPES[kind]
    value = dtype.type(literal)
    if function in _TURNED and dtype.kind == "f":
        signed, unsigned = _BITS[dtype.itemsize]
        function = function if literal > 0 else _TURNED[function]
        dtype = np.dtype(signed if literal > 0 else unsigned)
        value = value.view(dtype)
    compare = getattr(np, function)
    return lambda column: _valid(compare(_values(column, dtype), value), column)


def numbers_of(column: pa.Array) -> npt.NDArray[Any] | None:
    """The values of a column of numbers without nulls, without a copy; ``None`` for other columns.

    >>> numbers_of(pa.array([1, 2, 3])[1:]).tolist(), numbers_of(pa.array([1, None]))
    ([2, 3], None)
    """
    dtype = _DTYPES_BY_ID.get(column.type.id)
    return None if dtype is None or column.null_count else _values(column, dtype)


def _values(column: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values of a column of numbers, without a copy, read as ``dtype``; those of nulls are undefined."""
    data, count = column.buffers()[1], len(column)
    if data is None or not count:
        return np.zeros(count, dtype)
    return np.frombuffer(memoryview(data), dtype, count, column.offset * dtype.itemsize)


def _valid(found: Bools, column: pa.Array) -> Bools:
    valid = valid_bools(column)
    return found if valid is None else np.logical_and(found, valid, out=found)


@dataclass(frozen=True, slots=True)
class Remainder:
    """``column % divisor``, with the sign of the column's value. The divisor is positive."""

    column: str
    divisor: int

    def comparison(self, function: str, value: int) -> OfColumn:
        """Tells for which rows of a column the remainder compares so with a value.

        It works in blocks that stay in the processor's caches, and uses the same memory for all of them: one thread
        at a time may call it.
        """
        compare, narrow = getattr(np, function), _NarrowRemainders.of(self.divisor, function, value)

        def compared(column: pa.Array) -> Bools:
            numbers = _values(column, _DTYPES_BY_ID[column.type.id])
            found = np.empty(len(numbers), np.bool_)
            for start in range(0, len(numbers), _BLOCK_ROWS):
                block, answers = numbers[start : start + _BLOCK_ROWS], found[start : start + _BLOCK_ROWS]
                if narrow is None or not narrow.compared(block, answers):
                    compare(self._of(block.astype(np.int64, copy=False)), value, out=answers)
            return _valid(found, column)

        return compared

    def _of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        rest = np.floor_divide(numbers, self.divisor)  # quicker than numpy's own remainder
        rest *= self.divisor
        np.subtract(numbers, rest, out=rest)
        if numbers.min() < 0:
            rest[(numbers < 0) & (rest != 0)] -= self.divisor
        return rest


@dataclass(frozen=True, slots=True)
class _NarrowRemainders:
    """Whether numbers below 2**32 have a remainder in a range, or not in it: by a product, without a division.

    The product of n and 2**64 / divisor, rounded up, has in its lower 64 bits n's remainder, in units of 2**64 /
    divisor, and an error of less than 2**32, which is at most one unit.
    """

    factor: np.uint64
    begin: np.uint64
    length: np.uint64
    is_within: bool
    places: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, divisor: int, function: str, value: int) -> _NarrowRemainders | None:
        """``None`` if the divisor is wider, or all remainders compare in one way."""
        low, high = {"equal": (value, value + 1), "not_equal": (value, value + 1)}.get(
            function, (0, value + (function in ("less_equal", "greater")))
        )
        low, high = max(0, low), min(divisor, high)
        if divisor > _NARROW or low >= high or high - low == divisor:
            return None
        begin, end = (-(-(edge << 64) // divisor) for edge in (low, high))
        factor, length = np.uint64(-(-(1 << 64) // divisor)), np.uint64(end - begin)
        is_within = function in ("equal", *_LESS)
        return cls(factor, np.uint64(begin), length, is_within, np.empty(_BLOCK_ROWS, np.uint64))

    def compared(self, numbers: npt.NDArray[Any], answers: Bools) -> bool:
        """Fill the answers; false if a number is negative or too wide."""
        words = numbers.view(np.uint64) if numbers.itemsize == 8 else numbers.astype(np.uint64)
        if np.maximum.reduce(words) >= _NARROW:
            return False
        place = np.multiply(words, self.factor, out=self.places[: len(words)])
        if self.begin:
            np.subtract(place, self.begin, out=place)
        compare = np.less if self.is_within else np.greater_equal
        compare(place, self.length, out=answers)
        return True
