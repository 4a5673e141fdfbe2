"""Which index a request means."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.operations.create_index.tables import snapshot_of, table

import tablewright as tw
from tablewright.errors import ColumnNotFound, IndexExists, InvalidRequest, WrongType
from tablewright.format.index_kinds import BLOOMFILTER, BTREE
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.plan import plan_index


def planned(dataset, column="id", kind=BTREE, **arguments):
    (segment,) = plan_index(snapshot_of(dataset), IndexRequest(column=column, kind=kind, **arguments)).segments
    return segment


@pytest.mark.parametrize(
    ("column", "name", "path"),
    [
        ("id", "id_idx", ("id",)),
        ("a.b", "a.b_idx", ("a", "b")),
        ("a.c", "a.C_idx", ("a", "C")),
        ("mixed", "Mixed_idx", ("Mixed",)),
        ("A.`b`", "a.b_idx", ("a", "b")),
    ],
)
def test_it_is_called_after_its_column(column, name, path):
    segment = planned(table(), column)
    assert (segment.name, segment.path, segment.removed, len(segment.read)) == (name, path, (), 3)


def test_a_name_that_is_taken_gets_a_number():
    dataset = table()
    dataset.create_scalar_index("s", "BTREE", name="id_idx")
    assert planned(dataset).name == "id_idx_2"
    dataset.create_scalar_index("id", "BTREE")
    again = planned(dataset)
    assert (again.name, len(again.removed)) == ("id_idx_2", 1)


def test_an_index_of_the_name_is_replaced_or_in_the_way():
    dataset = table()
    dataset.create_scalar_index("id", "BTREE")
    assert [index.name for index in planned(dataset).removed] == ["id_idx"]
    with pytest.raises(IndexExists, match="use replace=True"):
        planned(dataset, replace=False)
    with pytest.raises(IndexExists, match="with different fields"):
        planned(dataset, "s", name="id_idx")
    assert planned(dataset, replace=False, name="other").removed == ()


def test_fragments_can_be_chosen():
    dataset = table()
    assert sorted(planned(dataset, fragment_ids=(2, 0, 2)).coverage) == [0, 2]
    assert len(planned(dataset, train=False).coverage) == 0
    with pytest.raises(InvalidRequest, match=r"no fragments \[7\]"):
        planned(dataset, fragment_ids=(0, 7))


@pytest.mark.parametrize("column", ["nope", "a.nope", "id.x", ""])
def test_unknown_columns(column):
    with pytest.raises((ColumnNotFound, InvalidRequest)):
        planned(table(), column)


def test_a_dropped_column_is_unknown():
    dataset = table()
    dataset.drop_columns(["s"])
    with pytest.raises(KeyError, match="s not found in schema"):
        planned(dataset, "s")


@pytest.mark.parametrize(
    ("column", "words"),
    [("l", "BTREE/BITMAP index column l must be"), ("a", "must be int"), ("ll.item.x", "inside a list")],
)
def test_types_that_can_not_be_indexed(column, words):
    with pytest.raises(WrongType, match=words):
        planned(table(), column)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (pa.scalar(True), "Bloom filter index does not support data type of column c, .*; it is bool"),
        (pa.scalar(None), "Bloom filter index does not support data type of column c, .*; it is null"),
        (pa.scalar([1]), "can only be created on a non-nested field, which column c is not; it is list"),
        (pa.scalar({"x": 1}), "can only be created on a non-nested field, which column c is not; it is struct"),
    ],
)
def test_types_that_a_bloom_filter_does_not_take(value, words):
    dataset = tw.write_dataset(
        pa.table({"c": pa.array([value.as_py()], value.type)}), "memory://bloom-filter-types", mode="overwrite"
    )
    with pytest.raises(WrongType, match=words):
        planned(dataset, "c", BLOOMFILTER)
