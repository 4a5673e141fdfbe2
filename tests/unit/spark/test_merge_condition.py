"""Conditions of merges in delta-spark's words."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.spark.merge_condition import MatchedKeys, parse_condition, renamed


@pytest.mark.parametrize(
    ("condition", "target", "columns", "source"),
    [
        ("target.id = source.id", "target", (("id", "id"),), "source"),
        ("source.id = target.id", "target", (("id", "id"),), "source"),
        ("t.id==s.key", "t", (("id", "key"),), "s"),
        ("T.id = S.id and t.day = S.day", "t", (("id", "id"), ("day", "day")), "S"),
        ("`target`.`the id` = updates.`a``b`", "target", (("the id", "a`b"),), "updates"),
    ],
)
def test_equal_keys(condition: str, target: str, columns: tuple[tuple[str, str], ...], source: str) -> None:
    assert parse_condition(condition, target) == MatchedKeys(columns, source)


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "id = id",
        "target.id = target.id",
        "source.id = other.id",
        "target.id > source.id",
        "target.id = source.id OR target.n = source.n",
        "target.id = source.id AND target.n = 3",
        "target.id = source.id AND target.n = other.n",
        "target.id = source.id + 1",
        "target.id = 'source.id'",
    ],
)
def test_anything_else_is_refused(condition: str) -> None:
    with pytest.raises(InvalidRequest, match=r"The condition of a merge is target\.<column> = source\.<column>"):
        parse_condition(condition)


def test_a_column_object_is_no_text() -> None:
    with pytest.raises(InvalidRequest, match="SQL text"):
        parse_condition(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t.n + 1", "target . n + 1"),
        ("s.a.b", "source . a . b"),
        ("x.t.n", "x . t . n"),
        ("t", "t"),
        ("`t`.n = 'it''s t.n'", "target . n = 'it''s t.n'"),
        ('T.n = "s.n"', 'target . n = "s.n"'),
        ("t.n >= 1.5e3 AND s.`t.n` <> 2", "target . n >= 1.5e3 AND source . `t.n` <> 2"),
    ],
)
def test_names_of_the_sides_become_ours(before: str, after: str) -> None:
    assert renamed(before, {"t": "target", "s": "source"}) == after
    assert renamed(before, {"target": "target", "source": "source"}) == before
