"""Type checks of comparisons, done once on the expression tree, before any row is read.

DataFusion casts text to numbers row by row and fails on the first row that is none. Lance refuses a literal that does
not fit the column. We refuse as Lance does where the meaning is ambiguous, and allow what is not:

======================  ======================  =================================================================
one side                other side
======================  ======================  =================================================================
number                  any other number        compared by value (``x = 1.0``, ``i8 = 300`` is never true)
time                    text literal            the text is read as a time; unreadable text is refused
time                    text that varies        refused: cast it
text                    number or boolean       refused: ``x = 'abc'``, ``s = 1``
boolean                 number                  refused
interval                anything                refused: DataFusion orders 25 hours before 1 day
======================  ======================  =================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tablewright.expressions.engine import ExpressionError, Frame

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["check_tree"]

_COMPARISONS = frozenset(["=", "!=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
_NOT_OF_THE_ROW = {
    "AggregateFunction": "an aggregate (it needs many rows)",
    "WindowFunction": "a window function (it needs many rows)",
    "InSubquery": "a subquery",
    "Exists": "a subquery",
    "ScalarSubquery": "a subquery",
    "SetComparison": "a subquery",
    "Placeholder": "a placeholder",
    "Unnest": "unnest (it makes many rows of one)",
    "RLike": "SIMILAR TO (regexp_like does the same)",
}


def check_tree(frame: Frame, expression: Expr) -> None:
    """Raise :class:`ExpressionError` if a part of the expression can't be evaluated per row or compares badly."""
    variant = expression.variant_name()
    if variant in _NOT_OF_THE_ROW:
        raise ExpressionError(f"{_NOT_OF_THE_ROW[variant]} can't be used here: {_shown(expression)}")
    if variant in ("Column", "Literal"):
        return
    operands = _operands(expression)
    for operand in operands:
        check_tree(frame, operand)
    for left, right in _compared(expression, variant, operands):
        _check_pair(frame, left, right)


def _operands(expression: Expr) -> list[Expr]:
    try:
        return list(expression.rex_call_operands())
    except RuntimeError:  # a variant without operands for Python
        return []


def _compared(expression: Expr, variant: str, operands: list[Expr]) -> Iterator[tuple[Expr, Expr]]:
    if variant == "BinaryExpr" and expression.rex_call_operator() in _COMPARISONS:
        yield operands[0], operands[1]
    elif variant in ("InList", "Between"):
        for other in operands[1:]:
            yield operands[0], other


def _check_pair(frame: Frame, left: Expr, right: Expr) -> None:
    left_type, right_type = frame.field(left).type, frame.field(right).type
    kinds = {_kind(left_type), _kind(right_type)}
    if kinds in ({"text", "number"}, {"text", "boolean"}, {"number", "boolean"}):
        raise ExpressionError(_mismatch(left, left_type, right, right_type))
    if "interval" in kinds:
        raise ExpressionError(
            f"{_shown(left)} and {_shown(right)} are spans of time without an order (is a month 30 days?). "
            "Compare moments instead, as in ts < now() - interval '90 days'"
        )
    if kinds == {"text", "time"}:
        text, other, kind = (left, right, right_type) if _kind(left_type) == "text" else (right, left, left_type)
        if text.variant_name() != "Literal" or not _readable(text, kind):
            raise ExpressionError(_mismatch(other, kind, text, frame.field(text).type))


def _readable(literal: Expr, kind: pa.DataType) -> bool:
    one_row = Frame(pa.record_batch([pa.nulls(1)], names=["none"]))
    try:
        one_row.values([literal.cast(kind)])
    except ExpressionError:
        return False
    return True


def _mismatch(left: Expr, left_type: pa.DataType, right: Expr, right_type: pa.DataType) -> str:
    if left.variant_name() == "Literal" or (right.variant_name() == "Column" and left.variant_name() != "Column"):
        left, left_type, right, right_type = right, right_type, left, left_type
    text = f"{_shown(left)} is of type {left_type} and can't be compared with {_shown(right)} of type {right_type}"
    if right.variant_name() == "Literal" and _kind(right_type) == "text":
        return f"{text}: could not convert the literal to {left_type}. A column's name is quoted by backticks"
    return f"{text}: {_advice(left, left_type, right, right_type)}"


_SQL_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "tinyint unsigned",
    pa.uint16(): "smallint unsigned",
    pa.uint32(): "int unsigned",
    pa.uint64(): "bigint unsigned",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def _advice(left: Expr, left_type: pa.DataType, right: Expr, right_type: pa.DataType) -> str:
    """What to write instead: a cast that SQL can do, of a column if one of the two is."""
    if _kind(left_type) == "text" and right.variant_name() == "Literal" and _kind(right_type) == "number":
        return f"write '{_shown(right)}' in quotes, or cast({_shown(left)} as {_sql_name(right_type)})"
    if _kind(left_type) != "text" and _kind(right_type) == "text":
        return f"cast one of them, as in cast({_shown(left)} as string)"
    if {_kind(left_type), _kind(right_type)} == {"number", "boolean"}:
        number, truth = (left, right) if _kind(left_type) == "number" else (right, left)
        if truth.variant_name() == "Literal":
            return f"compare it with a number, as in {_shown(number)} <> 0"
        return f"cast one of them, as in cast({_shown(truth)} as int)"
    if right.variant_name() == "Column" and _kind(left_type) == "text":
        return f"cast one of them, as in cast({_shown(right)} as string)"
    return f"cast one of them, as in cast({_shown(left)} as {_sql_name(right_type)})"


def _sql_name(kind: pa.DataType) -> str:
    """A type as ``cast`` spells it."""
    if pa.types.is_dictionary(kind):
        return _sql_name(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_time(kind):
        return "time"
    return _SQL_NAMES.get(kind, "string")


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return "time"
    if pa.types.is_interval(kind):
        return "interval"
    return str(kind)


def _shown(expression: Expr) -> str:
    if expression.variant_name() == "Literal":
        return repr(expression.python_value().as_py())
    if expression.variant_name() == "Column":
        name = str(expression.canonical_name())
        return name if name.isidentifier() else f"`{name}`"
    return str(expression.canonical_name())
