"""Sizes in the options of a table."""

from __future__ import annotations

import pytest

from tablewright.errors import InvalidRequest
from tablewright.paimon.sizes import parse_size


def test_sizes() -> None:
    assert [parse_size(text, 1) for text in ("2 mb", "128MB", "1024", "3k", "1 gb", None)] == [
        2 << 20,
        128 << 20,
        1024,
        3 << 10,
        1 << 30,
        1,
    ]
    for wrong in ("mb", "1.5 mb", "2 parsecs", ""):
        with pytest.raises(InvalidRequest, match="a size looks like"):
            parse_size(wrong, 1)
