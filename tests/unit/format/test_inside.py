"""Paths that lead out of their directory, or that no object can have."""

from __future__ import annotations

import pytest

from tablewright.format.inside import stays_inside


@pytest.mark.parametrize("path", ["a", "a/b.lance", "..a", "a..", "a/...", " ", "a b"])
def test_inside(path: str) -> None:
    assert stays_inside(path)


@pytest.mark.parametrize("path", ["", "/", "..", ".", "../a", "a/..", "a/../b", "a//b", "./a", "/a", "a/", "a\0b"])
def test_outside(path: str) -> None:
    assert not stays_inside(path)
