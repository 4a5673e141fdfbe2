"""tests/depth.py: how much the expensive tests do."""

from __future__ import annotations

import itertools

import pytest
from tests import depth
from tests.depth import deep, pairs_first, stride


@pytest.mark.parametrize(
    ("factor", "number"), [(0.001, 1), (0.5, 50), (1.0, 100), (2.5, 250), (3.0, 300), (99.0, 300), (float("inf"), 300)]
)
def test_numbers_grow_up_to_the_promised_one(monkeypatch: pytest.MonkeyPatch, factor: float, number: int) -> None:
    monkeypatch.setattr(depth, "DEPTH", factor)
    assert deep(100, 300) == number


@pytest.mark.parametrize(("factor", "step"), [(0.5, 12), (1.0, 6), (3.0, 2), (20.0, 1), (float("inf"), 1)])
def test_steps_shrink_until_everything_is_done(monkeypatch: pytest.MonkeyPatch, factor: float, step: int) -> None:
    monkeypatch.setattr(depth, "DEPTH", factor)
    assert stride(6) == step


def test_every_pair_comes_early_and_nothing_is_lost() -> None:
    items = list(itertools.product("abc", "xyz", range(3), [False, True]))
    ordered = pairs_first((item, dict(zip("1234", item, strict=True))) for item in items)
    assert sorted(ordered) == sorted(items)
    places = list(itertools.combinations(range(4), 2))
    early = {(*place, item[place[0]], item[place[1]]) for item in ordered[:12] for place in places}
    assert early == {(*place, item[place[0]], item[place[1]]) for item in items for place in places}
