from __future__ import annotations

import pytest

import tablewright as tw
from tablewright import cache
from tablewright.errors import InvalidRequest


def test_the_budget_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLEWRIGHT_CACHE_BYTES", raising=False)
    assert cache._bytes_at_start() == cache.DEFAULT_BYTES
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", "x")
    assert cache._bytes_at_start() == cache.WORKER_BYTES
    monkeypatch.setenv("TABLEWRIGHT_CACHE_BYTES", "1234")
    assert cache._bytes_at_start() == 1234
    monkeypatch.setenv("TABLEWRIGHT_CACHE_BYTES", "1 GB")
    with pytest.raises(InvalidRequest, match="must be a whole number of bytes, not '1 GB'"):
        cache._bytes_at_start()


def test_the_budget_can_be_changed() -> None:
    before = tw.config().cache_bytes
    try:
        assert tw.config(cache_bytes=0).cache_bytes == tw.config().cache_bytes == tw.cache_stats().bytes_max == 0
        assert tw.cache_stats().entries == 0
        for wrong in (-1, 1.5, "many"):
            with pytest.raises((InvalidRequest, TypeError)):
                tw.config(cache_bytes=wrong)  # type: ignore[arg-type]
    finally:
        tw.config(cache_bytes=before)
