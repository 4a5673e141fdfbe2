"""Tokens: names, strings, numbers and operators apart."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.lexer import Kind, Token, tokenize

NAME, TEXT, SPECIAL, NUMBER, WORD, SYMBOL = Kind

CASES: dict[str, list[tuple[Kind, str]]] = {
    "a = 1": [(WORD, "a"), (SYMBOL, "="), (NUMBER, "1")],
    "`a``b`.c": [(NAME, "a`b"), (SYMBOL, "."), (WORD, "c")],
    '\'it\'\'s\' "say ""hi"""': [(TEXT, "it's"), (TEXT, 'say "hi"')],
    "x'ff' E'a\\n'": [(SPECIAL, "x'ff'"), (SPECIAL, "E'a\\n'")],
    "1.5e-3 .5 1_000 2.": [(NUMBER, "1.5e-3"), (NUMBER, ".5"), (NUMBER, "1_000"), (NUMBER, "2.")],
    "a<=b<>c!=d||e::int": [
        *((WORD, "a"), (SYMBOL, "<="), (WORD, "b"), (SYMBOL, "<>"), (WORD, "c")),
        *((SYMBOL, "!="), (WORD, "d"), (SYMBOL, "||"), (WORD, "e"), (SYMBOL, "::"), (WORD, "int")),
    ],
    "a /* b */ -- c\n+d": [(WORD, "a"), (SYMBOL, "+"), (WORD, "d")],
    "größe §": [(WORD, "größe"), (SYMBOL, "§")],
    " \t\n": [],
}


@pytest.mark.parametrize("text", CASES)
def test_tokens(text: str) -> None:
    assert [(token.kind, token.value) for token in tokenize(text)] == CASES[text]


def test_questions() -> None:
    (word,) = tokenize("And")
    assert word.is_word("AND", "OR") and not word.is_symbol("And")
    assert not Token(Kind.NAME, "and").is_word("AND")
    assert [token.double_quoted for token in tokenize("'a' \"a\" `a`")] == [False, True, False]


@pytest.mark.parametrize(("text", "at"), [("a = 'open", 5), ("`a", 1), ('x "', 3), ("a /* b", 3)])
def test_what_is_never_closed(text: str, at: int) -> None:
    with pytest.raises(InvalidRequest, match=f"is opened but never closed, at character {at} of the expression"):
        list(tokenize(text))
