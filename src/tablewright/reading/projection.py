"""What a scan returns: a choice of columns, resolved once, that turns rows as read into rows as asked for.

- A *list* names columns, system columns, and fields inside structs; ``"st.a"`` gives a column called ``st.a``. The
  order is the list's, a name may come once. A *mapping* gives a name to each SQL expression.
- ``with_row_id`` and ``with_row_address`` put ``_rowid`` and ``_rowaddr`` last, in that order, wherever they were.
- :class:`RowLayout` is the other side: what has to be read for a set of names. Rows as read have the table's columns
  (structs with the wanted members only) and then system columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.checks import check_text, listed
from tablewright.errors import InvalidRequest, WrongType
from tablewright.expressions.scope import SYSTEM_COLUMNS, Scope, scope_of, with_system_columns
from tablewright.expressions.sql import CompiledExpression, Projection, compile_sql
from tablewright.format.field_path import parse_path
from tablewright.format.schema import Schema

__all__ = [
    "Output",
    "Path",
    "RowLayout",
    "Selection",
    "extend_selection",
    "select_columns",
    "select_members",
    "select_whole",
]

Path = tuple[str, ...]

_LAYOUTS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One returned column: a field at a path, or an expression."""

    name: str
    path: Path | None = None
    expression: CompiledExpression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """What has to be read: fields of the table, as a projection of its schema, and system columns."""

    fields: Schema
    system: tuple[str, ...]

    @classmethod
    def of(cls, table: Schema, paths: Iterable[Path]) -> RowLayout:
        """All that lies at the given paths. The last layouts are kept: scans of a service ask for the same paths."""
        wished = tuple(paths)
        key = (id(table), wished)
        kept = _layouts.get(key)
        if kept is None or kept[0] is not table:
            if len(_layouts) >= _LAYOUTS_MAX:
                _layouts.clear()
            kept = _layouts[key] = (table, cls._made(table, wished))
        return kept[1]

    @classmethod
    def _made(cls, table: Schema, paths: tuple[Path, ...]) -> RowLayout:
        wanted, system = [], []
        own = set(table.names)
        for path in paths:
            if path[0] not in own:
                system.append(path[0])
            else:
                wanted.append(_field_id(table, path))
        ids = table.descendants(*wanted)
        return cls(fields=table.project_ids(ids), system=tuple(dict.fromkeys(system)))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of rows as read."""
        return (*self.fields.names, *self.system)

    def covers(self, table: Schema, path: Path) -> bool:
        """Whether all that lies at a path is in the layout."""
        if path[0] not in self.names:
            return False
        if path[0] in self.system:
            return True
        return self.fields.ids.issuperset(table.descendants(_field_id(table, path)))


_layouts: dict[tuple[int, tuple[Path, ...]], tuple[Schema, RowLayout]] = {}


def _field_id(table: Schema, path: Path) -> int:
    level = table.top_level
    found = -1
    for name in path:
        found = next(field.id for field in level if field.name == name)
        level = table.children(found)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The returned columns, in order, their schema, and the paths that have to be read for them."""

    outputs: tuple[Output, ...]
    schema: pa.Schema
    paths: tuple[Path, ...]

    @classmethod
    def nothing(cls) -> Selection:
        """No columns: for reads that count or look at rows themselves."""
        return cls(outputs=(), schema=pa.schema([]), paths=())

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows as asked for, out of rows as read."""
        computed = self._computed(batch)
        arrays = [computed[output.name] if output.path is None else _at(batch, output.path) for output in self.outputs]
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _computed(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        chosen = {output.name: output.expression for output in self.outputs if output.expression is not None}
        if not chosen:
            return {}
        made = Projection(names=tuple(chosen), expressions=tuple(chosen.values())).evaluate(batch)
        return dict(zip(chosen, made.columns, strict=True))


def _paths(outputs: Iterable[Output]) -> tuple[Path, ...]:
    """What the outputs read, each path once."""
    found: dict[Path, None] = {}
    for output in outputs:
        if output.path is not None:
            found[output.path] = None
        elif output.expression is not None:
            found.update(dict.fromkeys(output.expression.paths))
    return tuple(found)


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    column = batch.column(path[0])
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def select_columns(
    table: Schema,
    columns: Sequence[str] | Mapping[str, str] | None,
    *,
    with_row_id: bool = False,
    with_row_address: bool = False,
    now_ns: int | None = None,
) -> Selection:
    """Resolve a choice of columns. Unknown names, and names that come twice, are :class:`InvalidRequest`."""
    if columns is None and not (with_row_id or with_row_address):
        return select_whole(table, table.names)
    scope = table.kept(scope_of)
    if columns is None:
        outputs = [Output(name=name, path=(name,)) for name in table.names]
    elif isinstance(columns, Mapping):
        outputs = [_expression(table, name, sql, now_ns) for name, sql in columns.items()]
    else:
        names = _once(_names(columns))
        if not (with_row_id or with_row_address) and set(names).issubset(table.names):
            return select_whole(table, names)
        outputs = [Output(name=name, path=_resolve(scope, name)) for name in names]
    for name, asked in (("_rowid", with_row_id), ("_rowaddr", with_row_address)):
        if asked:
            outputs = [output for output in outputs if output.name != name] + [Output(name=name, path=(name,))]
    return _selection(table, outputs)


def select_whole(table: Schema, names: Iterable[str]) -> Selection:
    """Columns of a table, as they are. The last selections are kept: updates of a service read the same columns."""
    key = (id(table), tuple(names))
    kept = _selections.get(key)
    if kept is None or kept[0] is not table:
        if len(_selections) >= _LAYOUTS_MAX:
            _selections.clear()
        selection = _selection(table, [Output(name=name, path=(name,)) for name in key[1]])
        kept = _selections[key] = (table, selection)
    return kept[1]


_selections: dict[tuple[int, tuple[str, ...]], tuple[Schema, Selection]] = {}


def select_members(table: Schema, columns: Sequence[str] | Mapping[str, str] | None) -> Selection:
    """Resolve a choice of columns as ``take`` does: ``"st.a"`` gives the column ``st`` with the member ``a`` only."""
    if columns is None or isinstance(columns, Mapping):
        return select_columns(table, columns)
    scope = table.kept(scope_of)
    paths = tuple(dict.fromkeys(_resolve(scope, name) for name in _names(columns)))
    layout = RowLayout.of(table, paths)
    known = with_system_columns(layout.fields)
    outputs = [Output(name=name, path=(name,)) for name in dict.fromkeys(path[0] for path in paths)]
    fields = [_field(known, output) for output in outputs]
    schema = pa.schema(fields, metadata=table.to_arrow().metadata)
    return Selection(outputs=tuple(outputs), schema=schema, paths=paths)


def _selection(table: Schema, outputs: Sequence[Output]) -> Selection:
    known = table.kept(with_system_columns)
    schema = pa.schema([_field(known, output) for output in outputs], metadata=table.to_arrow().metadata)
    return Selection(outputs=tuple(outputs), schema=schema, paths=_paths(outputs))


def extend_selection(selection: Selection, table: Schema, paths: Mapping[str, Path]) -> Selection:
    """The selection with more fields after it, under the given names."""
    added = [Output(name=name, path=path) for name, path in paths.items()]
    return _selection(table, [*selection.outputs, *added]) if added else selection


def _names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, str):
        raise WrongType("Invalid user input: columns must be a list or dict[name, expression], got text.")
    names = listed(columns, "columns")
    for name in names:
        if not isinstance(name, str):
            raise WrongType(f"Invalid user input: a column's name is text, not {type(name).__name__}.")
    return names


def _once(names: list[str]) -> list[str]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidRequest(f"Invalid user input: Duplicate column name: {name}")
    return names


def _resolve(scope: Scope, name: str) -> Path:
    if name in scope.schema.names:
        return (name,)
    return scope.resolve(parse_path(name) if name else [""], exact=True)


def _expression(table: Schema, name: str, sql: str, now_ns: int | None) -> Output:
    check_text(name, "a column's name")
    compiled = compile_sql(check_text(sql, f"the expression of column {name!r}"), table, now_ns=now_ns)
    path = compiled.field_path
    return Output(name=name, expression=compiled) if path is None else Output(name=name, path=path)


def _field(schema: pa.Schema, output: Output) -> pa.Field:
    if output.expression is not None:
        return pa.field(output.name, output.expression.type, output.expression.nullable)
    assert output.path is not None
    field = schema.field(output.path[0])
    nullable = field.nullable
    for name in output.path[1:]:
        assert pa.types.is_struct(field.type), "the path of a field leads through structs"
        field = field.type.field(name)
        nullable = nullable or field.nullable
    if output.path[0] in SYSTEM_COLUMNS:
        nullable = True
    return pa.field(output.name, field.type, nullable, field.metadata)
