"""pylance with a stale handle past changes that Spark made and that were rebased past a compaction."""

from __future__ import annotations

import pytest
from tests.differential.test_pylance_past_rebased import (
    test_pylance_past_ours,
)

pytestmark = pytest.mark.share(4)
__all__ = [
    "test_pylance_past_ours",
]
