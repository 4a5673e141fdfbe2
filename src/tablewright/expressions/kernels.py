"""Simple conditions on Arrow's kernels, without a query plan of DataFusion, which costs as much as the evaluation.

Comparisons of a column, or of a whole number's remainder, with a literal; IN, BETWEEN, IS [NOT] NULL, LIKE with nothing
but a % at either end, and AND and OR of those. Only where both engines mean the same: numbers that the column's type
can hold exactly, and text. There is no NOT here, so it does not matter that a null may come out as false: a filter
drops both.

DataFusion orders all floats: NaN comes after everything and equals itself, a NaN with a negative sign comes before
everything, and both zeros are equal in some places. So a literal here is neither NaN nor zero, except that a zero in a
list means both; *greater* is the opposite of *less or equal*, and negative NaNs, of which Arrow knows nothing, are
added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["Condition", "condition_of", "equality_of"]

_COMPARISONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_LESS = ("less", "less_equal")
_OPPOSITES = {"greater": "less_equal", "greater_equal": "less"}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOGIC = {"AND": "and_kleene", "OR": "or_kleene"}
_BLOCK_ROWS = 1 << 13
_NARROW = 1 << 32
_PATTERNS = {(False, True): "starts_with", (True, False): "ends_with", (True, True): "match_substring"}
_WILD = frozenset("%_\\")
_EQUALITY = re.compile(r"""\s*"([^"]+)"\s*=\s*(?:([0-9]{1,18})|'([^'"\\]*)')\s*""", re.ASCII)
_TESTS = {"IsNull": "is_null", "IsNotNull": "is_valid"}


@dataclass(frozen=True, slots=True)
class Remainder:
    """``column % divisor``, with the sign of the column's value. The divisor is positive."""

    column: str
    divisor: int

    def compared(self, function: str, value: int, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Whether the remainder compares so with a value; false for null. In blocks that stay in the cache."""
        column = batch.column(self.column)
        known = pc.fill_null(column, 0) if column.null_count else column
        numbers = known.to_numpy(zero_copy_only=False)
        compare, narrow = getattr(np, function), _NarrowRemainders.of(self.divisor, function, value)
        bits, mask = np.empty(-(-len(numbers) // 8), np.uint8), np.empty(_BLOCK_ROWS, np.bool_)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            block = numbers[start : start + _BLOCK_ROWS]
            answers = mask[: len(block)]
            if narrow is None or not narrow.compared(block, answers):
                compare(self._of(block.astype(np.int64, copy=False)), value, out=answers)
            packed = np.packbits(answers, bitorder="little")
            bits[start // 8 : start // 8 + len(packed)] = packed
        found = as_mask(pa.Array.from_buffers(pa.bool_(), len(numbers), [None, pa.py_buffer(bits)]))
        return as_mask(pc.and_(found, column.is_valid())) if column.null_count else found

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

    def compared(self, numbers: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> bool:
        """Fill the mask; false if a number is negative or too wide."""
        words = numbers.view(np.uint64) if numbers.itemsize == 8 else numbers.astype(np.uint64)
        if int(words.max()) >= _NARROW:
            return False
        place = words * np.uint64(self.factor)
        if self.begin:
            place -= np.uint64(self.begin)
        compare = np.less if self.is_within else np.greater_equal
        compare(place, np.uint64(self.length), out=mask)
        return True


@dataclass(frozen=True, slots=True)
class Condition:
    """A kernel, and what it is applied to: columns by name, remainders, literals, or other conditions."""

    function: str
    operands: tuple[Any, ...]
    values: pa.Array | None = None

    @property
    def is_selective(self) -> bool:
        """Whether it asks for one value of a column, or for some: few rows are likely to have one."""
        if self.function in _LOGIC.values():
            chosen = [operand.is_selective for operand in self.operands]
            return any(chosen) if self.function == _LOGIC["AND"] else all(chosen)
        return isinstance(self.operands[0], str) and self.function in ("equal", "is_in")

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """True where the condition holds; false or null elsewhere."""
        if self.values is not None:
            return pc.is_in(batch.column(self.operands[0]), value_set=self.values)
        first, *others = self.operands
        if isinstance(first, Remainder):
            return first.compared(self.function, others[0].as_py(), batch)
        if self.function in _PATTERNS.values():
            return as_mask(getattr(pc, self.function)(batch.column(first), pattern=others[0].as_py()))
        mask = as_mask(pc.call_function(self.function, [_value(operand, batch) for operand in self.operands]))
        if self.function in _LESS and isinstance(first, str) and at.is_floating(batch.schema.field(first).type):
            return _with_negative_nan(batch.column(first), mask)
        return mask


def _with_negative_nan(column: pa.Array, mask: pa.BooleanArray) -> pa.BooleanArray:
    """The values below a number, with the NaNs that have a negative sign."""
    unordered = pc.is_nan(column)
    if not unordered.true_count:
        return mask
    negative = np.signbit(column.to_numpy(zero_copy_only=False))
    both = pc.call_function("and_kleene", [unordered, pa.array(negative)])
    return as_mask(pc.call_function("or_kleene", [mask, both]))


def as_mask(values: pa.Array) -> pa.BooleanArray:
    """The answers of a condition, which are booleans: values of another type would choose other rows."""
    assert isinstance(values, pa.BooleanArray), f"a condition answers with booleans, not with {values.type}"
    return values


def _value(operand: Any, batch: pa.RecordBatch) -> Any:
    if isinstance(operand, Condition):
        return operand.mask(batch)
    return batch.column(operand) if isinstance(operand, str) else operand


def equality_of(sql: str, types: Mapping[str, pa.DataType]) -> Condition | None:
    """The condition that translated SQL is, if that is a column beside a whole number or a plain text: as
    :func:`condition_of` has it, without a parser.

    >>> print(equality_of('"x" = 5', {"x": pa.int8()}).operands, equality_of('"x" = 500', {"x": pa.int8()}))
    ('x', <pyarrow.Int8Scalar: 5>) None
    """
    match = _EQUALITY.fullmatch(sql)
    if match is None or match[1] not in types:
        return None
    name, number, text = match.groups()
    kind = types[name]
    fits = at.is_integer(kind) if text is None else at.is_string(kind) or at.is_large_string(kind)
    if not fits:
        return None
    try:
        return Condition("equal", (name, pa.scalar(int(number) if text is None else text, kind)))
    except (pa.ArrowInvalid, OverflowError):
        return None


def condition_of(tree: Expr, types: Mapping[str, pa.DataType]) -> Condition | None:
    """The condition that a tree is, if it is simple. ``types`` are those of the columns, by the names in the tree."""
    variant = tree.variant_name()
    if variant == "BinaryExpr":
        operator = tree.rex_call_operator()
        left, right = tree.rex_call_operands()
        if operator in _LOGIC:
            return _both(_LOGIC[operator], condition_of(left, types), condition_of(right, types))
        if left.variant_name() == "Literal":
            operator, left, right = _TURNED.get(operator, operator), right, left
        return _comparison(operator, left, right, types)
    if variant in _TESTS:
        (column,) = tree.rex_call_operands()
        name = _column(column, types)
        plain = name is not None and not isinstance(types[name], pa.BaseExtensionType)
        return Condition(_TESTS[variant], (name,)) if name is not None and plain else None
    if variant == "Like":
        return _pattern(tree, types)
    if variant in ("InList", "Between") and not tree.to_variant().negated():
        return _range_or_list(variant, tree.rex_call_operands(), types)
    return None


def _pattern(tree: Expr, types: Mapping[str, pa.DataType]) -> Condition | None:
    """A LIKE that asks for a text, or for its begin, its end or a part of it. ILIKE is the same variant."""
    like = tree.to_variant()
    column, pattern = tree.rex_call_operands()
    name = _column(column, types)
    literal = None if name is None else _literal(pattern, types[name])
    is_plain = not like.negated() and like.escape_char() is None and "ILIKE" not in str(tree.canonical_name()).upper()
    if name is None or literal is None or not is_plain:
        return None
    text = str(literal.as_py())
    wild = text.startswith("%"), text.endswith("%")
    inner = text[wild[0] : len(text) - wild[1]]
    if not inner or not _WILD.isdisjoint(inner):
        return None
    return Condition(_PATTERNS.get(wild, "equal"), (name, pa.scalar(inner, types[name])))


def _both(function: str, left: Condition | None, right: Condition | None) -> Condition | None:
    return None if left is None or right is None else Condition(function, (left, right))


def _range_or_list(variant: str, operands: list[Expr], types: Mapping[str, pa.DataType]) -> Condition | None:
    column, *others = operands
    if variant == "Between":
        low, high = others
        return _both("and_kleene", _comparison(">=", column, low, types), _comparison("<=", column, high, types))
    name = _column(column, types)
    if name is None:
        return None
    zeros = [other for other in others if at.is_floating(types[name]) and _is_zero(other)]
    literals = [literal for other in others if (literal := _literal(other, types[name])) is not None]
    if len(literals) + len(zeros) < len(others):
        return None
    both_zeros = [0.0, -0.0] if zeros else []
    return Condition("is_in", (name,), pa.array([*both_zeros, *(each.as_py() for each in literals)], types[name]))


def _is_zero(tree: Expr) -> bool:
    """Whether it is the literal 0, of either sign, of a type that both engines compare with floats in the same way."""
    if tree.variant_name() != "Literal":
        return False
    value = tree.python_value()
    return bool(value.is_valid and (at.is_integer(value.type) or at.is_floating(value.type)) and value.as_py() == 0)


def _comparison(operator: str, column: Expr, literal: Expr, types: Mapping[str, pa.DataType]) -> Condition | None:
    if operator not in _COMPARISONS:
        return None
    name = _column(column, types)
    if name is None:
        rest, number = _remainder(column, types), _literal(literal, pa.int64())
        return None if rest is None or number is None else Condition(_COMPARISONS[operator], (rest, number))
    value, function = _literal(literal, types[name]), _COMPARISONS[operator]
    if value is None:
        return None
    if at.is_floating(types[name]) and function in _OPPOSITES:
        return Condition("invert", (Condition(_OPPOSITES[function], (name, value)),))
    return Condition(function, (name, value))


def _remainder(tree: Expr, types: Mapping[str, pa.DataType]) -> Remainder | None:
    if tree.variant_name() != "BinaryExpr" or tree.rex_call_operator() != "%":
        return None
    column, divisor = tree.rex_call_operands()
    name, number = _column(column, types), _literal(divisor, pa.int64())
    if name is None or number is None or number.as_py() <= 0:
        return None
    fits = at.is_integer(types[name]) and not at.is_uint64(types[name])
    return Remainder(name, number.as_py()) if fits else None


def _column(tree: Expr, types: Mapping[str, pa.DataType]) -> str | None:
    if tree.variant_name() != "Column":
        return None
    name = str(tree.canonical_name())
    return name if name in types else None


def _literal(tree: Expr, kind: pa.DataType) -> pa.Scalar | None:
    """A literal in the column's own type; ``None`` if it is none, is null, or does not fit exactly."""
    if tree.variant_name() != "Literal":
        return None
    value = tree.python_value()
    number = at.is_integer(value.type) or at.is_floating(value.type)
    whole = at.is_integer(kind) and at.is_integer(value.type)
    text = (at.is_string(kind) or at.is_large_string(kind)) and at.is_string(value.type)
    real = (at.is_float64(kind) or at.is_float32(kind)) and number
    if not value.is_valid or not (whole or text or real):
        return None
    try:
        fitting = pa.scalar(value.as_py(), kind)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return fitting if not real or (fitting.as_py() == value.as_py() and value.as_py()) else None
