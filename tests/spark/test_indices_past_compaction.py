"""Indices of pylance while writers on Spark pass compactions; and pylance past what these wrote."""

from __future__ import annotations

import pytest
from tests.differential.test_indices_past_compaction import (
    test_a_compaction_passes_a_new_index,
    test_a_new_index_passes_a_compaction,
    test_answers_after_a_rebase_past_a_compaction,
    test_two_compactions_of_other_fragments_of_one_index,
)

pytestmark = pytest.mark.share(4)
__all__ = [
    "test_a_compaction_passes_a_new_index",
    "test_a_new_index_passes_a_compaction",
    "test_answers_after_a_rebase_past_a_compaction",
    "test_two_compactions_of_other_fragments_of_one_index",
]
