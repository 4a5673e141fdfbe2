"""A text of SQL as a value: which statement it is, and whether it is ours.

Ours are statements that change or describe a table of ours, and queries that read one. All else is a query without
places, which Spark gets as it is.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from tablewright.checks import check_text
from tablewright.operations.merge_insert.ordered import Values
from tablewright.statements.expressions import Translator, column_path
from tablewright.statements.merges import merge_into
from tablewright.statements.place import Text
from tablewright.statements.queries import Source, read_tree, words_of
from tablewright.statements.schemas import alter_table, create_index, create_table, drop_index
from tablewright.statements.values import DeleteFrom, InsertInto, Statement, UpdateTable
from tablewright.statements.words import short_statement

__all__ = ["parse"]

_READ_BY_TREE = ("MERGE", "UPDATE", "DELETE", "INSERT", "CREATE", "REPLACE", "ALTER", "DROP")


def parse(statement: str, names: Collection[str] = (), zone: str = "UTC") -> Statement:
    """Read a statement. ``names`` (in lower case) are tables that were registered, ``zone`` is that of the session.

    >>> parse("DELETE FROM docs WHERE id > 3 AND text IS NULL", ["docs"])
    DeleteFrom(table=TableName(path=None, name='docs'), where='((id > 3) AND (text IS null))')
    >>> parse("SHOW TABLES")
    Query(parts=('SHOW TABLES',), columns=None)
    """
    whole = check_text(statement, "the statement")
    tokens = words_of(whole)
    text = Text(whole)
    ends = [index for index, token in enumerate(tokens) if token.text == ";" and token.kind == "SEMICOLON"]
    if ends and ends[0] < len(tokens) - 1:
        raise text.wrong("One statement at a time: more follows here.", tokens[ends[0] + 1].start)
    tokens = tokens[: ends[0]] if ends else tokens
    if not tokens:
        raise text.wrong("The statement is empty.", 0)
    source = Source(whole, names, tokens)
    ours = short_statement(source)
    if ours is None and tokens[0].text.upper() in _READ_BY_TREE and source.may_read_ours():
        ours = _by_tree(read_tree(text, whole), source, text, zone)
    return source.query() if ours is None else ours


def _by_tree(tree: exp.Expr, source: Source, text: Text, zone: str) -> Statement | None:
    match tree:
        case exp.Merge():
            return merge_into(tree, source, text, zone)
        case exp.Update():
            return _update(tree, source, text, zone)
        case exp.Delete():
            return _delete(tree, source, text, zone)
        case exp.Insert():
            return _insert(tree, source, text)
        case exp.Create() if tree.kind == "TABLE":
            return create_table(tree, source, text)
        case exp.Create() if tree.kind == "INDEX":
            return create_index(tree, source, text)
        case exp.Alter() if tree.args.get("kind") == "TABLE":
            return alter_table(tree, source, text)
        case exp.Drop() if tree.args.get("kind") == "INDEX":
            return drop_index(tree, source, text)
    return None


def _translator(node: exp.Expr, text: Text, zone: str) -> Translator:
    return Translator(text, {node.alias_or_name.lower(): ""}, zone)


def _where(tree: exp.Expr, translator: Translator) -> str | None:
    where = tree.args.get("where")
    return None if where is None else translator.sql(where.this)


def _update(tree: exp.Update, source: Source, text: Text, zone: str) -> UpdateTable | None:
    table = source.table_of(tree.this)
    if table is None:
        return None
    if tree.args.get("from_") or tree.args.get("order") or tree.args.get("limit"):
        raise text.wrong("UPDATE t SET … WHERE … is offered; for values of other tables use MERGE INTO.", tree.this)
    translator = _translator(tree.this, text, zone)
    values: Values = tuple(_assignment(each, tree.this.alias_or_name, translator, text) for each in tree.expressions)
    return UpdateTable(table, values, _where(tree, translator))


def _assignment(node: exp.Expr, name: str, translator: Translator, text: Text) -> tuple[str, str]:
    path = column_path(node.this) if isinstance(node, exp.EQ) else None
    if path is None:
        raise text.wrong("SET column = expression is expected.", node)
    if len(path) > 1 and path[0].lower() == name.lower():
        path = path[1:]
    return ".".join(path), translator.sql(node.expression)


def _delete(tree: exp.Delete, source: Source, text: Text, zone: str) -> DeleteFrom | None:
    table = source.table_of(tree.this)
    if table is None:
        return None
    if tree.args.get("using") or tree.args.get("order") or tree.args.get("limit"):
        raise text.wrong("DELETE FROM t WHERE … is offered; to compare with other tables use MERGE INTO.", tree.this)
    return DeleteFrom(table, _where(tree, _translator(tree.this, text, zone)))


def _insert(tree: exp.Insert, source: Source, text: Text) -> InsertInto | None:
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = source.table_of(node)
    if table is None:
        return None
    if tree.args.get("partition") or tree.args.get("where") or tree.args.get("exists"):
        raise text.wrong("INSERT INTO t [(columns)] query is offered, without PARTITION, IF and REPLACE WHERE.", node)
    columns = tuple(each.name for each in tree.this.expressions) if isinstance(tree.this, exp.Schema) else None
    return InsertInto(
        table=table,
        query=source.query(_query_start(source, node, has_columns=columns is not None, text=text)),
        columns=columns,
        by_name=bool(tree.args.get("by_name")),
        overwrite=bool(tree.args.get("overwrite")),
    )


def _query_start(source: Source, node: exp.Expr, *, has_columns: bool, text: Text) -> int:
    """Where the rows of an INSERT begin: after the table, the list of columns, and BY NAME."""
    last = node.this.meta["start"]
    at = next(index for index, token in enumerate(source.tokens) if token.start == last) + 1
    tokens = source.tokens
    if has_columns:
        while tokens[at].text != ")":
            at += 1
        at += 1
    if [token.text.upper() for token in tokens[at : at + 2]] == ["BY", "NAME"]:
        at += 2
    if at >= len(tokens):
        raise text.wrong("The rows are missing: a query, or VALUES.", len(text.whole))
    return int(tokens[at].start)
