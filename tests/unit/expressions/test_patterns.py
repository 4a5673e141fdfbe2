from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.expressions.patterns import pattern_query
from tablewright.expressions.queries import Contains, IsIn, StartsWith


@pytest.mark.parametrize(
    ("pattern", "query", "exact"),
    [
        ("ab%", StartsWith("ab"), True),
        ("ab%%", StartsWith("ab"), True),
        ("ab%c", StartsWith("ab"), False),
        ("a_b", StartsWith("a"), False),
        ("%ab%", Contains("ab"), True),
        ("%ab", Contains("ab"), False),
        ("_ab%", Contains("ab"), False),
        ("%ab%cde%", Contains("cde"), False),
        (r"%ab\%cde", Contains("ab"), False),
    ],
)
def test_what_a_pattern_says(pattern: str, query: object, exact: bool) -> None:
    assert pattern_query(pattern, pa.string()) == (query, exact)


def test_a_pattern_without_wildcards_is_the_text_itself() -> None:
    found = pattern_query("ab", pa.large_string())
    assert found is not None and isinstance(found[0], IsIn) and found[0].values.to_pylist() == ["ab"]


@pytest.mark.parametrize("pattern", ["%", "_", r"\%a", "%%"])
def test_some_say_nothing(pattern: str) -> None:
    assert pattern_query(pattern, pa.string()) is None


def test_other_types_have_no_patterns() -> None:
    assert pattern_query("a%", pa.binary()) is None
