"""Random histories with cleanups: see `cleanup_history`. `make soak` plays 2,000."""

from __future__ import annotations

import os

import pytest
from tests.caches import budgets_of
from tests.depth import deep

from tablewright.cache import process_cache

from .cleanup_history import run_history

FIRST = int(os.environ.get("TABLEWRIGHT_CLEANUP_SEED", "0"))
BLOCK = 4


@pytest.mark.parametrize("block", range(deep(3, 500)))
def test_cleanup_removes_nothing_that_is_reachable(block: int) -> None:
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        for budget in budgets_of(seed):
            run_history(seed, budget)


def test_the_cache_is_used_and_changes_no_step() -> None:
    """A history with a cache is the one without: the same steps, the same refusals."""
    before = process_cache().stats().kinds
    off, tiny, large = (run_history(4, budget) for budget in ("off", "tiny", "large"))
    assert off == tiny == large
    after = process_cache().stats().kinds
    found = {kind: stats.hits - (before[kind].hits if kind in before else 0) for kind, stats in after.items()}
    assert {kind for kind, hits in found.items() if hits} >= {"manifests", "deletion vectors"}, found
