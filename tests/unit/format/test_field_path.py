"""Dotted paths: names come back as they were, and what is no path is refused with the place."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.field_path import format_path, parse_path

PATHS = {
    "a": ("a",),
    "a.b.c": ("a", "b", "c"),
    "a.`b.c`": ("a", "b.c"),
    "`a``b`": ("a`b",),
    "``": ("",),
    "a b.C-1": ("a b", "C-1"),
}


@pytest.mark.parametrize("path", PATHS)
def test_both_ways(path: str) -> None:
    assert parse_path(path) == PATHS[path]
    assert format_path(PATHS[path]) == path


def test_backticks_where_none_are_needed() -> None:
    assert parse_path("`a`.`b`") == ("a", "b")


@pytest.mark.parametrize(
    ("path", "at"), [("", 0), (".a", 0), ("a.", 2), ("a..b", 2), ("`a", 0), ("a`b", 1), ("`a`b", 3)]
)
def test_what_is_no_path(path: str, at: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"Invalid field path '{path}'.* at character {at}"):
        parse_path(path)
