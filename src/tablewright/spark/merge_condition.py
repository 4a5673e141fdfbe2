"""The condition of a merge in delta-spark's words, ``"target.id = source.id"``, as key columns and names of the sides.

A merge matches rows by equal keys. So the condition is one or more equalities of a column of the table with a column of
the source, joined by AND; what else a merge should ask belongs into the conditions of its clauses. The table is called
``target``, or what ``alias`` says; the other name in the condition is the source's.

Clauses may use the same names; they are translated to ``target.`` and ``source.``, token by token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tablewright.errors import InvalidRequest
from tablewright.expressions.lexer import Kind, Token, tokenize

__all__ = ["SOURCE", "TARGET", "MatchedKeys", "parse_condition", "renamed"]

TARGET, SOURCE = "target", "source"
_TERM_TOKENS = 7  # target . id = source . id


@dataclass(frozen=True, slots=True)
class MatchedKeys:
    """Pairs of columns that have to be equal, of the table and of the source; ``source`` is what that is called."""

    columns: tuple[tuple[str, str], ...]
    source: str


def parse_condition(condition: str, target: str = TARGET) -> MatchedKeys:
    """The keys that a merge matches by.

    >>> parse_condition("t.id = s.id AND s.`the day` = t.day", "t")
    MatchedKeys(columns=(('id', 'id'), ('day', 'the day')), source='s')
    >>> parse_condition("target.id = source.id AND target.n > 3")
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: The condition of a merge is target.<column> = source.<column>, several ...
    """
    if not isinstance(condition, str):
        raise InvalidRequest(f"The condition of a merge is SQL text, got {condition!r}.")
    terms = [
        list(tokens)
        for is_and, tokens in groupby(tokenize(condition), lambda token: token.is_word("AND"))
        if not is_and
    ]
    pairs = [_pair(tokens, target) for tokens in terms]
    sources = {source for pair in pairs if pair is not None for _, _, source in [pair]}
    if not pairs or None in pairs or len(sources) != 1:
        raise InvalidRequest(
            f"The condition of a merge is {target}.<column> = source.<column>, several of them joined by AND; got "
            f"{condition!r}. Other conditions belong to the clauses; alias() gives the table another name."
        )
    return MatchedKeys(tuple((own, theirs) for own, theirs, _ in filter(None, pairs)), sources.pop())


def _pair(tokens: Sequence[Token], target: str) -> tuple[str, str, str] | None:
    """The table's column, the source's, and the source's name; ``None`` if it is no such equality."""
    if len(tokens) != _TERM_TOKENS or not all(tokens[place].is_symbol(".") for place in (1, 5)):
        return None
    if not tokens[3].is_symbol("=", "==") or any(not _is_name(tokens[place]) for place in (0, 2, 4, 6)):
        return None
    left, right = (tokens[0].value, tokens[2].value), (tokens[4].value, tokens[6].value)
    if right[0].lower() == target.lower():
        left, right = right, left
    if left[0].lower() != target.lower() or right[0].lower() == target.lower():
        return None
    return left[1], right[1], right[0]


def renamed(expression: str, names: Mapping[str, str]) -> str:
    """An expression with other names for its sides.

    >>> renamed("t.n + s.`my n` > 1.5 AND s.kind = 't.n'", {"t": "target", "s": "source"})
    "target . n + source . `my n` > 1.5 AND source . kind = 't.n'"
    >>> renamed("target.n", {"target": "target", "source": "source"})
    'target.n'
    """
    changed = {old.lower(): new for old, new in names.items() if old.lower() != new}
    return expression if not changed else " ".join(_renamed(list(tokenize(expression)), changed))


def _renamed(tokens: Sequence[Token], names: Mapping[str, str]) -> Iterator[str]:
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        is_side = after is not None and after.is_symbol(".") and not (before is not None and before.is_symbol("."))
        if _is_name(token) and is_side and token.value.lower() in names:
            yield names[token.value.lower()]
        else:
            yield _text(token)


def _text(token: Token) -> str:
    quote = {Kind.NAME: "`", Kind.TEXT: '"' if token.double_quoted else "'"}.get(token.kind, "")
    return quote + token.value.replace(quote, quote * 2) + quote if quote else token.value


def _is_name(token: Token) -> bool:
    return token.kind in (Kind.NAME, Kind.WORD)
