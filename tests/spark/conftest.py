"""Tests that hold on every engine run here on Spark: they are imported from where they are, and take this engine.

They are many. In CI a module of them takes a share, ``pytestmark = pytest.mark.share(20)``, in which soon every two
parameters meet; ``TABLEWRIGHT_DEPTH=inf`` runs them all.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Hashable
from typing import Any

import pytest
from tests.depth import deep, pairs_first
from tests.spark.own_process import OwnProcess, ran


@pytest.fixture
def engine(spark: Any) -> Any:
    """The one session."""
    return spark


@pytest.fixture(scope="session")
def own_process(tmp_path_factory: pytest.TempPathFactory) -> OwnProcess:
    """A process with sessions of its own, and what was printed there."""
    from tests.spark import test_own_session, test_worker_python

    return ran(tmp_path_factory.mktemp("own"), test_worker_python.SCRIPT, test_own_session.SCRIPT)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is beyond the share of its module."""
    by_share: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (mark := item.get_closest_marker("share")) is not None:
            by_share[str(item.path), *mark.args].append(item)
    left_out: set[pytest.Item] = set()
    for (_, ci), members in by_share.items():
        left_out.update(pairs_first((item, _facts(item)) for item in members)[deep(ci, len(members)) :])
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _facts(item: pytest.Item) -> dict[str, Hashable]:
    """The test's name and its parameters; those that are values of several fields are taken apart."""
    facts: dict[str, Hashable] = {"test": getattr(item, "originalname", item.name)}
    call = getattr(item, "callspec", None)
    for name, value in {} if call is None else call.params.items():
        if dataclasses.is_dataclass(value):
            facts |= {field.name: str(getattr(value, field.name)) for field in dataclasses.fields(value)}
        else:
            facts[name] = str(value)
    return facts
