"""An SQL expression as tokens: just enough to tell names, strings and operators apart.

One regular expression with a named group per kind of token. Everything that it does not know is a symbol and is
passed on; DataFusion's parser judges it. Quotes are doubled inside quotes, comments are dropped, and a quote or
comment that is never closed is an error here, since the parser would report a place that the user never wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tablewright.errors import InvalidRequest

__all__ = ["Kind", "Token", "tokenize"]


class Kind(StrEnum):
    """What a token is. ``NAME`` is a backticked name, ``WORD`` a bare one (or a keyword)."""

    NAME = "name"
    TEXT = "text"
    SPECIAL_TEXT = "special_text"
    NUMBER = "number"
    WORD = "word"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """``value`` is the unquoted text of a name or string, else the source itself."""

    kind: Kind
    value: str
    double_quoted: bool = False

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the given keywords (upper case)."""
        return self.kind is Kind.WORD and self.value.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of the given symbols."""
        return self.kind is Kind.SYMBOL and self.value in symbols


_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<special_text>[xXnNeEbBrR]'(?:[^']|'')*')
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\w*)
  | (?P<word>[^\W\d]\w*)
  | (?P<open>['"`]|/\*)
  | (?P<symbol>::|<=>|==|<=|>=|<>|!=|\|\||=>|->>?|!~~?\*?|~~\*?|~\*|@>|<@|&&|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(expression: str) -> Iterator[Token]:
    """The tokens of an expression, without spaces and comments.

    >>> [token.value for token in tokenize('`with space` = "it" -- why')]
    ['with space', '=', 'it']
    """
    for match in _TOKEN.finditer(expression):
        group, source = str(match.lastgroup), match.group()
        if group == "skip":
            continue
        if group == "open":
            raise InvalidRequest(
                f"Invalid user input: {source} is opened but never closed, at character {match.start() + 1} "
                f"of the expression: {expression}"
            )
        kind = Kind(group)
        quote = source[0] if kind in (Kind.TEXT, Kind.NAME) else ""
        if quote:
            source = source[1:-1].replace(quote * 2, quote)
        yield Token(kind, source, double_quoted=quote == '"')
