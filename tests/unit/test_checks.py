"""checks.py: what callers hand in, in its plain form or refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tablewright.checks import byte_string, check_flag, check_text, listed, whole_number
from tablewright.errors import InvalidRequest, WrongType


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers(value: Any) -> None:
    assert type(whole_number(value, "limit")) is int
    assert whole_number(value, "limit", minimum=3, maximum=3) == 3


@pytest.mark.parametrize("value", ["3", 2.5, True, np.True_, None, [1], np.array([1, 2])], ids=repr)
def test_no_whole_numbers(value: Any) -> None:
    with pytest.raises(WrongType, match=r"limit must be a whole number, got .* of type"):
        whole_number(value, "limit")


def test_bounds() -> None:
    assert whole_number(-1, "limit", minimum=None) == -1
    with pytest.raises(InvalidRequest, match="limit must be non-negative, got -1"):
        whole_number(-1, "limit")
    with pytest.raises(InvalidRequest, match="limit must be at least 1, got 0"):
        whole_number(0, "limit", minimum=1)
    with pytest.raises(InvalidRequest, match="limit must be at most 7, got 8"):
        whole_number(8, "limit", maximum=7)


def test_flags_and_texts() -> None:
    for value in (True, False, None, np.True_):
        check_flag(value, "with_row_id")
    with pytest.raises(WrongType, match="with_row_id must be True or False, got 'x'"):
        check_flag("x", "with_row_id")
    assert check_text("a", "name") == "a"
    with pytest.raises(WrongType, match="name must be text, got b'x' of type bytes"):
        check_text(b"x", "name")


@pytest.mark.parametrize("value", ["ab", b"ab", 3, None, {"a": 1}, np.array(3)], ids=repr)
def test_no_lists(value: Any) -> None:
    assert listed(iter((1, 2)), "columns") == [1, 2]
    with pytest.raises(WrongType, match="columns must be a list"):
        listed(value, "columns")


@pytest.mark.parametrize("value", [5, 99_999_999_999, "ab", [256], [-1], ["a"], [1.5], None], ids=repr)
def test_no_bytes(value: Any) -> None:
    assert byte_string(b"ab", "data") == byte_string([97, 98], "data") == b"ab"
    with pytest.raises(InvalidRequest, match="data must be"):
        byte_string(value, "data")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(WrongType) as caught:
        whole_number("x" * 10_000, "limit")
    assert len(str(caught.value)) < 200
