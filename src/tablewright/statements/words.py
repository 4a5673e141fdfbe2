"""Short statements, read word by word: OPTIMIZE, VACUUM, DESCRIBE HISTORY and DETAIL, RESTORE.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

from tablewright.statements.place import InvalidStatement, Text
from tablewright.statements.queries import CATALOG, Source, Word
from tablewright.statements.values import (
    DescribeDetail,
    DescribeHistory,
    Optimize,
    Restore,
    Statement,
    TableName,
    Vacuum,
)

__all__ = ["short_statement"]


def short_statement(source: Source) -> Statement | None:
    """The statement, if it is one of these, and its table is ours."""
    words = _Words(source)
    if words.takes("OPTIMIZE"):
        table = words.table()
        return None if table is None else words.ending(Optimize(table), "OPTIMIZE t takes nothing else")
    if words.takes("VACUUM"):
        table = words.table()
        return None if table is None else _vacuum(words, table)
    if words.takes("DESCRIBE") or words.takes("DESC"):
        for word, kind in (("HISTORY", DescribeHistory), ("DETAIL", DescribeDetail)):
            if words.takes(word):
                table = words.table()
                return None if table is None else words.ending(kind(table), f"DESCRIBE {word} t takes nothing else")
        return None
    if words.takes("RESTORE"):
        words.takes("TABLE")
        table = words.table()
        return None if table is None else _restore(words, table)
    return None


def _vacuum(words: _Words, table: TableName) -> Statement:
    hours = None
    if words.takes("RETAIN"):
        hours = float(words.value("NUMBER", "RETAIN takes a number of hours").text)
        if not (words.takes("HOURS") or words.takes("HOUR")):
            raise words.wrong("HOURS is expected here.")
    dry_run = words.takes("DRY")
    if dry_run and not words.takes("RUN"):
        raise words.wrong("RUN is expected here.")
    return words.ending(Vacuum(table, hours, dry_run), "VACUUM t [RETAIN n HOURS] [DRY RUN] is offered")


def _restore(words: _Words, table: TableName) -> Statement:
    expected = "RESTORE TABLE t TO VERSION AS OF n, or TO TIMESTAMP AS OF 'time', is expected"
    words.takes("TO")
    of_version = words.takes("VERSION")
    if not of_version and not words.takes("TIMESTAMP"):
        raise words.wrong(f"{expected}.")
    if not (words.takes("AS") and words.takes("OF")):
        raise words.wrong(f"{expected}.")
    if not of_version:
        return words.ending(Restore(table, timestamp=words.value("STRING", expected).text), expected)
    value = words.value("NUMBER STRING", expected)
    version = int(value.text) if value.text.isdecimal() else value.text
    return words.ending(Restore(table, version=version), expected)


class _Words:
    """The words of a statement, one after the other."""

    def __init__(self, source: Source) -> None:
        self._source, self._tokens, self._at = source, source.tokens, 0

    def takes(self, word: str) -> bool:
        """Go past a word, if it is the next one."""
        is_next = self._at < len(self._tokens) and self._tokens[self._at].text.upper() == word
        self._at += is_next
        return is_next

    def value(self, kinds: str, expected: str) -> Word:
        """The next token, which has to be of some kind."""
        if self._at >= len(self._tokens) or self._tokens[self._at].kind not in kinds.split():
            raise self.wrong(f"{expected}.")
        self._at += 1
        return self._tokens[self._at - 1]

    def table(self) -> TableName | None:
        """A table of ours, if the next words name one."""
        rest = [token.text for token in self._tokens[self._at : self._at + 3]]
        if len(rest) == 3 and rest[0].lower() == CATALOG and rest[1] == ".":
            self._at += 3
            return TableName(path=rest[2])
        if rest and rest[0].lower() in self._source.names and rest[1:2] != ["."]:
            self._at += 1
            return TableName(name=rest[0].lower())
        return None

    def ending(self, statement: Statement, expected: str) -> Statement:
        """The statement, if nothing follows."""
        if self._at < len(self._tokens):
            raise self.wrong(f"{expected}.")
        return statement

    def wrong(self, reason: str) -> InvalidStatement:
        """The error about the next word."""
        text = self._source.text
        start = self._tokens[self._at].start if self._at < len(self._tokens) else len(text)
        return Text(text).wrong(reason, start)
