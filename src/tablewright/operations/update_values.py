"""``SET column = expression``: which fields an update assigns, and the values they get.

Targets are columns, or fields inside structs (``"st.a"``); names are found as in filters. An expression is evaluated by
DataFusion over the rows that match and no others, all see the old values, and each is cast to its column's type by
DataFusion's own rules, as pylance does: ``'7'`` may go into an integer, ``300`` not into an int8. What can be known
without rows is refused before anything is read.

A field of a struct that is null gets its value too: the struct is no longer null then, its other fields are.

Tests: ``tests/unit/api/test_wide.py``, ``tests/differential/operations/test_update.py``.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.checks import check_text
from tablewright.data.conform import conform, takes_nulls
from tablewright.data.fit_values import fit_array
from tablewright.data.read import no_columns
from tablewright.errors import InvalidRequest, SchemaMismatch, WrongType
from tablewright.expressions.engine import ExpressionError, Frame
from tablewright.expressions.scope import SYSTEM_COLUMNS, Scope, empty_batch, with_system_columns
from tablewright.expressions.sql import CompiledExpression, compile_sql
from tablewright.format.field_path import parse_path
from tablewright.format.schema import Schema

__all__ = ["Assignment", "Assignments", "Compile", "compile_assignments", "compile_updates"]

Path = tuple[str, ...]
Compile: TypeAlias = Callable[[str], tuple[CompiledExpression, pa.Schema]]

_PLAIN = re.compile(r"""\s*(?:-?\s*[0-9]{1,18}|'[^'"\\]*'|true|false|null)\s*""", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One field and the expression for its new values. ``kind`` is what the values are cast to.

    ``is_checked``: a value that the type can't hold exactly is refused.
    """

    path: Path
    field_id: int
    kind: pa.DataType
    expression: CompiledExpression
    is_checked: bool = False

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} = {self.expression.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """All assignments of an update over ``schema``, the Arrow schema of the table."""

    items: tuple[Assignment, ...]
    schema: pa.Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that change, in the table's order."""
        changed = {item.path[0] for item in self.items}
        return tuple(name for name in self.schema.names if name in changed)

    @property
    def kept_in_part(self) -> tuple[str, ...]:
        """Those of the columns of which only some fields change."""
        return tuple(dict.fromkeys(item.path[0] for item in self.items if len(item.path) > 1))

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that the expressions read."""
        return tuple(dict.fromkeys(path for item in self.items for path in item.expression.paths))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that :meth:`changed` needs in its batch."""
        read = dict.fromkeys(name for item in self.items for name in item.expression.columns)
        return tuple(read | dict.fromkeys(self.kept_in_part))

    def changed(self, rows: pa.RecordBatch, own: pa.RecordBatch | None = None) -> dict[str, pa.Array]:
        """The new values of the columns that change, for rows that match; a null or value that can't be is refused.

        ``own`` has the columns that are kept in part, if they are not among those that expressions read.
        """
        new: dict[str, pa.Array] = {}
        own = rows if own is None else own
        for item, values in zip(self.items, self._values(rows), strict=True):
            top, *below = item.path
            new[top] = _put(new[top] if top in new else own.column(top), below, values) if below else values
        return {name: _fit(array, self.schema.field(name)) for name, array in new.items()}

    def _values(self, rows: pa.RecordBatch) -> list[pa.Array]:
        names = list(dict.fromkeys(name for item in self.items for name in item.expression.columns))
        try:
            if all(map(_is_plain, self.items)):
                return [pa.repeat(_constant(item.expression.sql, item.kind), rows.num_rows) for item in self.items]
            frame = Frame(rows.select(names) if names else no_columns(rows.num_rows))
            parsed = [(item, frame.parse(item.expression.sql)) for item in self.items]
            found = frame.values([tree if item.is_checked else tree.cast(item.kind) for item, tree in parsed])
        except ExpressionError as error:
            raise InvalidRequest(f"Invalid user input: {error}. The update was: {self}.") from error
        return [
            _exactly(values, item) if item.is_checked else values
            for item, values in zip(self.items, found, strict=True)
        ]

    def __str__(self) -> str:
        return ", ".join(map(str, self.items))


def _exactly(values: pa.Array, item: Assignment) -> pa.Array:
    return fit_array(
        values, item.kind, ".".join(item.path), f"Write cast({item.expression.text} as …) if that is meant."
    )


def _is_plain(item: Assignment) -> bool:
    """Whether a value is a literal, which need not be evaluated for each batch."""
    is_simple = at.is_primitive(item.kind) or at.is_string(item.kind) or at.is_large_string(item.kind)
    return is_simple and _PLAIN.fullmatch(item.expression.sql) is not None


def _is_valid_literal(item: Assignment) -> bool:
    """Whether a value is a literal other than null that the column's type has."""
    try:
        return _is_plain(item) and bool(_constant(item.expression.sql, item.kind).is_valid)
    except ExpressionError:
        return False


@lru_cache(maxsize=256)
def _constant(sql: str, kind: pa.DataType) -> pa.Scalar:
    """A literal as a value of the column's type; :class:`ExpressionError` if that has none."""
    frame = Frame(no_columns(1))
    return frame.values([frame.parse(sql).cast(kind)])[0][0]


# ----------------------------------------------------------------------------------------------------------- plan
def compile_updates(updates: Mapping[str, str], table: Schema, now_ns: int) -> Assignments:
    """Resolve and check ``{column: SQL}``; whatever is wrong is :class:`InvalidRequest`."""
    own = table.to_arrow()

    def compile(sql: str) -> tuple[CompiledExpression, pa.Schema]:
        expression = compile_sql(sql, table, now_ns=now_ns)
        return expression, with_system_columns(own) if expression.columns else own

    return compile_assignments(updates, table, compile)


def compile_assignments(updates: Mapping[str, str], table: Schema, compile: Compile) -> Assignments:
    """The same with expressions over other columns than the table's: ``compile`` tells which, with their types."""
    if not isinstance(updates, Mapping):
        raise WrongType(f"Invalid user input: updates must be a dict of column to SQL text, got {updates!r}.")
    if not updates:
        raise InvalidRequest("Invalid user input: No updates provided. Give at least one column and its expression.")
    schema = table.to_arrow()
    compiled = [_assignment(table, schema, name, sql, compile) for name, sql in updates.items()]
    items = tuple(item for item, _ in compiled)
    for one, other in combinations(items, 2):
        if one.path[: len(other.path)] == other.path or other.path[: len(one.path)] == one.path:
            both = f'"{".".join(one.path)}" and "{".".join(other.path)}"'
            raise InvalidRequest(f"Invalid user input: {both} are updated both, and one is (part of) the other.")
    assignments = Assignments(items=items, schema=schema)
    for item, known in compiled:
        _check(item, schema, known)
    return assignments


def _assignment(
    table: Schema, schema: pa.Schema, name: str, sql: str, compile: Compile
) -> tuple[Assignment, pa.Schema]:
    check_text(name, "a column's name in updates")
    if not isinstance(sql, str):
        raise WrongType(
            f"Invalid user input: the new value of column {name!r} must be SQL text, got {sql!r} of type "
            f"{type(sql).__name__}. Write {{{name!r}: {_sql_of(sql)!r}}}."
        )
    path = _resolve(schema, name)
    field_id, kind = _find(table, path), _type_at(schema, path)
    try:
        expression, known = compile(sql)
    except InvalidRequest as error:
        if "'" in sql or not (at.is_string(kind) or at.is_large_string(kind)):
            raise
        raise InvalidRequest(f"{error} For the text {sql} write {{{name!r}: {_sql_of(sql)!r}}}.") from error
    return Assignment(path=path, field_id=field_id, kind=_storage(kind), expression=expression), known


def _sql_of(value: Any) -> str:
    """A Python value as SQL, for a hint."""
    if value is None or isinstance(value, bool | np.bool_):
        return "null" if value is None else str(bool(value)).lower()
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(_sql_of, value))}]"
    if isinstance(value, int | float | Decimal | np.number):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _resolve(schema: pa.Schema, name: str) -> Path:
    """The path of real names; a name that is a column's own wins over a dotted path."""
    if name in schema.names:
        return (name,)
    parts = parse_path(name) if name else [""]
    scope = Scope(schema)
    if len(parts) == 1 and scope.column(parts[0]) is None and parts[0] in SYSTEM_COLUMNS:
        raise InvalidRequest(f'Invalid user input: Column "{name}" is a system column: Lance alone sets it.')
    try:
        return scope.resolve(parts)
    except InvalidRequest as error:
        close = difflib.get_close_matches(name, schema.names, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise InvalidRequest(
            f'Invalid user input: Column "{name}" does not exist.{hint} The columns are: {", ".join(schema.names)}.'
        ) from error


def _find(table: Schema, path: Path) -> int:
    level, found = table.top_level, -1
    for name in path:
        found = next(field.id for field in level if field.name == name)
        level = table.children(found)
    return found


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        assert at.is_struct(kind), "the path of a field leads through structs"
        kind = kind.field(name).type
    return kind


def _storage(kind: pa.DataType) -> pa.DataType:
    """What DataFusion can cast to: no extensions, and nulls allowed everywhere (they are looked for afterwards)."""
    if isinstance(kind, pa.BaseExtensionType):
        return _storage(kind.storage_type)
    if at.is_struct(kind):
        return pa.struct([field.with_type(_storage(field.type)).with_nullable(True) for field in kind])
    if at.is_list(kind):
        return pa.list_(kind.value_field.with_type(_storage(kind.value_type)).with_nullable(True))
    return kind


def _check(item: Assignment, schema: pa.Schema, known: pa.Schema) -> None:
    """Cast over no rows, which folds literals; and look whether a constant is null where none may be."""
    expression = item.expression
    if expression.columns and expression.type == item.kind:
        return
    if len(item.path) == 1 and _is_valid_literal(item):
        return
    alone = Assignments(items=(item,), schema=schema)
    try:
        if expression.columns:
            alone._values(empty_batch(pa.schema([known.field(name) for name in expression.columns])))
        else:
            column = schema.field(item.path[0])
            one = pa.record_batch([pa.nulls(1, column.type)], schema=pa.schema([column.with_nullable(True)]))
            if len(item.path) == 1:
                alone.changed(one)
            else:
                alone._values(one)
    except InvalidRequest as error:
        where = f'Column "{".".join(item.path)}" of type {_type_at(schema, item.path)}'
        raise InvalidRequest(f"{error} {where} can't take the value of {expression.text!r}.") from error


# ------------------------------------------------------------------------------------------------------------ run
def _put(array: pa.Array, path: Sequence[str], values: pa.Array) -> pa.Array:
    """A struct column with the values of one field inside of it."""
    if not path:
        return values
    assert isinstance(array, pa.StructArray), "the path of a field leads through structs"
    index = array.type.get_field_index(path[0])
    members = array.flatten()  # what is below a null struct becomes null
    members[index] = _put(members[index], path[1:], values)
    fields = [
        field.with_type(member.type).with_nullable(True) for field, member in zip(array.type, members, strict=True)
    ]
    return pa.StructArray.from_arrays(members, fields=fields)


def _fit(array: pa.Array, field: pa.Field) -> pa.Array:
    """The array in the column's exact type."""
    if array.type == field.type and takes_nulls(field):
        return array
    batch = pa.RecordBatch.from_arrays([array], names=[field.name])
    try:
        return conform(batch, pa.schema([field])).column(0)
    except SchemaMismatch as error:
        raise InvalidRequest(f"Invalid user input: {'; '.join(error.differences)}.") from error
