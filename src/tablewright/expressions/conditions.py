"""A filter as a tree over conditions on single columns, so that indices can be asked for its parts.

The tree means what the filter means, in three-valued logic: a leaf is null where its column is null (``IsNull`` never
is). What can't be said about one column is :class:`Unknown`. A leaf that is not ``exact`` holds for more rows than the
part of the filter that it stands for, and never for fewer; so a filter that has one is looked at again.

:func:`normal_form` brings the tree into the form that is asked: no NOT but on leaves, where ``negated`` means *the rows
for which the condition is false*; ranges of one column that are joined by AND are one range, sets that are joined by OR
are one set. Where both sides of a range are known, its opposite is two ranges, for which no nulls have to be known.

Tests: ``tests/unit/expressions/test_conditions.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from tablewright.expressions.queries import Between, HasAll, HasAny, IsIn, IsNull, Query, StartsWith

__all__ = [
    "And",
    "Constant",
    "Leaf",
    "Not",
    "Or",
    "Path",
    "Tree",
    "Unknown",
    "leaves_of",
    "normal_form",
]

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts."""

    parts: tuple[Tree, ...]

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class Or:
    """One of the parts."""

    parts: tuple[Tree, ...]

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; null stays null."""

    part: Tree

    def __str__(self) -> str:
        return f"NOT({self.part})"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition on the column at a path; if ``negated``, the rows for which it is false."""

    path: Path
    query: Query
    exact: bool = True
    negated: bool = False

    def __str__(self) -> str:
        text = _text(".".join(self.path), self.query)
        return f"NOT({text})" if self.negated else text


@dataclass(frozen=True, slots=True)
class Constant:
    """The same for every row; ``None`` is null."""

    value: bool | None

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that no index can be asked for."""

    def __str__(self) -> str:
        return "?"


Tree: TypeAlias = And | Or | Not | Leaf | Constant | Unknown


def leaves_of(tree: Tree) -> list[Leaf]:
    """The leaves, from left to right."""
    if isinstance(tree, Leaf):
        return [tree]
    if isinstance(tree, Not):
        return leaves_of(tree.part)
    return [leaf for part in tree.parts for leaf in leaves_of(part)] if isinstance(tree, And | Or) else []


def normal_form(tree: Tree, wanted: bool = True) -> Tree:
    """A tree that is true for the rows for which ``tree`` is true; or false, if that is ``wanted``.

    It has no :class:`Not`. Rows for which the given tree is null may be false or null in it.

    >>> low, high = Between(low=pa.scalar(1)), Between(high=pa.scalar(5), high_inclusive=False)
    >>> print(normal_form(And((Leaf(("x",), low), Leaf(("x",), high)))))
    x >= 1 && x < 5
    >>> print(normal_form(Not(Or((Leaf(("x",), low), Leaf(("y",), IsNull()))))))
    (x < 1 AND NOT(y IS NULL))
    """
    if isinstance(tree, Not):
        return normal_form(tree.part, not wanted)
    if isinstance(tree, Leaf):
        return tree if wanted else _opposite(tree)
    if isinstance(tree, Constant):
        return Constant(tree.value is not None and tree.value == wanted)
    if isinstance(tree, Unknown):
        return tree
    kind = type(tree) if wanted else (Or if isinstance(tree, And) else And)
    parts = tuple(_flattened((normal_form(part, wanted) for part in tree.parts), kind))
    return _joined_and(parts) if kind is And else _joined_or(parts)


def _flattened(parts: Iterable[Tree], kind: type[And] | type[Or]) -> Iterable[Tree]:
    for part in parts:
        if isinstance(part, And | Or) and isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _opposite(leaf: Leaf) -> Tree:
    """The rows for which the condition is false."""
    query = leaf.query
    if not leaf.exact:
        return Unknown()
    if isinstance(query, Between):
        parts = tuple(Leaf(leaf.path, other) for other in _outside(query))
        return _whole(list(parts), Or, Constant(False))
    if isinstance(query, IsIn) and pa.types.is_boolean(query.values.type):
        others = [value for value in (False, True) if value not in query.values.to_pylist()]
        return Leaf(leaf.path, IsIn(pa.array(others, pa.bool_())))
    return replace(leaf, negated=not leaf.negated)


def _outside(query: Between) -> list[Between]:
    """The values below and above a range; of one without bounds, none."""
    outside = []
    if query.low is not None:
        outside.append(Between(high=query.low, high_inclusive=not query.low_inclusive))
    if query.high is not None:
        outside.append(Between(low=query.high, low_inclusive=not query.high_inclusive))
    return outside


def _joined_and(parts: tuple[Tree, ...]) -> Tree:
    if any(part == Constant(False) for part in parts if isinstance(part, Constant)):
        return Constant(False)
    kept: list[Tree] = []
    for part in parts:
        if isinstance(part, Constant):
            continue
        place = next((place for place, other in enumerate(kept) if _are_one_range(other, part)), None)
        if place is None:
            kept.append(part)
        else:
            kept[place] = _one_range(kept[place], part)
    return _whole(kept, And, Constant(True))


def _joined_or(parts: tuple[Tree, ...]) -> Tree:
    if any(part == Constant(True) for part in parts if isinstance(part, Constant)):
        return Constant(True)
    kept: list[Tree] = []
    for part in parts:
        if isinstance(part, Constant):
            continue
        place = next((place for place, other in enumerate(kept) if _are_one_set(other, part)), None)
        if place is None:
            kept.append(part)
        else:
            kept[place] = _one_set(kept[place], part)
    return _whole(kept, Or, Constant(False))


def _whole(parts: list[Tree], kind: type[And] | type[Or], nothing: Constant) -> Tree:
    if len(parts) < 2:
        return parts[0] if parts else nothing
    return kind(tuple(parts))


def _are_one_range(one: Tree, other: Tree) -> bool:
    """Whether two parts bound one column from two sides."""
    if not (isinstance(one, Leaf) and isinstance(other, Leaf) and one.path == other.path):
        return False
    first, second = one.query, other.query
    if not (isinstance(first, Between) and isinstance(second, Between)) or one.negated or other.negated:
        return False
    return (first.low is None or second.low is None) and (first.high is None or second.high is None)


def _one_range(one: Tree, other: Tree) -> Tree:
    assert isinstance(one, Leaf) and isinstance(other, Leaf)
    first, second = one.query, other.query
    assert isinstance(first, Between) and isinstance(second, Between)
    below, above = (first if first.low is not None else second), (first if first.high is not None else second)
    joined = Between(
        low=below.low, low_inclusive=below.low_inclusive, high=above.high, high_inclusive=above.high_inclusive
    )
    return Leaf(one.path, joined, exact=one.exact and other.exact)


def _are_one_set(one: Tree, other: Tree) -> bool:
    if not (isinstance(one, Leaf) and isinstance(other, Leaf) and one.path == other.path):
        return False
    first, second = one.query, other.query
    if one.negated or other.negated or not (isinstance(first, IsIn) and isinstance(second, IsIn)):
        return False
    return bool(first.values.type == second.values.type)


def _one_set(one: Tree, other: Tree) -> Tree:
    assert isinstance(one, Leaf) and isinstance(other, Leaf)
    assert isinstance(one.query, IsIn) and isinstance(other.query, IsIn)
    values = pa.concat_arrays([one.query.values, other.query.values])
    return Leaf(one.path, IsIn(values), exact=one.exact and other.exact)


# ------------------------------------------------------------------------------------------------------------ as text
_SHOWN_MAX = 4


def _text(name: str, query: Query) -> str:
    if isinstance(query, IsNull):
        return f"{name} IS NULL"
    if isinstance(query, IsIn):
        values = _values(query.values)
        return f"{name} = {values}" if len(query.values) == 1 else f"{name} IN [{values}]"
    if isinstance(query, Between):
        bounds = []
        if query.low is not None:
            bounds.append(f"{name} {'>=' if query.low_inclusive else '>'} {_value(query.low)}")
        if query.high is not None:
            bounds.append(f"{name} {'<=' if query.high_inclusive else '<'} {_value(query.high)}")
        return " && ".join(bounds) or f"{name} IS NOT NULL"
    if isinstance(query, StartsWith):
        return f"starts_with({name}, '{query.prefix}')"
    if isinstance(query, HasAny | HasAll):
        verb = "array_has_any" if isinstance(query, HasAny) else "array_has_all"
        return f"{verb}({name}, [{_values(query.values)}])"
    return f"contains({name}, '{query.text}')"


def _values(values: pa.Array) -> str:
    shown = ",".join(_value(value) for value in values.slice(0, _SHOWN_MAX))
    return shown if len(values) <= _SHOWN_MAX else f"{shown},… {len(values)} in all"


def _value(value: pa.Scalar) -> str:
    return f"'{value.as_py()}'" if pa.types.is_string(value.type) else str(value)
