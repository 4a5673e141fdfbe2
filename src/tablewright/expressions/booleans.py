"""``regexp_match`` as a condition: true where the pattern is found, as Lance coerces it.

The function returns a list of groups, or null. Where a condition stands (the whole filter, or an operand of AND, OR,
NOT, within any parentheses) the call is read as ``regexp_match(…) IS NOT NULL``. Elsewhere it keeps its list:
``regexp_match(s, '(a)')[1] = 'a'``. The walk: cut the tokens at AND and OR outside parentheses, step over NOT and
through parentheses that enclose a whole piece, and look whether a single call is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablewright.expressions.lexer import Kind, Token

__all__ = ["match_as_condition"]

_FOUND = (Token(Kind.WORD, "IS"), Token(Kind.WORD, "NOT"), Token(Kind.WORD, "NULL"))


def match_as_condition(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with ``IS NOT NULL`` after every call of ``regexp_match`` that stands as a condition."""
    result: list[Token] = []
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += token.is_symbol("(", "[") - token.is_symbol(")", "]")
        if depth == 0 and token.is_word("AND", "OR"):
            result += [*_condition(tokens[start:index]), token]
            start = index + 1
    return result + _condition(tokens[start:])


def _condition(piece: Sequence[Token]) -> list[Token]:
    if piece and piece[0].is_word("NOT"):
        return [piece[0], *_condition(piece[1:])]
    if _encloses(piece, 0):
        return [piece[0], *match_as_condition(piece[1:-1]), piece[-1]]
    if piece and piece[0].is_word("REGEXP_MATCH") and _encloses(piece, 1):
        return [*piece, *_FOUND]
    return list(piece)


def _encloses(piece: Sequence[Token], opening: int) -> bool:
    """Whether the parenthesis at ``opening`` closes with the last token of the piece."""
    if len(piece) < opening + 2 or not piece[opening].is_symbol("("):
        return False
    depth = 0
    for index in range(opening, len(piece)):
        depth += piece[index].is_symbol("(") - piece[index].is_symbol(")")
        if depth == 0:
            return index == len(piece) - 1
    return False
