"""What a tree of conditions means for one row, written down the plain way: `True`, `False`, or `None` for null."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tablewright.expressions.conditions import And, Constant, Leaf, Not, Or, Tree
from tablewright.expressions.queries import Between, Contains, HasAll, HasAny, IsIn, IsNull, StartsWith

__all__ = ["truth"]


def truth(tree: Tree, row: Mapping[str, Any]) -> bool | None:
    """The value of a tree without unknown parts."""
    if isinstance(tree, Constant):
        return tree.value
    if isinstance(tree, Not):
        inner = truth(tree.part, row)
        return None if inner is None else not inner
    if isinstance(tree, And | Or):
        ends = isinstance(tree, Or)
        parts = [truth(part, row) for part in tree.parts]
        return ends if ends in parts else None if None in parts else not ends
    assert isinstance(tree, Leaf), "a tree of which everything is known"
    found = _leaf(tree, row)
    return found if not tree.negated else found is False


def _leaf(leaf: Leaf, row: Mapping[str, Any]) -> bool | None:
    value: Any = row
    for name in leaf.path:
        value = None if value is None else value[name]
    query = leaf.query
    if isinstance(query, IsNull):
        return value is None
    if value is None:
        return None
    if isinstance(query, IsIn):
        return _key(value) in [_key(each.as_py()) for each in query.values]
    if isinstance(query, Between):
        return _above(value, query) and _below(value, query)
    if isinstance(query, StartsWith):
        return str(value).startswith(query.prefix)
    if isinstance(query, Contains):
        return query.text in value
    assert isinstance(query, HasAny | HasAll)
    wanted = [each in value for each in query.values.to_pylist()]
    return any(wanted) if isinstance(query, HasAny) else all(wanted)


def _above(value: Any, query: Between) -> bool:
    if query.low is None:
        return True
    low = _key(query.low.as_py())
    return bool(_key(value) >= low if query.low_inclusive else _key(value) > low)


def _below(value: Any, query: Between) -> bool:
    if query.high is None:
        return True
    high = _key(query.high.as_py())
    return bool(_key(value) <= high if query.high_inclusive else _key(value) < high)


def _key(value: Any) -> Any:
    """Floats in the total order of their bits, text by its bytes."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, float):
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else -(bits & (2**63 - 1)) - 1
    return value.encode() if isinstance(value, str) else value
