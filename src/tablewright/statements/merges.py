"""``MERGE INTO``: keys from ``ON``, clauses in order, expressions in Lance's dialect with ``source.`` and ``target.``.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp

from tablewright.operations.merge_insert.ordered import DeleteClause, InsertClause, RowClause, UpdateClause
from tablewright.statements.expressions import Translator, column_path
from tablewright.statements.place import Text
from tablewright.statements.queries import Source
from tablewright.statements.values import MergeInto

__all__ = ["merge_into"]


def merge_into(tree: exp.Merge, source: Source, text: Text, zone: str) -> MergeInto | None:
    """The statement, if its table is ours."""
    table = source.table_of(tree.this)
    if table is None:
        return None
    using = tree.args["using"]
    names = (tree.this.alias_or_name.lower(), using.alias_or_name.lower())
    if names[0] == names[1]:
        raise text.wrong("Both sides have the same name: give the table or the source an alias.", using)
    sides = {names[0]: "target", names[1]: "source"} if names[1] else {names[0]: "target"}
    reader = _Clauses(text, Translator(text, sides, zone), names[0])
    whens = tree.args["whens"].expressions
    matched = [each for each in whens if each.args["matched"]]
    by_source = [each for each in whens if not each.args["matched"] and each.args.get("source")]
    not_matched = [each for each in whens if not each.args["matched"] and not each.args.get("source")]
    for some in (matched, by_source, not_matched):
        reader.check_order(some)
    return MergeInto(
        table=table,
        source=source.query(*_extent(source), prefix="SELECT * FROM "),
        on=tuple(_keys(tree.args.get("on"), sides, text)),
        matched=tuple(reader.row_clause(each, of_match=True) for each in matched),
        by_source=tuple(reader.row_clause(each, of_match=False) for each in by_source),
        not_matched=tuple(reader.insert(each) for each in not_matched),
        mentions=frozenset(each.name.lower() for when in whens for each in when.find_all(exp.Identifier)),
    )


def _extent(source: Source) -> tuple[int, int]:
    """Where the source is written: between USING and ON that are in no parentheses."""
    depth, start = 0, 0
    for token in source.tokens:
        depth += (token.text == "(") - (token.text == ")")
        word = token.text.upper()
        if depth == 0 and word == "USING" and not start:
            start = token.end + 1
        elif depth == 0 and word == "ON" and start:
            return start, token.start
    raise Text(source.text).wrong("MERGE INTO t USING source ON … is expected.", len(source.text))


def _keys(on: exp.Expr | None, sides: dict[str, str], text: Text) -> Iterator[tuple[str, str]]:
    """The columns that have to be equal."""
    if on is None:
        raise text.wrong("ON is missing: it says which columns have to be equal.", len(text.whole))
    for condition in on.flatten() if isinstance(on, exp.And) else [on.unnest()]:
        equal = condition.unnest()
        found: dict[str, str] = {}
        if isinstance(equal, exp.EQ):
            for side in (equal.this, equal.expression):
                path = column_path(side.unnest())
                if path is not None and len(path) > 1 and path[0].lower() in sides:
                    found[sides[path[0].lower()]] = ".".join(path[1:])
        if found.keys() != {"source", "target"}:
            raise text.wrong(
                "ON compares columns of both sides, t.x = s.x AND …; put other conditions behind WHEN … AND.", condition
            )
        yield found["target"], found["source"]


class _Clauses:
    """Reads the clauses of one statement."""

    def __init__(self, text: Text, translator: Translator, target: str) -> None:
        self._text, self._translator, self._target = text, translator, target

    def check_order(self, whens: Sequence[exp.Expr]) -> None:
        """A clause after one without a condition could never be reached."""
        for when, following in pairwise(whens):
            if when.args.get("condition") is None:
                raise self._text.wrong("This clause follows one of its kind without a condition.", following)

    def row_clause(self, when: exp.Expr, *, of_match: bool) -> RowClause:
        then, condition = when.args["then"], self._condition(when)
        if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
            return DeleteClause(condition)
        if not isinstance(then, exp.Update):
            raise self._text.wrong("UPDATE or DELETE is expected here.", when)
        given = then.args.get("expressions")
        if isinstance(given, exp.Star) or (given and isinstance(given[0], exp.Star)):
            return self._all(when, condition, of_match)
        return UpdateClause(tuple(self._assignment(each) for each in then.expressions), condition)

    def _all(self, when: exp.Expr, condition: str | None, of_match: bool) -> UpdateClause:
        if not of_match:
            raise self._text.wrong("Rows that no source row matches have no source to take * from.", when)
        return UpdateClause(None, condition)

    def insert(self, when: exp.Expr) -> InsertClause:
        then, condition = when.args["then"], self._condition(when)
        if not isinstance(then, exp.Insert):
            raise self._text.wrong("INSERT is expected here.", when)
        if isinstance(then.this, exp.Star):
            return InsertClause(None, condition)
        columns = then.this.expressions if isinstance(then.this, exp.Tuple) else []
        values = then.expression.expressions if isinstance(then.expression, exp.Tuple) else []
        if not columns or len(columns) != len(values):
            raise self._text.wrong("INSERT (columns) VALUES (as many values), or INSERT *, is expected.", when)
        names = [".".join(column_path(each) or [each.name]) for each in columns]
        given = zip(names, map(self._translator.sql, values), strict=True)
        return InsertClause(tuple(given), condition)

    def _condition(self, when: exp.Expr) -> str | None:
        condition = when.args.get("condition")
        return None if condition is None else self._translator.sql(condition)

    def _assignment(self, node: exp.Expr) -> tuple[str, str]:
        path = column_path(node.this) if isinstance(node, exp.EQ) else None
        if path is None:
            raise self._text.wrong("SET column = expression is expected.", node)
        if len(path) > 1 and path[0].lower() == self._target:
            path = path[1:]
        return ".".join(path), self._translator.sql(node.expression)
