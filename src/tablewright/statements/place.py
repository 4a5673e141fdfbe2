"""Where in a statement something is wrong: line, column, and a mark below the text.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tablewright.errors import InvalidRequest

__all__ = ["InvalidStatement", "Text", "start_of"]


class InvalidStatement(InvalidRequest):
    """A statement that can't be read, or done. ``line`` and ``column`` (from 1) say where; nothing was changed."""

    def __init__(self, reason: str, text: str, start: int) -> None:
        begin = text.rfind("\n", 0, start) + 1
        self.reason, self.line, self.column = reason, text.count("\n", 0, start) + 1, start - begin + 1
        shown = text[begin:].split("\n", 1)[0]
        mark = " " * (self.column - 1) + "^"
        super().__init__(f"{reason} (line {self.line}, column {self.column})\n{shown}\n{mark}")


@dataclass(frozen=True, slots=True)
class Text:
    """A statement as it was written, or (``prefix`` characters before ``offset``) a part of it.

    >>> raise Text("DELETE FROM t WERE x").wrong("WERE is not expected here.", 14)
    Traceback (most recent call last):
    tablewright.statements.place.InvalidStatement: WERE is not expected here. (line 1, column 15)
    DELETE FROM t WERE x
                  ^
    """

    whole: str
    offset: int = 0

    def wrong(self, reason: str, at: int | exp.Expr | None) -> InvalidStatement:
        """The error about a node, or a character of this part."""
        start = at if isinstance(at, int) else start_of(at)
        return InvalidStatement(reason, self.whole, min(len(self.whole), max(0, start + self.offset)))


def start_of(node: Any) -> int:
    """The first character of a node that is known to be somewhere, or of what it is part of."""
    while node is not None:
        places = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        if places:
            return int(min(places))
        node = node.parent
    return 0
