"""Random histories of tables with indices whose bulk work runs on Spark: every answer is that of a flat scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest
from tests.depth import deep
from tests.differential.index_history import play

import tablewright as tw

BLOCKS = 5


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_way_to_an_answer_gives_the_same_on_spark(tmp_path: Path, spark: Any, block: int) -> None:
    for seed in range(5000 + block, 5000 + deep(50, 500), BLOCKS):
        play(tmp_path, seed, [tw, lance], engine=spark)
