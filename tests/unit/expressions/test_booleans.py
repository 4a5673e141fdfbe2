"""Where `regexp_match` stands as a condition."""

from __future__ import annotations

import pytest

from tablewright.expressions.booleans import match_as_condition
from tablewright.expressions.lexer import tokenize

CONDITIONS = {
    "regexp_match(a, 'x')": 1,
    "not ((regexp_match(a, 'x')) or regexp_match(a, 'y'))": 2,
    "regexp_match(a, 'x')[1] = 'x'": 0,
    "f(regexp_match(a, 'x'))": 0,
    "regexp_match(a, 'x') is null": 0,
    "(regexp_match(a, 'x')) is null": 0,
    "b and (regexp_match(a, '(') or c)": 1,
}


@pytest.mark.parametrize("sql", CONDITIONS)
def test_where_regexp_match_is_a_condition(sql: str) -> None:
    tokens = list(tokenize(sql))
    assert len(match_as_condition(tokens)) - len(tokens) == 3 * CONDITIONS[sql]
