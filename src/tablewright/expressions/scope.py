"""The names that an expression may use, and Lance's rules to find the column that a name means.

1. A name matches the column of exactly that spelling.
2. A bare name, and the first part of a dotted one, else matches the first column that differs only in case.
3. The parts of a dotted name walk into struct fields; they match exactly, else (our addition) without case.
4. A backticked name without dots matches exactly. A dot inside backticks belongs to the name.

System columns come after the table's own, so a table's column of the same name wins.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tablewright.errors import InvalidRequest

__all__ = ["SYSTEM_COLUMNS", "SchemaLike", "Scope", "arrow_schema", "empty_batch", "scope_of", "with_system_columns"]

SYSTEM_COLUMNS: dict[str, pa.DataType] = {
    "_rowid": pa.uint64(),
    "_rowaddr": pa.uint64(),
    "_rowoffset": pa.uint64(),
    "_row_created_at_version": pa.uint64(),
    "_row_last_updated_at_version": pa.uint64(),
}


class SchemaLike(Protocol):
    """A table's schema, as :class:`tablewright.format.schema.Schema` is."""

    def to_arrow(self) -> pa.Schema:
        """The schema as Arrow knows it."""


def arrow_schema(schema: SchemaLike | pa.Schema) -> pa.Schema:
    """The Arrow schema of a table's schema."""
    return schema if isinstance(schema, pa.Schema) else schema.to_arrow()


def with_system_columns(schema: SchemaLike | pa.Schema) -> pa.Schema:
    """The schema with the system columns after its own."""
    own = arrow_schema(schema)
    names = set(own.names)
    return pa.schema([*own, *(pa.field(name, kind) for name, kind in SYSTEM_COLUMNS.items() if name not in names)])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of no rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


class Scope:
    """The available columns, looked up by the names that users write."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._exact: dict[str, pa.Field] = {field.name: field for field in schema}
        self._folded: dict[str, pa.Field] = {}
        for field in schema:
            self._folded.setdefault(field.name.lower(), field)

    def column(self, name: str, *, exact: bool = False) -> str | None:
        """The top-level column that ``name`` means, or None."""
        found = self._exact.get(name) or (None if exact else self._folded.get(name.lower()))
        return None if found is None else str(found.name)

    def named(self, text: str) -> tuple[str, ...] | None:
        """The path of the field that a text names, as a column's name or dotted, or None."""
        top = self.column(text)
        if top is not None:
            return (top,)
        try:
            return self.resolve(text.split("."))
        except InvalidRequest:
            return None

    def resolve(self, parts: Sequence[str], *, exact: bool = False) -> tuple[str, ...]:
        """The path of real names that ``parts`` mean; :class:`InvalidRequest` if there is no such field."""
        top = self.column(parts[0], exact=exact and len(parts) == 1)
        if top is None:
            raise self.unknown(parts[0])
        path, kind = [top], self._exact[top].type
        for part in parts[1:]:
            child = _child(kind, part)
            if child is None:
                raise self.unknown(".".join([*path, part]), among=_child_names(kind))
            path.append(child.name)
            kind = child.type
        return tuple(path)

    def unknown(self, name: str, among: Sequence[str] | None = None) -> InvalidRequest:
        """The error for a name that no field has, with a suggestion and the columns there are."""
        names = list(self._exact) if among is None else list(among)
        folded = {known.lower(): known for known in reversed(names)}
        close = difflib.get_close_matches(name.split(".")[-1 if among else 0].lower(), folded, n=1, cutoff=0.6)
        hint = f" Did you mean '{folded[close[0]]}'?" if close else ""
        where = f"The columns are: {', '.join(self._exact)}."
        if among:
            where = f"Its parent has the fields: {', '.join(among)}."
        elif among is not None:
            where = f"Its parent is not a struct. {where}"
        return InvalidRequest(f"Invalid user input: No field named {name}.{hint} {where}")


def scope_of(schema: SchemaLike | pa.Schema) -> Scope:
    """The columns of a table, and the system columns after them."""
    return Scope(with_system_columns(schema))


def _child(kind: pa.DataType, name: str) -> pa.Field | None:
    if not pa.types.is_struct(kind):
        return None
    fields: list[pa.Field] = [kind.field(i) for i in range(kind.num_fields)]
    for field in fields:
        if field.name == name:
            return field
    return next((field for field in fields if field.name.lower() == name.lower()), None)


def _child_names(kind: pa.DataType) -> list[str]:
    return [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
