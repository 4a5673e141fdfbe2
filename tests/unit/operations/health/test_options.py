"""Options are checked before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from tablewright.errors import InvalidRequest
from tablewright.operations.health.options import DEFAULT_TARGET_ROWS, HealthOptions, target_rows_of


@pytest.mark.parametrize(
    "given",
    [
        {"workload": "heavy"},
        {"workload": None},
        {"target_rows_per_fragment": 0},
        {"target_rows_per_fragment": 1.5},
        {"versions": -1},
        {"versions": "all"},
        {"sample": 1},
        {"sample_rows": 0},
        {"sample_seconds": -1},
        {"sample_seconds": float("nan")},
        {"sample_seconds": "2"},
        {"sample_seconds": True},
    ],
    ids=repr,
)
def test_bad_options_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        HealthOptions(**given)


@pytest.mark.parametrize(
    ("config", "expected"),
    [({}, DEFAULT_TARGET_ROWS), ("7", 7), ("0", DEFAULT_TARGET_ROWS), ("x", DEFAULT_TARGET_ROWS)],
    ids=["none", "seven", "zero", "text"],
)
def test_the_target_comes_from_the_table(config: Any, expected: int) -> None:
    settings = config if isinstance(config, dict) else {"lance.compaction.target_rows_per_fragment": config}
    assert target_rows_of(HealthOptions(), settings) == expected
    assert target_rows_of(HealthOptions(target_rows_per_fragment=5), settings) == 5
