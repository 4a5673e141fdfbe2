"""What all tests share: Hypothesis profiles, and the rule that Spark tests live in one process."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.s3 import s3_bucket, s3_endpoint, s3_options, slow_s3

__all__ = ["s3_bucket", "s3_endpoint", "s3_options", "slow_s3"]  # fixtures

HERE = Path(__file__).parent
OWN_SESSIONS = {
    "test_own_session.py": "own process",
    "test_worker_python.py": "own process",
    "test_cluster.py": "cluster",
    "test_fault_points.py": "faults",
    "test_killed_driver.py": "killed driver",
    "test_oldest.py": "oldest PySpark",
    "test_processes.py": "processes",
}
"""Modules of tests/spark that don't use the session that the others share, and what may run beside them."""

# No test can cut the power, and waiting for the disk takes longer than most tests. Those about `fsync` watch the calls.
os.fsync = lambda descriptor: None

# `make test` draws the same examples in every run, so that its verdict is about the code; `make soak` searches for new
# ones, `TABLEWRIGHT_HYPOTHESIS=deep` searches longer, `make quick` is brief.
COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("brief", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("normal", max_examples=50, derandomize=True, **COMMON)
settings.register_profile("search", max_examples=50, **COMMON)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TABLEWRIGHT_HYPOTHESIS", "normal"))


gc.disable()  # until all tests are collected


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the garbage collector need not look at its million objects again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All in tests/spark is `spark`. In a process of several, these come first, for they take longest."""
    for item in items:
        if HERE / "spark" in item.path.parents:
            item.add_marker("spark")
        elif item.get_closest_marker("spark"):
            raise pytest.UsageError(f"{item.nodeid} is marked spark: it belongs into tests/spark.")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadscope` means here: tests of the one Spark session in one process, which owns it; else by file.

    Modules of tests/spark whose sessions are in processes of their own don't wait for the others.
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.split("::")[0]
            if not path.startswith("tests/spark/"):
                return path
            return OWN_SESSIONS.get(path.rpartition("/")[2], "spark")

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark session of all tests: embedded as a user gets it, on two cores."""
    from tablewright.engine.spark.session import embedded_session

    session = embedded_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, brief=True)
    yield session
    session.stop()


@pytest.fixture
def engine() -> Any:
    """Where our work runs in tests that hold on every engine: on threads; tests/spark has another one."""
    return "local"
