"""The names that clauses of a merge may use: columns of the source, and columns of the table.

The rule: ``source.x`` and ``target.x`` name a side. A name without a side is a column of the source if only the source
has it, of the table if only the table has it, and an error if both do. Where there is one side only (rows that no
source row matches, source rows that match nothing) a name without a side is a column of that one. System columns
(``_rowid`` …) are the table's.

Where rows of both sides meet, each side is a struct to the expression, with the fields that it names. Where there is
one side, expressions read its columns directly.

Tests: ``tests/unit/operations/merge_insert/match/test_condition.py``, ``tests/unit/api/test_merge_clauses.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest
from tablewright.expressions.scope import Scope, with_system_columns
from tablewright.format.schema import Schema
from tablewright.reading.projection import Path

__all__ = ["SIDES", "BothSides", "OneSide", "both_sides", "pruned"]

SIDES = ("source", "target")


def both_sides(source: pa.Schema, table: Schema) -> pa.Schema:
    """The schema in which each side is a struct of its columns."""
    target = pa.struct(list(with_system_columns(table)))
    return pa.schema([pa.field("source", pa.struct(list(source))), pa.field("target", target)])


class BothSides(Scope):
    """Names over the schema of :func:`both_sides`.

    >>> table = Schema.from_arrow(pa.schema({"id": pa.int64(), "x": pa.int64()}))
    >>> names = BothSides(both_sides(pa.schema({"id": pa.int64(), "op": pa.string()}), table))
    >>> names.resolve(["op"]), names.resolve(["x"]), names.resolve(["Source", "ID"])
    (('source', 'op'), ('target', 'x'), ('source', 'id'))
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._sides: Mapping[str, Scope] = {side: Scope(_columns(schema, side)) for side in SIDES}

    def column(self, name: str, *, exact: bool = False) -> str | None:
        """The side that ``name`` is, or in which it is a column."""
        found = super().column(name, exact=exact)
        having = self._having(name, exact=exact)
        return found or (having[0] if having else None)

    def named(self, text: str) -> Path | None:
        """The path of a field, given with its side or without."""
        paths = (super(BothSides, self).named(name) for name in (text, *(f"{side}.{text}" for side in SIDES)))
        return next((path for path in paths if path is not None), None)

    def resolve(self, parts: Sequence[str], *, exact: bool = False) -> Path:
        """The path of real names, which begins with a side."""
        if super().column(parts[0]) is not None:
            return super().resolve(parts, exact=exact)
        having = self._having(parts[0], exact=exact and len(parts) == 1)
        if len(having) > 1:
            raise InvalidRequest(
                f"Invalid user input: {parts[0]} is a column of the source and of the table. "
                f"Write {' or '.join(f'{side}.{parts[0]}' for side in having)}."
            )
        return super().resolve([*having, *parts], exact=exact)

    def _having(self, name: str, *, exact: bool = False) -> list[str]:
        return [side for side, scope in self._sides.items() if scope.column(name, exact=exact) is not None]


class OneSide(Scope):
    """Names over the columns of one side, which may be given with it.

    >>> OneSide(pa.schema({"x": pa.int64()}), "target").resolve(["target", "X"])
    ('x',)
    """

    def __init__(self, schema: pa.Schema, side: str) -> None:
        super().__init__(schema)
        self._side = side

    def resolve(self, parts: Sequence[str], *, exact: bool = False) -> Path:
        """The path of real names."""
        first = parts[0].lower()
        if len(parts) > 1 and first in SIDES:
            if first == self._side:
                return super().resolve(parts[1:], exact=exact)
            if self.column(parts[0]) is None:
                raise InvalidRequest(
                    f"Invalid user input: there is no {first}.{parts[1]} here: this clause is about rows of the "
                    f"{self._side} that match nothing."
                )
        return super().resolve(parts, exact=exact)

    def named(self, text: str) -> Path | None:
        """The path of a field, given with its side or without."""
        found = super().named(text)
        first, _, rest = text.partition(".")
        return super().named(rest) if found is None and rest and first.lower() == self._side else found


def pruned(kind: pa.DataType, paths: Sequence[Path]) -> pa.DataType:
    """A struct with nothing but the fields at these paths."""
    if not at.is_struct(kind) or any(not path for path in paths):
        return kind
    below = {path[0]: [other[1:] for other in paths if other[0] == path[0]] for path in paths}
    return pa.struct([field.with_type(pruned(field.type, below[field.name])) for field in kind if field.name in below])


def _columns(schema: pa.Schema, side: str) -> pa.Schema:
    kind = schema.field(side).type
    assert at.is_struct(kind), "a side is the struct of its columns"
    return pa.schema(list(kind))
