"""Random histories of tables with indices: by index or by a flat scan, by us or by pylance, the answer is the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.caches import BUDGETS, cached
from tests.depth import DEPTH, deep

import tablewright as tw

from .index_history import play

BLOCKS = 20
HISTORIES = deep(1000, 10_000)
FIRST = 0 if DEPTH == 1 else 1_000_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_way_to_an_answer_gives_the_same(tmp_path: Path, block: int) -> None:
    """Writers are ours and pylance's in turns; one history in five is ours alone."""
    budgets = list(BUDGETS)
    for seed in range(FIRST + block, FIRST + HISTORIES, BLOCKS):
        libraries = [tw] if seed % 5 == 4 else [tw, lance]
        with cached(budgets[(seed // BLOCKS) % len(budgets)]):
            play(tmp_path, seed, libraries)
