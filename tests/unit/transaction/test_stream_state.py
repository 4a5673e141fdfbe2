"""The number of a stream's batch is committed with its rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.transaction.stream_state import (
    BatchCommitted,
    StreamBatch,
    check_new_batch,
    last_batch,
    stream_config,
)


def test_only_keys_of_streams_go_to_the_config() -> None:
    batch = StreamBatch(name="orders", batch=3)
    assert stream_config({"other": "x", **batch.properties}) == {"tablewright.stream.orders": "3"}
    assert last_batch(batch.properties, "orders") == batch
    assert last_batch({}, "orders") is None


@pytest.mark.parametrize(("batch", "is_new"), [(6, False), (7, False), (8, True), (100, True)])
def test_a_batch_is_new_if_its_number_is_higher(batch: int, is_new: bool) -> None:
    config = StreamBatch(name="orders", batch=7).properties
    ours = StreamBatch(name="orders", batch=batch).properties
    if is_new:
        check_new_batch(config, ours)
        return
    with pytest.raises(BatchCommitted, match=f"Batch {batch} of stream 'orders' is committed: its last one is 7"):
        check_new_batch(config, ours)


def test_numbers_are_compared_as_numbers() -> None:
    check_new_batch(StreamBatch(name="a", batch=9).properties, StreamBatch(name="a", batch=10).properties)


def test_other_streams_do_not_matter() -> None:
    check_new_batch(StreamBatch(name="a", batch=9).properties, StreamBatch(name="b", batch=0).properties)


def test_another_query_under_the_same_name_is_refused() -> None:
    config = StreamBatch(name="a", batch=9, query="first").properties
    check_new_batch(config, StreamBatch(name="a", batch=10, query="first").properties)
    with pytest.raises(BatchCommitted):
        check_new_batch(config, StreamBatch(name="a", batch=9, query="first").properties)
    for batch in (0, 10):
        with pytest.raises(InvalidRequest, match=r"query first up to batch 9.*another checkpoint.*delete_config_keys"):
            check_new_batch(config, StreamBatch(name="a", batch=batch, query="second").properties)


def test_a_config_that_is_no_number_is_said() -> None:
    with pytest.raises(InvalidRequest, match=r"tablewright\.stream\.a must begin with the number"):
        check_new_batch({"tablewright.stream.a": "?"}, StreamBatch(name="a", batch=0).properties)


def test_the_error_travels() -> None:
    error = pickle.loads(pickle.dumps(BatchCommitted("a", 1, 2)))
    assert (error.name, error.batch, error.last) == ("a", 1, 2)


def append(ds: tw.LanceDataset, properties: dict[str, str]) -> None:
    ds.insert([{"id": 9, "n": 9}], transaction_properties=properties)


def merge(ds: tw.LanceDataset, properties: dict[str, str]) -> None:
    upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert.transaction_properties(properties).execute([{"id": 9, "n": 9}])


@pytest.mark.parametrize("write", [append, merge])
def test_rows_and_number_come_together_and_once(
    tmp_path: Path, write: Callable[[tw.LanceDataset, dict[str, str]], None]
) -> None:
    ds = tw.write_dataset([{"id": 1, "n": 1}], tmp_path / "t.lance")
    first, stale = tw.dataset(ds.uri), tw.dataset(ds.uri)
    batch = StreamBatch(name="orders", batch=0).properties
    write(first, batch)
    assert first.config() == batch
    files = {path for path in Path(ds.uri).rglob("*") if path.is_file()}
    tw.dataset(ds.uri).insert([{"id": 2, "n": 2}])  # others write in between
    with pytest.raises(BatchCommitted):
        write(stale, batch)  # planned before the first one committed: the commit itself looks again
    newest = tw.dataset(ds.uri)
    assert sorted(newest.to_table()["id"].to_pylist()) == [1, 2, 9]
    assert newest.config() == batch
    left = {path for path in Path(ds.uri).rglob("*") if path.is_file()} - files
    assert len([path for path in left if path.suffix == ".lance"]) == 1  # that of the other writer
    write(newest, StreamBatch(name="orders", batch=1).properties)
    write(newest, StreamBatch(name="other", batch=0).properties)
    assert newest.config() == {"tablewright.stream.orders": "1", "tablewright.stream.other": "0"}


def test_the_number_goes_past_other_writers(tmp_path: Path) -> None:
    """A commit that is rebased puts its number into the newest config, and keeps what is there."""
    ds = tw.write_dataset([{"id": 1, "n": 1}], tmp_path / "t.lance")
    ours = tw.dataset(ds.uri)
    other = tw.dataset(ds.uri)
    append(other, StreamBatch(name="other", batch=4).properties)
    other.update_config({"key": "value"})
    other.optimize.compact_files()
    merge(ours, StreamBatch(name="ours", batch=2).properties)
    assert ours.config() == {
        "key": "value",
        "tablewright.stream.other": "4",
        "tablewright.stream.ours": "2",
    }


def test_a_restore_takes_rows_and_number_back(tmp_path: Path) -> None:
    ds = tw.write_dataset([{"id": 1, "n": 1}], tmp_path / "t.lance")
    merge(ds, StreamBatch(name="a", batch=0).properties)
    ds.checkout_version(1).restore()
    again = tw.dataset(ds.uri)
    merge(again, StreamBatch(name="a", batch=0).properties)
    assert again.to_table()["id"].to_pylist() == [1, 9]


def test_a_new_table_has_the_number_too(tmp_path: Path) -> None:
    batch = StreamBatch(name="a", batch=0).properties
    ds = tw.write_dataset([{"id": 1}], tmp_path / "t.lance", mode="append", transaction_properties=batch)
    assert ds.config() == batch
