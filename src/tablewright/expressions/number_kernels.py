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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.arrow_bits import Bools, valid_bools

__all__ = ["COMPARISONS", "Remainder", "compares_numbers", "numbers_compared"]

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
_BLOCK_ROWS = 1 << 13
_NARROW = 1 << 32


def compares_numbers(function: str, kind: pa.DataType) -> bool:
    """Whether a comparison of a column of this type is one of :func:`numbers_compared`."""
    return kind in _DTYPES and function in COMPARISONS.values()


def numbers_compared(function: str, column: pa.Array, literal: int | float) -> Bools:
    """For which rows a column compares so with a literal that its type can hold exactly.

    >>> numbers_compared("greater", pa.array([1.5, None, float("nan"), 0.5]), 1.0).tolist()
    [True, False, True, False]
    """
    numbers = _numbers(column)
    value = numbers.dtype.type(literal)
    if function in _TURNED and numbers.dtype.kind == "f":
        signed, unsigned = _BITS[numbers.itemsize]
        if literal > 0:
            numbers, value = numbers.view(signed), value.view(signed)
        else:
            numbers, value, function = numbers.view(unsigned), value.view(unsigned), _TURNED[function]
    return _valid(getattr(np, function)(numbers, value), column)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column of numbers, without a copy; those of nulls are undefined."""
    data, kind = column.buffers()[1], _DTYPES[column.type]
    if data is None or not len(column):
        return np.zeros(len(column), kind)
    return np.frombuffer(memoryview(data), kind)[column.offset : column.offset + len(column)]


def _valid(found: Bools, column: pa.Array) -> Bools:
    valid = valid_bools(column)
    return found if valid is None else np.logical_and(found, valid, out=found)


@dataclass(frozen=True, slots=True)
class Remainder:
    """``column % divisor``, with the sign of the column's value. The divisor is positive."""

    column: str
    divisor: int

    def compared(self, function: str, column: pa.Array, value: int) -> Bools:
        """For which rows the remainder compares so with a value. In blocks that stay in the processor's caches."""
        numbers, found = _numbers(column), np.empty(len(column), np.bool_)
        compare, narrow = getattr(np, function), _NarrowRemainders.of(self.divisor, function, value)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            block, answers = numbers[start : start + _BLOCK_ROWS], found[start : start + _BLOCK_ROWS]
            if narrow is None or not narrow.compared(block, answers):
                compare(self._of(block.astype(np.int64, copy=False)), value, out=answers)
        return _valid(found, column)

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

    factor: int
    begin: int
    length: int
    is_within: bool

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
        return cls(-(-(1 << 64) // divisor), begin, end - begin, function in ("equal", *_LESS))

    def compared(self, numbers: npt.NDArray[Any], answers: Bools) -> bool:
        """Fill the answers; false if a number is negative or too wide."""
        words = numbers.view(np.uint64) if numbers.itemsize == 8 else numbers.astype(np.uint64)
        if int(words.max()) >= _NARROW:
            return False
        place = words * np.uint64(self.factor)
        if self.begin:
            place -= np.uint64(self.begin)
        compare = np.less if self.is_within else np.greater_equal
        compare(place, np.uint64(self.length), out=answers)
        return True
