"""``CREATE TABLE``, ``ALTER TABLE``, ``CREATE INDEX`` and ``DROP INDEX``; and Spark's types as Arrow's.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from tablewright.statements.place import Text
from tablewright.statements.queries import Source
from tablewright.statements.values import (
    AddColumns,
    AlterColumn,
    CreateIndex,
    CreateTable,
    DropColumns,
    DropIndex,
    Statement,
    TableName,
)

__all__ = ["alter_table", "arrow_type", "create_index", "create_table", "drop_index"]

_TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
}


def arrow_type(kind: exp.Expr, text: Text) -> pa.DataType:
    """Spark's type as Arrow's."""
    inner = kind.expressions
    if kind.this == exp.DType.DECIMAL:
        size = [int(each.name) for each in inner] or [10, 0]
        return pa.decimal128(*[*size, 0][:2])
    if kind.this == exp.DType.ARRAY and len(inner) == 1:
        return pa.list_(arrow_type(inner[0], text))
    if kind.this == exp.DType.MAP and len(inner) == 2:
        return pa.map_(arrow_type(inner[0], text), arrow_type(inner[1], text))
    if kind.this == exp.DType.STRUCT:
        return pa.struct([_field(each, text) for each in inner])
    if kind.this not in _TYPES or inner:
        raise text.wrong(f"The type {kind.sql(dialect='databricks')} can't be a column's.", kind.parent)
    return _TYPES[kind.this]


def _field(column: exp.Expr, text: Text) -> pa.Field:
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        raise text.wrong("A column has a name and a type here.", column)
    nullable = True
    for constraint in column.args.get("constraints") or []:
        kind = constraint.args.get("kind")
        if not isinstance(kind, exp.NotNullColumnConstraint):
            raise text.wrong(f"{constraint.sql(dialect='databricks')} is not offered: only NOT NULL is.", column)
        nullable = bool(kind.args.get("allow_null"))
    if column.args.get("position"):
        raise text.wrong("Columns come after the others: FIRST and AFTER are not offered.", column)
    return pa.field(column.name, arrow_type(column.args["kind"], text), nullable)


# --------------------------------------------------------------------------------------------------------------- create
def create_table(tree: exp.Create, source: Source, text: Text) -> CreateTable | None:
    """The statement, if its table is ours: by its path, or because it is ``USING tablewright``."""
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    node = tree.this if schema is None else schema.this
    properties = _properties(tree, text)
    table = source.table_of(node)
    using = properties.pop(":using", "")
    location = properties.pop(":location", None)
    if table is None and using.lower() != "tablewright":
        return None
    if using and using.lower() != "tablewright":
        raise text.wrong(f"A table of ours is USING tablewright, not {using}.", node)
    if table is None or table.name is not None:
        if location is None:
            raise text.wrong("Say where the table lies: LOCATION '/path', or tablewright.`/path`.", node)
        table = TableName(path=location, name=node.name.lower())
    query = None if tree.expression is None else source.query(_after_as(source))
    if schema is None and query is None:
        raise text.wrong("A new table has columns, or AS SELECT.", node)
    if schema is not None and query is not None:
        raise text.wrong("A table AS SELECT has the columns of its query: leave the list out.", schema)
    return CreateTable(
        table=table,
        schema=None if schema is None else pa.schema([_field(each, text) for each in schema.expressions]),
        query=query,
        replace=bool(tree.args.get("replace")),
        if_not_exists=bool(tree.args.get("exists")),
        options=tuple(properties.items()),
    )


def _properties(tree: exp.Create, text: Text) -> dict[str, str]:
    found: dict[str, str] = {}
    properties = tree.args.get("properties")
    for each in [] if properties is None else properties.expressions:
        if isinstance(each, exp.FileFormatProperty):
            found[":using"] = each.name
        elif isinstance(each, exp.LocationProperty):
            found[":location"] = each.name
        elif type(each) is exp.Property:
            found[each.name] = each.args["value"].name
        else:
            shown = each.sql(dialect="databricks")
            found.setdefault(":using", "")
            raise text.wrong(f"{shown} is not offered for a table of ours.", each)
    return found


def _after_as(source: Source) -> int:
    """Where the query begins: after the AS that is in no parentheses."""
    depth = 0
    for token in source.tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text.upper() == "AS":
            return int(token.end) + 1
    raise Text(source.text).wrong("AS is missing before the query.", len(source.text))


def create_index(tree: exp.Create, source: Source, text: Text) -> CreateIndex | None:
    """``CREATE INDEX name ON t [USING kind] (column)``, if the table is ours."""
    index = tree.this
    table = source.table_of(index.args.get("table"))
    if table is None:
        return None
    parameters = index.args.get("params")
    columns = [] if parameters is None else parameters.args.get("columns") or []
    if len(columns) != 1 or not isinstance(columns[0].this, exp.Column):
        raise text.wrong("An index is on one column.", index)
    kind = parameters.args.get("using")
    return CreateIndex(
        table=table,
        name=index.name,
        column=".".join(part.name for part in columns[0].this.parts),
        kind="BTREE" if kind is None else kind.name.upper(),
        if_not_exists=bool(tree.args.get("exists")),
    )


def drop_index(tree: exp.Drop, source: Source, text: Text) -> DropIndex | None:
    """``DROP INDEX name ON t``, if the table is ours."""
    on = tree.args.get("cluster")
    table = None if on is None else source.table_of(on.this)
    if table is None:
        return None
    (name,) = tree.args["tables"]
    return DropIndex(table=table, name=name.name, if_exists=bool(tree.args.get("exists")))


# ---------------------------------------------------------------------------------------------------------------- alter
def alter_table(tree: exp.Alter, source: Source, text: Text) -> Statement | None:
    """``ALTER TABLE t ADD | DROP | RENAME | ALTER COLUMN …``, if the table is ours."""
    table = source.table_of(tree.this)
    if table is None:
        return None
    actions = tree.args["actions"]
    if all(isinstance(each, exp.ColumnDef | exp.Schema) for each in actions):
        lists = [each.expressions if isinstance(each, exp.Schema) else [each] for each in actions]
        columns = [column for some in lists for column in some]
        return AddColumns(table, pa.schema([_field(each, text) for each in columns]))
    if all(isinstance(each, exp.Drop) for each in actions):
        names = [name for each in actions for name in _dropped(each)]
        return DropColumns(table, tuple(names), any(each.args.get("exists") for each in actions))
    (action,) = actions if len(actions) == 1 else (None,)
    if isinstance(action, exp.RenameColumn):
        return AlterColumn(table=table, column=_path(action.this), name=action.args["to"].name)
    if isinstance(action, exp.AlterColumn):
        return _altered(action, table, text)
    raise text.wrong("ALTER TABLE can ADD, DROP, RENAME and ALTER columns.", tree.this)


def _dropped(action: exp.Drop) -> list[str]:
    lists = [each.expressions if isinstance(each, exp.Schema) else [each] for each in action.args["tables"]]
    return [_path(each) for some in lists for each in some]


def _path(node: exp.Expr) -> str:
    return ".".join(part.name for part in node.parts) if isinstance(node, exp.Column) else node.name


def _altered(action: exp.AlterColumn, table: TableName, text: Text) -> AlterColumn:
    node = action.this
    kind, nullable = action.args.get("dtype"), action.args.get("allow_null")
    if kind is None and nullable is None:
        raise text.wrong("A column's TYPE can be altered, and whether it is NOT NULL.", node)
    return AlterColumn(
        table=table,
        column=_path(node),
        data_type=None if kind is None else arrow_type(kind, text),
        nullable=nullable,
    )
