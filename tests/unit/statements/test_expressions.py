"""Spark's expressions in Lance's dialect: what they become, what they mean, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from tablewright.expressions.sql import compile_sql
from tablewright.statements.expressions import Translator, quoted
from tablewright.statements.place import InvalidStatement, Text

ROWS = pa.record_batch(
    {
        "a": pa.array([1, None, 7], pa.int64()),
        "b": pa.array([2, 3, None], pa.int64()),
        "s": ["Ab", None, " c "],
        "d": [1.25, -2.5, None],
        "st": pa.array([{"x": 1}, {"x": 2}, None], pa.struct({"x": pa.int64()})),
        "l": [[1, 2], [], None],
        "a b": [1, 2, 3],
    }
)


def translated(text: str, zone: str = "UTC") -> str:
    return Translator(Text(text), {"t": ""}, zone).sql(sqlglot.parse_one(text, read="databricks"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("t.a + b * 2", [5, None, None]),
        ("a / 2", [0.5, None, 3.5]),
        ("a % 2", [1, None, 1]),
        ("-a", [-1, None, -7]),
        ("a <=> 7", [False, False, True]),
        ("a is distinct from 7", [True, True, False]),
        ("concat(s, 'x')", ["Abx", None, " c x"]),
        ("s || 'x'", ["Abx", None, " c x"]),
        ("upper(trim(s))", ["AB", None, "C"]),
        ("length(s)", [2, None, 3]),
        ("if(a > 1, 'big', 'small')", ["small", "small", "big"]),
        ("case when a is null then 0 else a end", [1, 0, 7]),
        ("case a when 1 then 'one' end", ["one", None, None]),
        ("coalesce(a, b, 0)", [1, 3, 7]),
        ("nvl(a, -1)", [1, -1, 7]),
        ("nullif(a, 1)", [None, None, 7]),
        ("a in (1, 2)", [True, None, False]),
        ("a not in (1, 2)", [False, None, True]),
        ("a between 1 and 3", [True, None, False]),
        ("s like 'A%'", [True, None, False]),
        ("s ilike 'a_'", [True, None, False]),
        ("s rlike '^A'", [True, None, False]),
        ("startswith(s, 'A')", [True, None, False]),
        ("contains(s, 'c')", [False, None, True]),
        ("ceil(d)", [2, -2, None]),
        ("floor(d)", [1, -3, None]),
        ("cast(a as string)", ["1", None, "7"]),
        ("cast('3' as int) + a", [4, None, 10]),
        ("try_cast(s as int)", [None, None, None]),
        ("substring(s, 1, 1)", ["A", None, " "]),
        ("st.x + 1", [2, 3, None]),
        ("t.st.x", [1, 2, None]),
        ("array_contains(l, 2)", [True, False, None]),
        ("`a b` * 1", [1, 2, 3]),
        ("'it\\'s'", ["it's"] * 3),
        ('"text"', ["text"] * 3),
        ("not (a = 1) and true", [False, None, True]),
        ("abs(round(d))", [1.0, 3.0, None]),
    ],
)
def test_it_means_the_same(text: str, values: list[Any]) -> None:
    assert compile_sql(translated(text), ROWS.schema).evaluate(ROWS).to_pylist() == values


@pytest.mark.parametrize("text", ["timestamp '2024-01-01 10:00:00'", "now()", "current_date()", "cast(s as timestamp)"])
def test_moments_are_those_of_utc(text: str) -> None:
    compile_sql(translated(text, "Etc/UTC"), ROWS.schema)
    with pytest.raises(InvalidStatement, match=r"session's zone Europe/Berlin.*\n.*\n *\^"):
        translated(text, "Europe/Berlin")
    compile_sql(translated("date '2024-01-01'", "Europe/Berlin"), ROWS.schema)


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("a + foo(b)", "FOO\\(b\\) can't be translated", 5),
        ("a / b", "divide by a number", 1),
        ("a / 0", "divide by a number", 1),
        ("a > (select max(x) from s)", "subquery", 13),
        ("exists (select 1)", "subquery", 16),
        ("a in (select x from s)", "subquery", 1),
        ("a + interval 1 day", "can't be translated", 1),
        ("substring(s, b)", "positive number", 11),
        ("cast(a as interval day)", "no such type", 6),
        ("sum(a) over ()", "can't be translated", 1),
        ("s like 'x' escape '!'", "can't be translated", 1),
        ("rand()", "can't be translated", 1),
    ],
)
def test_what_has_no_equal_is_refused_with_its_place(text: str, reason: str, column: int) -> None:
    with pytest.raises(InvalidStatement, match=reason) as caught:
        translated(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_names() -> None:
    assert [quoted(name) for name in ("a", "a b", "ü", "1a", "x`y")] == ["a", "`a b`", "`ü`", "`1a`", "`x``y`"]
