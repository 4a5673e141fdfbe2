"""Compactions on Spark that others, on Spark or with pylance, overtake."""

from __future__ import annotations

import pytest
from tests.concurrency.test_compaction_meanwhile import (
    copy,
    masters,
    test_a_table_that_was_replaced_meanwhile,
    test_changes_just_before_the_commit,
    test_changes_meanwhile_are_taken_over,
    test_columns_of_one_of_three_members,
    test_compactions_meanwhile,
    test_fragments_and_outputs_that_are_emptied,
    test_pylance_with_a_stale_handle,
    test_stable_ids_are_switched_on_meanwhile,
)

pytestmark = pytest.mark.share(8)
__all__ = [
    "copy",
    "masters",
    "test_a_table_that_was_replaced_meanwhile",
    "test_changes_just_before_the_commit",
    "test_changes_meanwhile_are_taken_over",
    "test_columns_of_one_of_three_members",
    "test_compactions_meanwhile",
    "test_fragments_and_outputs_that_are_emptied",
    "test_pylance_with_a_stale_handle",
    "test_stable_ids_are_switched_on_meanwhile",
]
