from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tablewright.errors import InvalidRequest, WrongType
from tablewright.operations.cleanup.options import CleanupOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"older_than": timedelta(seconds=-1)},
        {"retain_versions": 0},
        {"retain_versions": -3},
        {"versions": []},
        {"versions": [0]},
        {"delete_rate_limit": 0},
        {"delete_concurrency": 0},
    ],
    ids=str,
)
def test_values_that_mean_nothing(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        CleanupOptions(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"older_than": 14},
        {"older_than": "14d"},
        {"retain_versions": "3"},
        {"retain_versions": True},
        {"versions": "1"},
        {"versions": 1},
        {"versions": [1.5]},
        {"delete_unverified": "yes"},
        {"error_if_tagged_old_versions": 1},
        {"delete_rate_limit": 0.5},
    ],
    ids=str,
)
def test_wrong_types(wrong: dict[str, Any]) -> None:
    with pytest.raises(WrongType):
        CleanupOptions(**wrong)


def test_two_weeks_if_nothing_is_said() -> None:
    assert CleanupOptions().older_than == timedelta(days=14)
    assert CleanupOptions(versions=[3, 1, 3]).versions == frozenset({1, 3})
    assert CleanupOptions(versions=[1]).older_than is None
