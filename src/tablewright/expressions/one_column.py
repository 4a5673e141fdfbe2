"""Filters that compare one column with plain literals, recognised without a parser: services send them all the time.

``id = 7``, ``id IN (7, 8)``, ``id BETWEEN 7 AND 9``, ``id >= 7 AND id < 9``, with whole numbers or plain texts. Filters
that differ in their literals only have the same *shape*. So whoever knows what the parser makes of one of them, and
that :meth:`OneColumn.query` is the same, may ask that method for the others. Whatever looks unusual is not recognised:
it is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from tablewright.expressions.queries import Between, IsIn, Query

__all__ = ["OneColumn", "recognise", "same_query"]

_LITERAL = r"""(?:(?:(?<![<>])-)?[0-9]{1,18}|'[^'"\\]*')"""
_TERM = re.compile(
    rf"""([A-Za-z_][A-Za-z0-9_]*)
    (?:\s*(<=|>=|=|<|>)\s*({_LITERAL})
      |\s+[Ii][Nn]\s*\(\s*({_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)
      |\s+[Bb][Ee][Tt][Ww][Ee][Ee][Nn]\s+({_LITERAL})\s+[Aa][Nn][Dd]\s+({_LITERAL}))""",
    re.ASCII | re.VERBOSE,
)
_AND = re.compile(r"\s+[Aa][Nn][Dd]\s+", re.ASCII)
_LITERALS = re.compile(_LITERAL, re.ASCII)
_TERMS_MAX = 2
_LENGTH_MAX = 100_000

Literal = int | str


@dataclass(frozen=True, slots=True)
class OneColumn:
    """A filter on ``column``: one of some ``values``, or a range from the first to the last of them.

    ``bounds`` are the operators of a range, ``""`` for a bound that is not there; they are empty for a list.
    """

    column: str
    values: tuple[Literal, ...]
    bounds: tuple[str, ...] = ()

    @property
    def shape(self) -> Hashable:
        """What does not depend on the literals."""
        return self.column, isinstance(self.values[0], str), self.bounds

    def query(self, kind: pa.DataType) -> Query | None:
        """The condition on a column of this type; ``None`` if the literals are of other types, or do not fit it."""
        is_text = isinstance(self.values[0], str)
        if not (at.is_string(kind) or at.is_large_string(kind) if is_text else at.is_integer(kind)):
            return None
        try:
            values = pa.array(self.values, kind)
        except (pa.ArrowInvalid, OverflowError):
            return None
        if not self.bounds:
            return IsIn(values)
        low, high = self.bounds
        return Between(
            low=values[0] if low else None,
            high=values[-1] if high else None,
            low_inclusive=low != ">",
            high_inclusive=high != "<",
        )


def recognise(filter: str) -> OneColumn | None:
    """The filter that a text is, if that is plain.

    >>> recognise("id IN (3, -4)")
    OneColumn(column='id', values=(3, -4), bounds=())
    >>> recognise("id >= 3 and id < 9").bounds, recognise("id between 3 and 9").bounds
    (('>=', '<'), ('>=', '<='))
    >>> recognise("id = 3 OR id = 4"), recognise("id < a"), recognise("id > 3 and id > 4")
    (None, None, None)
    """
    if len(filter) > _LENGTH_MAX:
        return None
    text, at_text = filter.strip(" \t\r\n"), 0
    terms: list[re.Match[str]] = []
    while True:
        term = _TERM.match(text, at_text)
        if term is None or len(terms) == _TERMS_MAX:
            return None
        terms.append(term)
        at_text = term.end()
        if at_text == len(text):
            break
        joint = _AND.match(text, at_text)
        if joint is None:
            return None
        at_text = joint.end()
    return _list(terms[0]) or _range(terms) if len(terms) == 1 else _range(terms)


def same_query(one: Query, other: Query) -> bool:
    """Whether two lists or ranges ask for the same values."""
    if isinstance(one, IsIn) and isinstance(other, IsIn):
        return bool(one.values.equals(other.values))
    return isinstance(one, Between) and one == other


def _list(term: re.Match[str]) -> OneColumn | None:
    column, operator, literal, several, *_ = term.groups()
    if operator == "=":
        several = literal
    return None if several is None else _with_values(column, _LITERALS.findall(several), ())


def _range(terms: list[re.Match[str]]) -> OneColumn | None:
    """One range of one column. Two bounds of the same side are left to the parser."""
    found: dict[str, str] = {}
    for term in terms:
        column, operator, literal, several, low, high = term.groups()
        if column != terms[0][1] or several is not None or operator == "=":
            return None
        new = {operator: literal} if operator else {">=": low, "<=": high}
        if {each[0] for each in new} & {each[0] for each in found}:
            return None
        found |= new
    low, high = (next((each for each in found if each[0] == side), "") for side in "><")
    return _with_values(terms[0][1], [found[each] for each in (low, high) if each], (low, high))


def _with_values(column: str, literals: list[str], bounds: tuple[str, ...]) -> OneColumn | None:
    """With the literals as values; they have to be all numbers or all texts."""
    is_text = literals[0][0] == "'"
    if any((literal[0] == "'") is not is_text for literal in literals):
        return None
    values: tuple[Literal, ...] = tuple(literal[1:-1] if is_text else int(literal) for literal in literals)
    return OneColumn(column, values, bounds)
