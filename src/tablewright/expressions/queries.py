"""Conditions on one column, as values: what a filter asks of a column, and what an index can be asked.

Values are in the column's own type, without dictionaries and extension types. Floats have the total order of their
bits, as in sorted files: NaN is greater than every number and equal to itself (with a negative sign, less than every
number), and -0.0 comes before 0.0. A filter that means both zeros asks for both.

Tests: ``tests/unit/expressions/test_sql_conditions.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

__all__ = ["Between", "Contains", "HasAll", "HasAny", "IsIn", "IsNull", "Query", "StartsWith"]


@dataclass(frozen=True, slots=True, eq=False)
class IsIn:
    """The value is one of ``values``, none of which is null."""

    values: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The value is within bounds; ``None`` is no bound."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    low_inclusive: bool = True
    high_inclusive: bool = True


@dataclass(frozen=True, slots=True)
class IsNull:
    """The value is null."""


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text begins with ``prefix``, which is not empty."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Contains:
    """The text has ``text`` in it."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class HasAny:
    """The list has at least one of ``values``, none of which is null."""

    values: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class HasAll:
    """The list has every one of ``values``, none of which is null."""

    values: pa.Array


Query: TypeAlias = IsIn | Between | IsNull | StartsWith | Contains | HasAny | HasAll
