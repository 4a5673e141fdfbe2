"""From a pyarrow expression to a tree of conditions on single columns (:mod:`.conditions`).

An expression can't be taken apart, but it prints itself, and two can be compared. So its text is read as what it most
likely is: comparisons of columns with literals, tests for null, AND, OR and NOT. The expression that this would be is
made again, and only if it equals the given one is the reading believed. All else is unknown: no index is asked.

Arrow compares floats differently than :mod:`.queries` orders them, and values of two types by casting one of them. So
only whole numbers, text and booleans are read, and of numbers those that the column's type can hold.

Tests: ``tests/unit/expressions/test_arrow_conditions.py``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.expressions.conditions import And, Leaf, Not, Or, Tree, Unknown
from tablewright.expressions.placing import compared, place_of
from tablewright.expressions.queries import IsIn, IsNull

__all__ = ["arrow_tree"]

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[<>=!]=|[<>]|[(){},]|[^\s(){},<>=!"]+(?:=[^\s(){},]+)?)')
_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXT_MAX = 4096


def arrow_tree(expression: pc.Expression, schema: pa.Schema) -> Tree:
    """The tree that means what the expression means to Arrow.

    >>> schema = pa.schema([("x", pa.int32()), ("s", pa.string())])
    >>> print(arrow_tree((pc.field("x") > 3) & ~(pc.field("s") == "a"), schema))
    (x > 3 AND NOT(s = 'a'))
    >>> print(arrow_tree(pc.field("x") + 1 > 3, schema))
    ?
    """
    text = str(expression)
    if len(text) > _TEXT_MAX:
        return Unknown()
    try:
        reader = _Reader([token for token in _TOKEN.findall(text) if token], schema)
        read = reader.whole()
    except _NotPlain:
        return Unknown()
    return read.tree if read.expression.equals(expression) else Unknown()


class _NotPlain(Exception):
    """The text is something else than the few forms that are read here."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A part of the text: what it means, and the expression that prints itself so."""

    tree: Tree
    expression: pc.Expression


class _Reader:
    def __init__(self, tokens: list[str], schema: pa.Schema) -> None:
        self._tokens, self._schema, self._at = tokens, schema, 0

    def whole(self) -> _Read:
        read = self._condition()
        if self._at != len(self._tokens):
            raise _NotPlain
        return read

    def _take(self, wanted: str | None = None) -> str:
        if self._at >= len(self._tokens) or (wanted is not None and self._tokens[self._at] != wanted):
            raise _NotPlain
        self._at += 1
        return self._tokens[self._at - 1]

    def _condition(self) -> _Read:
        token = self._take()
        if token == "(":
            return self._in_parentheses()
        if token == "invert":
            self._take("(")
            inner = self._condition()
            self._take(")")
            return _Read(Not(inner.tree), ~inner.expression)
        if token in ("is_null", "is_valid"):
            return self._null_test(token)
        kind = self._kind(token)
        if not at.is_boolean(kind):
            raise _NotPlain
        return _Read(Leaf((token,), IsIn(pa.array([True]))), pc.field(token))

    def _in_parentheses(self) -> _Read:
        start = self._at
        try:
            return self._comparison()
        except _NotPlain:
            self._at = start
        left = self._condition()
        operator = self._take()
        right = self._condition()
        self._take(")")
        if operator == "and":
            return _Read(And((left.tree, right.tree)), left.expression & right.expression)
        if operator == "or":
            return _Read(Or((left.tree, right.tree)), left.expression | right.expression)
        raise _NotPlain

    def _comparison(self) -> _Read:
        name, operator, text = self._take(), self._take(), self._take()
        self._take(")")
        kind = self._kind(name)
        if operator not in _OPERATORS:
            raise _NotPlain
        value = _literal(text, kind)
        place = place_of(pa.scalar(value), kind)
        if place is None or not place.exact:
            raise _NotPlain
        field = pc.field(name)
        made = {
            "==": field == value,
            "!=": field != value,
            "<": field < value,
            "<=": field <= value,
            ">": field > value,
            ">=": field >= value,
        }[operator]
        query = compared("=" if operator == "!=" else _OPERATORS[operator], place)
        assert not isinstance(query, bool), "the column's type holds the literal"
        leaf = Leaf((name,), query)
        return _Read(Not(leaf) if operator == "!=" else leaf, made)

    def _null_test(self, function: str) -> _Read:
        self._take("(")
        name = self._take()
        if function == "is_null":
            for token in (",", "{", "nan_is_null=false", "}"):
                self._take(token)
        self._take(")")
        self._kind(name)
        field, leaf = pc.field(name), Leaf((name,), IsNull())
        return _Read(leaf, field.is_null()) if function == "is_null" else _Read(Not(leaf), field.is_valid())

    def _kind(self, name: str) -> pa.DataType:
        if name not in self._schema.names:
            raise _NotPlain
        return self._schema.field(name).type


def _literal(text: str, kind: pa.DataType) -> int | str | bool:
    if at.is_string(kind) and text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            raise _NotPlain from None
    if at.is_boolean(kind) and text in ("true", "false"):
        return text == "true"
    if at.is_integer(kind) and re.fullmatch(r"-?\d+", text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
    raise _NotPlain
