"""``ds.health`` and ``ds.stats`` as users call them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, IndexNotFound, InvalidRequest, WrongType
from tablewright.storage import open_store


@pytest.fixture
def uri() -> str:
    return f"memory://stats-{uuid4()}"


@pytest.fixture
def ds(uri: str) -> tw.LanceDataset:
    ds = tw.write_dataset({"id": range(100), "x": range(100)}, uri, max_rows_per_file=60)
    ds.delete("id < 10")
    return ds


def test_counts(ds: tw.LanceDataset, uri: str) -> None:
    (info,) = open_store(uri).list("_deletions")
    found = ds.stats.dataset_stats(max_rows_per_group=50)
    assert (found["num_deleted_rows"], found["num_fragments"], found["num_small_files"]) == (10, 2, 1)
    assert found["deletion_file_size_bytes"] == info.size
    assert ds.stats.dataset_stats(0)["num_small_files"] == 0


@pytest.mark.parametrize("given", [-1, 1.5, "x", None, 2**64], ids=repr)
def test_bad_counts(ds: tw.LanceDataset, given: Any) -> None:
    with pytest.raises(InvalidRequest):
        ds.stats.dataset_stats(given)


def test_bytes_of_fields(ds: tw.LanceDataset) -> None:
    fields = ds.stats.data_stats().fields
    assert [field.id for field in fields] == [0, 1]
    assert all(field.bytes_on_disk > 0 for field in fields)
    ds.drop_columns(["x"])
    assert ds.stats.data_stats().fields == fields[:1]


def test_a_missing_data_file(ds: tw.LanceDataset, uri: str) -> None:
    store = open_store(uri)
    for info in list(store.list("data")):
        store.delete(info.path)
    with pytest.raises(CorruptTable, match="missing"):
        ds.stats.data_stats()


def test_an_unknown_index(ds: tw.LanceDataset) -> None:
    with pytest.raises(KeyError, match=r'Index "nope" not found.*\. The table has none\.') as caught:
        ds.stats.index_stats("nope")
    assert isinstance(caught.value, IndexNotFound)
    with pytest.raises(WrongType):
        ds.stats.index_stats(3)  # type: ignore[arg-type]


def test_health_refuses_bad_options(ds: tw.LanceDataset) -> None:
    with pytest.raises(InvalidRequest, match="use 'read', 'mixed' or 'write'"):
        ds.health(workload="batch")
