from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import InvalidRequest
from tablewright.operations.cleanup.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("14d", 14 * 86_400),
        ("3600s", 3600),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        (" 2 weeks ", 14 * 86_400),
        ("1M", 2_630_016),
        ("1m", 60),
        ("1year 1s", 31_557_601),
        ("1500ms", 1.5),
        ("0s", 0),
        ("0", 0),
    ],
)
def test_time_spans(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", " ", "14", "d", "14 fortnights", "-1d", "1.5h", "1d x", "9999999999999y"])
def test_what_is_no_time_span(text: str) -> None:
    with pytest.raises(InvalidRequest, match="time span"):
        parse_duration(text)


@given(st.integers(0, 10**9))
def test_round_trip(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == timedelta(seconds=seconds)
