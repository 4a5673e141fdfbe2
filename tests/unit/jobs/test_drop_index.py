"""Dropping indices."""

from __future__ import annotations

import pytest
from tests.unit.operations.create_index.tables import rows, table

from tablewright.errors import IndexNotFound, InvalidRequest
from tablewright.format.index_kinds import REUSE_NAME


def test_all_segments_go():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "BTREE")
    dataset.insert(rows(100, 105))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(dataset.list_indices()) == 4
    dataset.drop_index("id_idx")
    assert [index["name"] for index in dataset.list_indices()] == ["s_idx", "s_idx"]


def test_an_unknown_index():
    dataset = table()
    with pytest.raises(IndexNotFound, match=r"index not found: name=nope.*The table has none"):
        dataset.drop_index("nope")
    assert dataset.version == 1


def test_the_record_of_deferred_compactions_stays_while_it_is_needed():
    """Trap T9: without it, the index would find no rows, silently."""
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(defer_index_remap=True)
    assert REUSE_NAME in [index["name"] for index in dataset.list_indices()]
    with pytest.raises(InvalidRequest, match="optimize_indices"):
        dataset.drop_index(REUSE_NAME)
    dataset.optimize.optimize_indices()
    assert [index["name"] for index in dataset.list_indices()] == ["id_idx"], "it is removed with the last use"
    assert dataset.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
