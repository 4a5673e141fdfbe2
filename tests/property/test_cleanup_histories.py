"""Random histories with cleanups: see `cleanup_history`. `make soak` plays 2,000."""

from __future__ import annotations

import os

import pytest
from tests.depth import deep

from .cleanup_history import run_history

FIRST = int(os.environ.get("TABLEWRIGHT_CLEANUP_SEED", "0"))
BLOCK = 4


@pytest.mark.parametrize("block", range(deep(3, 500)))
def test_cleanup_removes_nothing_that_is_reachable(block: int) -> None:
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        run_history(seed)
