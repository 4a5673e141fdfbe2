"""The page of promises names its tests: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "guarantees.md").read_text()
CITED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "name"), CITED, ids=[f"{file}::{name}" for file, name in CITED])
def test_the_test_exists(file: str, name: str) -> None:
    text = (ROOT / file).read_text()
    assert not name or re.search(rf"^(    )?def {name}\(", text, re.MULTILINE)


def test_every_promise_is_shown() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "promise | shown by" not in line]
    assert len(rows) > 15
    assert all("`tests/" in row or row.endswith("| the same |") for row in rows)
    assert len(CITED) > 15
