"""Simple conditions on Arrow's kernels and numpy's, without a query plan of DataFusion, which costs as much as the
evaluation.

Comparisons of a column, or of a whole number's remainder, with a literal; IN, BETWEEN, IS [NOT] NULL, LIKE with nothing
but a % at either end, and AND and OR of those. Only where both engines mean the same: numbers that the column's type
can hold exactly, and text. There is no NOT here, so null counts as false from the start: a filter drops both.

DataFusion orders all floats: NaN comes after everything and equals itself, a NaN with a negative sign comes before
everything, and both zeros are equal in some places. So a literal here is neither NaN nor zero, except that a zero in a
list means both (:mod:`.number_kernels`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.expressions.number_kernels import COMPARISONS, Remainder, compares_numbers, number_comparison
from tablewright.format.arrow_bits import Bools, bools_of

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["Condition", "Judge", "condition_of", "equality_of"]

Judge = Callable[[pa.RecordBatch], Bools]
"""Tells for which rows of a batch a filter is true."""

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOGIC = {"AND": np.logical_and, "OR": np.logical_or}
_PATTERNS = {(False, True): "starts_with", (True, False): "ends_with", (True, True): "match_substring"}
_WILD = frozenset("%_\\")
_EQUALITY = re.compile(r"""\s*"([^"]+)"\s*=\s*(?:([0-9]{1,18})|'([^'"\\]*)')\s*""", re.ASCII)
_TESTS = {"IsNull": "is_null", "IsNotNull": "is_valid"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A kernel, and what it is applied to: columns by name, remainders, literals; or AND or OR of two conditions."""

    function: str
    operands: tuple[Any, ...]
    values: pa.Array | None = None

    @property
    def is_selective(self) -> bool:
        """Whether it asks for one value of a column, or for some: few rows are likely to have one."""
        if self.function in _LOGIC:
            chosen = [operand.is_selective for operand in self.operands]
            return any(chosen) if self.function == "AND" else all(chosen)
        return isinstance(self.operands[0], str) and self.function in ("equal", "is_in")

    def mask(self, batch: pa.RecordBatch) -> Bools:
        """For which rows the condition holds; null counts as false."""
        return self.judge()(batch)

    def judge(self) -> Judge:
        """:meth:`mask` as a function for many batches, which one thread at a time may call."""
        first, *others = self.operands
        if isinstance(first, Condition):
            return _joined(self.function, first.judge(), others[0].judge())
        if isinstance(first, Remainder):
            return _of_column(first.column, first.comparison(self.function, others[0].as_py()))
        return _of_column(first, self._of_values(others))

    def _of_values(self, others: list[Any]) -> Callable[[pa.Array], Bools]:
        values = self.values
        if values is not None:
            return lambda column: bools_of(pc.is_in(column, value_set=values))
        if others and compares_numbers(self.function, others[0].type):
            return number_comparison(self.function, others[0].type, others[0].as_py())
        if self.function in _PATTERNS.values():
            matches, pattern = getattr(pc, self.function), others[0].as_py()
            return lambda column: bools_of(as_mask(matches(column, pattern=pattern)))
        return lambda column: bools_of(as_mask(pc.call_function(self.function, [column, *others])))


def _joined(function: str, left: Judge, right: Judge) -> Judge:
    join = _LOGIC[function]

    def mask(batch: pa.RecordBatch) -> Bools:
        found = left(batch)
        join(found, right(batch), out=found)
        return found

    return mask


def _of_column(name: str, judge: Callable[[pa.Array], Bools]) -> Judge:
    return lambda batch: judge(batch.column(name))


def as_mask(values: pa.Array) -> pa.BooleanArray:
    """The answers of a condition, which are booleans: values of another type would choose other rows."""
    assert isinstance(values, pa.BooleanArray), f"a condition answers with booleans, not with {values.type}"
    return values


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
            return _both(operator, condition_of(left, types), condition_of(right, types))
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
        return _both("AND", _comparison(">=", column, low, types), _comparison("<=", column, high, types))
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
    if operator not in COMPARISONS:
        return None
    name = _column(column, types)
    if name is None:
        rest, number = _remainder(column, types), _literal(literal, pa.int64())
        return None if rest is None or number is None else Condition(COMPARISONS[operator], (rest, number))
    value = _literal(literal, types[name])
    return None if value is None else Condition(COMPARISONS[operator], (name, value))


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
