from __future__ import annotations

from datetime import timedelta

import pytest

from tablewright.errors import InvalidRequest
from tablewright.operations.cleanup.auto import auto_options, is_due


def config(**values: str) -> dict[str, str]:
    return {f"lance.auto_cleanup.{key}": value for key, value in values.items()}


@pytest.mark.parametrize(
    ("interval", "versions", "due"),
    [("1", [5], True), ("2", [5], False), ("2", [6], True), ("2", [5, 6, 7], True), ("3", [], False)],
)
def test_when_it_runs(interval: str, versions: list[int], due: bool) -> None:
    assert is_due(config(interval=interval), versions) is due
    assert is_due(config(older_than="0s"), versions) is False


def test_what_it_removes() -> None:
    assert auto_options(config(interval="2")).older_than == timedelta(0)
    assert auto_options(config(older_than="1h 30m")).older_than == timedelta(minutes=90)
    both = auto_options(config(older_than="14d", retain_versions="3", delete_rate_limit="5", delete_concurrency="2"))
    assert (both.older_than, both.retain_versions) == (timedelta(days=14), 3)
    assert (both.delete_rate_limit, both.delete_concurrency) == (5, 2)
    only = auto_options(config(retain_versions="3"))
    assert (only.older_than, only.retain_versions, only.error_if_tagged_old_versions) == (None, 3, False)


@pytest.mark.parametrize(("key", "value"), [("older_than", "junk"), ("retain_versions", "0"), ("retain_versions", "x")])
def test_what_can_t_be_understood_is_named(key: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=f"lance.auto_cleanup.{key}"):
        auto_options(config(**{key: value}))


@pytest.mark.parametrize("interval", ["0", "-1", "often", ""])
def test_intervals(interval: str) -> None:
    with pytest.raises(InvalidRequest, match="interval"):
        is_due(config(interval=interval), [4])
