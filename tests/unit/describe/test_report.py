"""A report as plain values, and numbers, moments and rows in words."""

from __future__ import annotations

import pytest

from tablewright.describe.report import Report, moment, positions, shown
from tablewright.format.row_set import RowSet


def test_plain_values() -> None:
    report = Report(title="a set", facts=(("size", 2),), columns=("a", "b"), rows=((1, "x"), (2, None)))
    assert report.to_dict() == {
        "title": "a set",
        "facts": {"size": 2},
        "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    }
    with pytest.raises(ValueError, match="zip"):
        Report(title="x", columns=("a",), rows=((1, 2),)).to_dict()


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (2, "0, 1"), (8, "0, 1, 2, 3, 4, 5, 6, 7"), (9, "0, 1, 2, 3, 4, 5, 6, 7, … (9)")]
)
def test_the_first_numbers(count: int, text: str) -> None:
    assert shown(range(count), count) == text
    assert positions(RowSet.of(range(count))) == text


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "1970-01-01 00:00:00 UTC"), (-1_000_000, "1969-12-31 23:59:59 UTC"), (1 << 62, f"{1 << 62} µs since 1970")],
)
def test_moments(micros: int, text: str) -> None:
    assert moment(micros) == text
