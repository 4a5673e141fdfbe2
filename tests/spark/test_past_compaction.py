"""Writers on Spark past compactions, on Spark or pylance's, that were committed first."""

from __future__ import annotations

import pytest
from tests.concurrency.test_past_compaction import (
    attempts,
    race,
    test_a_chain_of_compactions_with_writers_between,
    test_a_fragment_or_an_output_is_emptied_meanwhile,
    test_a_key_that_came_and_was_compacted,
    test_a_key_that_was_found_and_compacted,
    test_a_prepared_transaction_passes_a_compaction,
    test_a_rewrite_of_pylance_that_reordered_rows_is_recognised,
    test_a_rewrite_that_reordered_rows_is_recognised,
    test_a_row_that_was_deleted_before_the_compaction_is_gone,
    test_a_row_that_was_moved_before_the_compaction_is_not_gone,
    test_a_stream_of_values_passes_compactions,
    test_a_stream_of_values_passes_rows_that_came,
    test_columns_after_columns,
    test_columns_of_one_of_three_members,
    test_old_files_that_were_cleaned_up,
    test_past_a_compaction_that_was_planned_before_a_delete,
    test_past_one_compaction,
    test_serializable_passes_a_compaction_and_nothing_else,
    test_versions_in_between_that_were_cleaned_up,
    test_what_it_cost_is_reported,
)

pytestmark = pytest.mark.share(10)
__all__ = [
    "attempts",
    "race",
    "test_a_chain_of_compactions_with_writers_between",
    "test_a_fragment_or_an_output_is_emptied_meanwhile",
    "test_a_key_that_came_and_was_compacted",
    "test_a_key_that_was_found_and_compacted",
    "test_a_prepared_transaction_passes_a_compaction",
    "test_a_rewrite_of_pylance_that_reordered_rows_is_recognised",
    "test_a_rewrite_that_reordered_rows_is_recognised",
    "test_a_row_that_was_deleted_before_the_compaction_is_gone",
    "test_a_row_that_was_moved_before_the_compaction_is_not_gone",
    "test_a_stream_of_values_passes_compactions",
    "test_a_stream_of_values_passes_rows_that_came",
    "test_columns_after_columns",
    "test_columns_of_one_of_three_members",
    "test_old_files_that_were_cleaned_up",
    "test_past_a_compaction_that_was_planned_before_a_delete",
    "test_past_one_compaction",
    "test_serializable_passes_a_compaction_and_nothing_else",
    "test_versions_in_between_that_were_cleaned_up",
    "test_what_it_cost_is_reported",
]
