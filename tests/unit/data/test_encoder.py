"""The codec: files appear whole or not at all, and its errors become ours."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import CorruptTable, InternalError, InvalidRequest, StorageError, TablewrightError
from tablewright.storage import Store, open_store
from tablewright.storage.requests import requests_made

BATCH = pa.record_batch({"a": pa.array(range(100)), "st": pa.array([{"p": i, "q": str(i)} for i in range(100)])})


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")


def _write(store: Store, path: str = "data/x.lance", version: str = "2.2") -> tuple[int, int]:
    writer = DataFileWriter(store, path, BATCH.schema, version)
    writer.write(BATCH.slice(0, 60))
    writer.write(BATCH.slice(60))
    return writer.close()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_round_trip(store: Store, version: str) -> None:
    rows, size = _write(store, version=version)
    assert (rows, size) == (100, store.head("data/x.lance").size)
    reader = DataFileReader(store, "data/x.lance")
    assert reader.num_rows == 100 and reader.version == version
    assert reader.schema == BATCH.schema
    assert reader.num_columns == (4 if version == "2.0" else 3)
    read = list(reader.read(10, 50, 20))
    assert [batch.num_rows for batch in read] == [20, 20, 10]
    assert pa.Table.from_batches(read).equals(pa.Table.from_batches([BATCH.slice(10, 50)]))
    taken = list(reader.take(np.array([0, 7, 99]), 2))
    assert [batch.num_rows for batch in taken] == [2, 1]
    assert pa.Table.from_batches(taken)["a"].to_pylist() == [0, 7, 99]


def test_long_reads_are_several_requests_one_of_them_ahead(store: Store) -> None:
    _write(store)
    reader = DataFileReader(store, "data/x.lance", ["a"])
    before = requests_made()
    batches = reader.read(3, 90, 5)  # eight batches each
    read = [next(batches)]
    assert requests_made() - before == 2
    read += batches
    assert requests_made() - before == 3
    assert [batch.num_rows for batch in read] == 18 * [5]
    assert pa.Table.from_batches(read)["a"].to_pylist() == list(range(3, 93))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_small_files_are_those_of_the_codec(store: Store, version: str) -> None:
    """Made in memory, or by the codec where the file is to be: the same bytes."""
    _write(store, "data/x.lance", version)
    for path, batches in (("data/a.lance", [BATCH.slice(0, 60), BATCH.slice(60)]), ("data/b.lance", [])):
        writer = DataFileWriter(store, path, BATCH.schema, version, in_memory=True)
        for batch in batches:
            writer.write(batch)
        assert not any(info.path == path for info in store.list(""))
        rows, size = writer.close()
        assert (rows, size) == (sum(batch.num_rows for batch in batches), store.head(path).size)
        with pytest.raises(InternalError, match="after it was closed"):
            writer.write(BATCH)
    assert store.get("data/a.lance") == store.get("data/x.lance")
    assert DataFileReader(store, "data/b.lance").num_rows == 0


def test_a_file_that_turns_out_to_be_large(store: Store) -> None:
    many = pa.record_batch({"a": np.arange(5_000)})
    writer = DataFileWriter(store, "data/x.lance", many.schema, "2.2", in_memory=True)
    for _ in range(10):  # 40 KB each
        writer.write(many)
    assert writer.close() == (50_000, store.head("data/x.lance").size)
    (batch,) = DataFileReader(store, "data/x.lance").read(0, 50_000, 50_000)
    assert batch.column("a").to_pylist() == 10 * list(range(5_000))


def test_metadata_and_buffers_of_a_small_file(store: Store) -> None:
    writer = DataFileWriter(store, "data/x.lance", BATCH.schema, "2.2", in_memory=True)
    writer.write(BATCH)
    number = writer.add_buffer(b"more")
    writer.add_metadata("key", "value")
    writer.close()
    reader = DataFileReader(store, "data/x.lance")
    assert reader.buffer(number) == b"more" and reader.schema.metadata[b"key"] == b"value"


def test_small_files_of_several_threads(store: Store) -> None:
    """Each thread has a directory in memory of its own."""

    def write(number: int) -> None:
        batch = pa.record_batch({"a": [number] * (number + 1)})
        writer = DataFileWriter(store, f"data/{number}.lance", batch.schema, "2.2", in_memory=True)
        writer.write(batch)
        writer.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    for number in range(64):
        (batch,) = DataFileReader(store, f"data/{number}.lance").read(0, number + 1, 100)
        assert batch.column("a").to_pylist() == [number] * (number + 1)


def test_columns_are_chosen_by_the_names_inside(store: Store) -> None:
    _write(store)
    (batch,) = DataFileReader(store, "data/x.lance", ["st.q"]).read(0, 2, 10)
    assert batch.to_pylist() == [{"st": {"q": "0"}}, {"st": {"q": "1"}}]
    with pytest.raises(KeyError, match="nope"):
        DataFileReader(store, "data/x.lance", ["nope"])


@pytest.mark.parametrize("in_memory", [False, True])
def test_an_aborted_file_leaves_nothing(store: Store, in_memory: bool) -> None:
    writer = DataFileWriter(store, "data/x.lance", BATCH.schema, "2.2", in_memory=in_memory)
    writer.write(BATCH)
    writer.abort()
    assert list(store.list("")) == []
    with pytest.raises(InternalError, match="after it was closed"):
        writer.write(BATCH)


def test_a_dropped_writer_leaves_nothing(tmp_path: Path) -> None:
    writer = DataFileWriter(open_store(str(tmp_path)), "data/x.lance", BATCH.schema, "2.2")
    for _ in range(10):
        writer.write(BATCH)
    del writer
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_spooled_copies_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(f"memory://{tmp_path.name}")
    _write(store)
    first, second = DataFileReader(store, "data/x.lance"), DataFileReader(store, "data/x.lance", ["a"])
    assert len(list(tmp_path.iterdir())) == 1
    del first, second
    assert list(tmp_path.iterdir()) == []


def test_missing_and_damaged_files(store: Store) -> None:
    with pytest.raises(CorruptTable, match="the data file is missing"):
        DataFileReader(store, "data/none.lance")
    for number, junk in enumerate([b"", b"abc" * 100, b"LANC" * 10]):
        store.put(f"data/junk{number}.lance", junk)
        with pytest.raises(CorruptTable, match="can't be decoded"):
            DataFileReader(store, f"data/junk{number}.lance")
    _write(store)
    whole = store.get("data/x.lance")
    for number, cut in enumerate([10, len(whole) // 2, len(whole) - 1]):
        store.put(f"data/cut{number}.lance", whole[:cut])
        with pytest.raises(TablewrightError):
            list(DataFileReader(store, f"data/cut{number}.lance").read(0, 100, 100))


@pytest.mark.parametrize("in_memory", [False, True])
def test_data_that_a_file_cannot_hold(store: Store, in_memory: bool) -> None:
    with pytest.raises(InvalidRequest, match=r"2\.9"):
        DataFileWriter(store, "data/x.lance", BATCH.schema, "2.9", in_memory=in_memory).close()
    nulls = pa.record_batch({"st": pa.array([{"p": 1}, None])})
    writer = DataFileWriter(store, "data/x.lance", nulls.schema, "2.0", in_memory=in_memory)
    with pytest.raises(InvalidRequest, match="null") as error:
        _write_all(writer, nulls)
    assert ".rs:" not in str(error.value)
    writer.abort()


def test_broken_json(store: Store) -> None:
    broken = pa.record_batch({"j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["{bad"]))})
    writer = DataFileWriter(store, "data/x.lance", broken.schema, "2.2")
    with pytest.raises(InvalidRequest, match="Failed to encode JSON"):
        _write_all(writer, broken)


def test_s3(s3_bucket: str, s3_options: dict[str, str]) -> None:
    store = open_store(f"s3://{s3_bucket}/t", s3_options)
    rows, size = _write(store)
    assert (rows, size) == (100, store.head("data/x.lance").size)
    (batch,) = DataFileReader(store, "data/x.lance", ["a"]).read(5, 2, 10)
    assert batch.to_pylist() == [{"a": 5}, {"a": 6}]
    before = requests_made()
    assert len(list(DataFileReader(store, "data/x.lance", ["a"]).read(0, 100, 10))) == 10
    assert requests_made() - before == 2  # opened, and all rows asked for at once
    with pytest.raises(CorruptTable, match="the data file is missing"):
        DataFileReader(store, "data/none.lance")
    elsewhere = open_store(f"s3://{s3_bucket}/t", {**s3_options, "aws_endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageError, match="Could not read"):
        DataFileReader(elsewhere, "data/x.lance")


def _write_all(writer: DataFileWriter, batch: pa.RecordBatch) -> None:
    writer.write(batch)
    writer.close()


FORBIDDEN = """
import os, sys
import pyarrow as pa
from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import AccessDenied
from tablewright.storage import open_store

batch = pa.record_batch({"id": [1, 2]})
store = open_store(sys.argv[1])
writer = DataFileWriter(store, "data/x.lance", batch.schema, "2.2")
writer.write(batch)
writer.close()
if os.geteuid() == 0:  # root may read and write anywhere: be nobody
    os.seteuid(65534)
else:
    os.chmod(sys.argv[1] + "/data", 0)

def write():
    writer = DataFileWriter(store, "data/y.lance", batch.schema, "2.2")
    writer.write(batch)
    writer.close()

for attempt in (write, lambda: DataFileReader(store, "data/x.lance")):
    try:
        attempt()
    except AccessDenied as error:
        print(any(words in str(error) for words in ("No permission", "Not allowed")))
"""


def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    tmp_path.chmod(0o700)
    done = subprocess.run([sys.executable, "-c", FORBIDDEN, str(tmp_path)], capture_output=True, text=True, check=True)
    (tmp_path / "data").chmod(0o700)
    assert done.stdout.split() == ["True", "True"]
