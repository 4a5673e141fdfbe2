"""Queries of Spark's, with places for our tables: the text stays what it was, except where a table of ours is named.

Tables are found by ``sqlglot``'s tree, their extent in the text by its tokens: ``tablewright.`/path` ``, a registered
name that no CTE hides, either with ``VERSION AS OF`` or ``TIMESTAMP AS OF`` behind it, and ``table_changes('t', 1)``.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Databricks
from sqlglot.errors import ParseError, TokenError

from tablewright.errors import InvalidRequest
from tablewright.statements.place import InvalidStatement, Text
from tablewright.statements.values import ChangesRead, Query, TableName, TableRead

__all__ = ["CATALOG", "Source", "Word", "read_tree", "with_place", "words_of"]

CATALOG = "tablewright"
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_TIMES = ("TIMESTAMP", "SYSTEM_TIME")


@dataclass(frozen=True, slots=True)
class Word:
    """A token of a statement, from the character ``start`` to ``end`` (inclusive)."""

    text: str
    start: int
    end: int
    kind: str


def words_of(text: str) -> list[Word]:
    """The tokens of a statement; :class:`InvalidStatement` where a quote or comment does not end."""
    words = _words(text, 0)
    if words and words[0].kind == "COMMAND":  # what follows is not read by sqlglot
        begin = words[0].end + 1
        return [words[0], *_words(text[begin:], begin)]
    return words


def _words(text: str, begin: int) -> list[Word]:
    try:
        found = Databricks().tokenize(text)
    except TokenError as error:
        raise Text(" " * begin + text).wrong(f"The statement can't be read: {error}.", begin + len(text)) from error
    return [Word(each.text, each.start + begin, each.end + begin, each.token_type.name) for each in found]


def read_tree(text: Text, own: str) -> exp.Expr:
    """The tree of a statement, or of a part of one."""
    try:
        return sqlglot.parse_one(own, read="databricks")
    except ParseError as error:
        found = error.errors[0]
        line, column = found.get("line") or 1, found.get("col") or 1
        start = sum(len(each) + 1 for each in own.split("\n")[: line - 1]) + column - len(found.get("highlight") or "")
        raise text.wrong(f"{str(found.get('description')).rstrip('.')}.", start) from error


_NAMES = re.compile(
    r'No field named (\S+?)\.(?:\s|$)|Column "([^"]+)"|(\S+) is a column of the source and of the table'
)


def with_place(error: InvalidRequest, text: str) -> InvalidRequest:
    """The error with the place of the name that it is about, if it is about one, and the statement has it."""
    found = _NAMES.search(str(error))
    if found is None or isinstance(error, InvalidStatement):
        return error
    name = next(group for group in found.groups() if group is not None).split(".")[-1].lower()
    start = next((word.start for word in words_of(text) if word.text.lower() == name), None)
    return error if start is None else InvalidStatement(str(error), text, start)


@dataclass(frozen=True, slots=True)
class Source:
    """A statement, and the names that were registered (in lower case)."""

    text: str
    names: Collection[str]
    tokens: Sequence[Word] = ()

    def table_of(self, node: exp.Expr | None) -> TableName | None:
        """The table of ours that a node of the tree names, if it is one."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or node.catalog:
            return None
        if node.db.lower() == CATALOG:
            return TableName(path=node.name)
        return TableName(name=node.name.lower()) if not node.db and node.name.lower() in self.names else None

    def named(self, text: str) -> TableName | None:
        """The table that a text in quotes names: a registered name, or a path."""
        if text.lower() in self.names:
            return TableName(name=text.lower())
        tree = sqlglot.parse_one(f"SELECT * FROM {text}", read="databricks") if text.startswith(f"{CATALOG}.") else None
        found = None if tree is None else self.table_of(tree.find(exp.Table))
        return found or (TableName(path=text) if "/" in text else None)

    def query(self, start: int = 0, stop: int | None = None, prefix: str = "") -> Query:
        """A part of the statement as a query; ``prefix`` stands before it."""
        own = prefix + self.text[start:stop].rstrip().rstrip(";")
        text = Text(self.text, start - len(prefix))
        tokens = words_of(own)
        if not self.may_read_ours(tokens):
            return Query((own,))
        tree = read_tree(text, own)
        found = sorted(self._reads(tree, tokens, text), key=lambda each: each[0])
        parts: list[str | TableRead | ChangesRead] = []
        done = 0
        for begin, end, read, alias in found:
            parts += [own[done:begin], read, *([f" AS {alias}"] if alias else [])]
            done = end
        return Query((*parts, own[done:]), _mentioned(tree, own))

    def may_read_ours(self, tokens: Sequence[Word] | None = None) -> bool:
        """Whether a word in the statement could stand for a table of ours."""
        ours = {CATALOG, "table_changes", *self.names}
        return any(token.text.lower() in ours for token in (self.tokens if tokens is None else tokens))

    def _reads(
        self, tree: exp.Expr, tokens: Sequence[Word], text: Text
    ) -> Iterator[tuple[int, int, TableRead | ChangesRead, str]]:
        hidden = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        by_start = {token.start: index for index, token in enumerate(tokens)}
        for node in tree.find_all(exp.Table):
            if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "table_changes":
                yield self._changes(node.this, tokens, by_start, text)
                continue
            table = self.table_of(node)
            is_read = node.find_ancestor(exp.From, exp.Join) is not None
            if table is None or (table.name is not None and (table.name in hidden or not is_read)):
                continue  # a name is a temporary view besides
            begin = node.args["db"].meta["start"] if node.db else node.this.meta["start"]
            yield self._read(table, begin, tokens, by_start[node.this.meta["start"]], text, node)

    def _read(
        self, table: TableName, begin: int, tokens: Sequence[Word], at: int, text: Text, node: exp.Table
    ) -> tuple[int, int, TableRead, str]:
        alias = f"`{table.name}`" if table.name is not None and not node.alias else ""
        words = [token.text.upper() for token in tokens[at + 1 : at + 6]]
        skipped = 1 if words[:1] == ["FOR"] else 0
        words = words[skipped:]
        if not (words[:1] and words[0] in (*_VERSIONS, *_TIMES) and words[1:3] == ["AS", "OF"]):
            return begin, tokens[at].end + 1, TableRead(table), alias
        value = tokens[at + 4 + skipped] if len(tokens) > at + 4 + skipped else tokens[-1]
        kind = value.kind
        if kind not in ("NUMBER", "STRING"):
            raise text.wrong("A version is a number or the name of a tag, a time is a text.", value.start)
        if words[0] in _TIMES:
            return begin, value.end + 1, TableRead(table, timestamp=value.text), alias
        version = int(value.text) if value.text.isdecimal() else value.text
        return begin, value.end + 1, TableRead(table, version=version), alias

    def _changes(
        self, node: exp.Anonymous, tokens: Sequence[Word], by_start: dict[int, int], text: Text
    ) -> tuple[int, int, ChangesRead, str]:
        given = node.expressions
        are_literals = len(given) in (2, 3) and all(isinstance(each, exp.Literal) for each in given)
        if not are_literals or not given[0].is_string or not all(each.name.isdecimal() for each in given[1:]):
            raise text.wrong("table_changes takes a table in quotes, a first version, and perhaps a last one.", node)
        table = self.named(given[0].name)
        if table is None:
            raise text.wrong(f"{given[0].name} is neither a path nor a name that was registered.", given[0])
        at = by_start[given[-1].meta["start"]] + 1
        versions = [int(each.name) for each in given[1:]]
        return node.meta["start"], tokens[at].end + 1, ChangesRead(table, *versions), ""


def _mentioned(tree: exp.Expr, own: str) -> frozenset[str] | None:
    """All names that a query mentions; ``None`` if it may read more: a ``*`` but that of ``count(*)``, NATURAL JOIN…"""
    stars = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    if stars or natural or not isinstance(tree, exp.Select | exp.SetOperation) or "|>" in own:
        return None
    return frozenset(each.name.lower() for each in tree.find_all(exp.Identifier))
