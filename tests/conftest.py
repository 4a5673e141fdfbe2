"""What all tests share: Hypothesis profiles, and the rule that Spark tests live in one process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent

# `TABLEWRIGHT_HYPOTHESIS=deep make test` searches longer; the quick profile is what every run does.
settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TABLEWRIGHT_HYPOTHESIS", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in tests/spark is `spark`; all `spark` tests go to one xdist worker, which owns the one session."""
    for item in items:
        if HERE / "spark" in item.path.parents:
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
