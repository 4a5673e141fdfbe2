"""Sizes of columns from the end of a file are those that the codec gives."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.encoder import DataFileReader
from tablewright.data.file_end import column_bytes
from tablewright.errors import CorruptTable
from tablewright.storage import open_store
from tablewright.storage.base import ObjectNotFound
from tablewright.testing.faulty_store import FaultyStore

ROWS = pa.table(
    {
        "id": pa.array(range(5000)),
        "text": pa.array([f"text {i}" for i in range(5000)]),
        "nested": pa.array([{"a": i, "b": [i] * (i % 3)} for i in range(5000)]),
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_sizes_are_the_codecs(version: str, tmp_path: Path) -> None:
    tw.write_dataset(ROWS, tmp_path, data_storage_version=version)
    store = open_store(str(tmp_path))
    (info,) = store.list("data")
    expected = DataFileReader(store, info.path).column_bytes
    assert sum(expected) > 0
    assert column_bytes(store, info.path, info.size) == expected
    assert column_bytes(store, info.path) == expected


def test_one_request_reads_the_end_of_a_file() -> None:
    tw.write_dataset(ROWS, "memory://column-sizes", mode="overwrite")
    store = FaultyStore(open_store("memory://column-sizes"))
    (info,) = store.list("data")
    before = len(store.calls)
    column_bytes(store, info.path, info.size)
    assert [call.method for call in store.calls[before:]] == ["get_range"]


def test_an_end_longer_than_one_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tablewright.data.file_end._TAIL_BYTES", 50)
    tw.write_dataset(ROWS, tmp_path)
    store = open_store(str(tmp_path))
    (info,) = store.list("data")
    assert column_bytes(store, info.path) == DataFileReader(store, info.path).column_bytes


def test_what_is_no_data_file() -> None:
    store = open_store("memory://column-sizes-bad")
    with pytest.raises(ObjectNotFound):
        column_bytes(store, "data/missing.lance")
    store.put("data/junk.lance", b"junk")
    with pytest.raises(CorruptTable, match="less than a footer"):
        column_bytes(store, "data/junk.lance")
