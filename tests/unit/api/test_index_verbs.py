"""Indices through the dataset: arguments, descriptions, progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.operations.create_index.tables import rows, table

import tablewright as tw
from tablewright.api.index_verbs import IndexProgress
from tablewright.errors import IndexNotFound, InvalidRequest, UnknownIndexType, WrongType
from tablewright.indices import IndexConfig


@pytest.mark.parametrize("given", ["BTREE", "btree", "BTree", IndexConfig("btree"), IndexConfig("BTREE", {})])
def test_forms_of_a_type(given):
    dataset = table()
    dataset.create_scalar_index("id", given)
    assert [index["type"] for index in dataset.list_indices()] == ["BTree"]


def test_a_config_of_another_library_is_taken_by_its_attributes():
    @dataclass
    class Config:
        index_type: str
        parameters: dict[str, Any]

    dataset = table()
    dataset.create_scalar_index(["id"], Config("btree", {}))
    assert len(dataset.list_indices()) == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (3, WrongType),
        (None, WrongType),
        ("HASH", UnknownIndexType),
        ("IVF_PQ", UnknownIndexType),
        ("INVERTED", UnknownIndexType),
        ("fts", UnknownIndexType),
        (IndexConfig("hash"), UnknownIndexType),
        (IndexConfig("btree", {"nope": 1}), InvalidRequest),
        (IndexConfig("btree", [1]), WrongType),  # type: ignore[arg-type]
    ],
)
def test_other_types_are_refused(given, error):
    dataset = table()
    with pytest.raises(error):
        dataset.create_scalar_index("id", given)
    assert dataset.version == 1


@pytest.mark.parametrize(
    "arguments",
    [{"nope": 3}, {"index_uuid": "x"}, {"format_version": 2}, {"progress_callback": 3}, {"fragment_ids": [99]}],
)
def test_other_arguments_are_refused(arguments):
    dataset = table()
    with pytest.raises(InvalidRequest):
        dataset.create_scalar_index("id", "BTREE", **arguments)
    assert dataset.version == 1


def test_two_columns_are_refused():
    with pytest.raises(NotImplementedError, match="single column"):
        table().create_scalar_index(["id", "s"], "BTREE")


def test_progress_is_reported():
    events: list[IndexProgress] = []
    table().create_scalar_index("id", "BTREE", progress_callback=events.append)
    assert {event.event for event in events} == {"start", "complete"}
    assert max(event.completed or 0 for event in events) >= 30
    assert IndexProgress("progress", "x", 1, 4).fraction == 0.25
    assert IndexProgress("progress", "x", 1).fraction is None


def test_descriptions():
    dataset = table()
    dataset.create_scalar_index("s", "BTREE")
    dataset.create_scalar_index("a.b", "BTREE", fragment_ids=[1])
    dataset.insert(rows(100, 105))
    dataset.optimize.optimize_indices(index_names=["s_idx"], num_indices_to_merge=0)
    first, second = dataset.describe_indices()
    assert (first.name, first.field_names, first.num_rows_indexed) == ("a.b_idx", ["a.b"], 10)
    assert (second.name, second.num_rows_indexed, len(second.segments)) == ("s_idx", 35, 2)
    assert [each.fragment_ids for each in second.segments] == [{0, 1, 2}, {3}]
    sizes = [each.size_bytes or 0 for each in second.segments]
    assert second.total_size_bytes == sum(sizes) > 0
    assert all(each.created_at is not None for each in second.segments)
    assert dataset.index_statistics("s_idx") == dataset.stats.index_stats("s_idx")
    assert dataset.index_statistics("s_idx")["num_segments"] == 2


def test_prewarming_reads_chosen_segments():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    (index,) = dataset.list_indices()
    dataset.prewarm_index("id_idx", index_segments=[index["uuid"]])
    with pytest.raises(IndexNotFound):
        dataset.prewarm_index("nope")


def test_bookkeeping_is_not_an_index():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(defer_index_remap=True)
    assert [each.name for each in dataset.describe_indices()] == ["id_idx"]


def test_an_empty_table_can_be_indexed():
    dataset = tw.write_dataset(pa.table({"id": pa.array([], pa.int64())}), "memory://index-of-nothing")
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert({"id": [1, 2]})
    dataset.optimize.optimize_indices()
    assert dataset.stats.index_stats("id_idx")["num_indexed_rows"] == 2
