"""Rows of vectors without the codec: the same batches as the codec's, and the codec wherever anything is unusual."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data import wide_rows
from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.sizes import fixed_width
from tablewright.data.wide_rows import ROWS_MIN, open_wide_rows
from tablewright.errors import StorageError
from tablewright.format.wide_pages import decode_wide_pages
from tablewright.storage import Store, open_store
from tablewright.storage.requests import requests_made

ROWS = 1000
OFFSETS = np.arange(3, ROWS, 7)


def _vectors(kind: pa.DataType, rows: int = ROWS) -> pa.Array:
    """Lists of numbers, or bytes, that all differ."""
    data = np.random.default_rng(5).integers(0, 60, rows * (fixed_width(kind) or 0), np.uint8)  # no NaN in any width
    return _array(kind, rows, pa.py_buffer(data))


def _array(kind: pa.DataType, rows: int, data: pa.Buffer) -> pa.Array:
    if not pa.types.is_fixed_size_list(kind):
        return pa.Array.from_buffers(kind, rows, [None, data])
    inner = _array(kind.value_type, rows * kind.list_size, data)
    return pa.Array.from_buffers(kind, rows, [None], children=[inner])


def _file(store: Store, batches: list[pa.RecordBatch], version: str = "2.2") -> str:
    writer = DataFileWriter(store, "data/x.lance", batches[0].schema, version)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return "data/x.lance"


def _batch(vectors: pa.Array) -> pa.RecordBatch:
    rows = len(vectors)
    nested = pa.array([{"p": n, "q": [n]} for n in range(rows)])
    vector = pa.field("v", vectors.type, nullable=vectors.null_count > 0, metadata={"a": "b"})
    schema = pa.schema([("id", pa.int64()), ("st", nested.type), vector, ("t", pa.string())])
    text = pa.array([f"text {n}" for n in range(rows)])
    return pa.record_batch([pa.array(range(rows)), nested, vectors, text], schema=schema)


def _is_copied(reader: DataFileReader, offsets: np.ndarray = OFFSETS) -> bool:
    """Take rows in both ways, compare, and say whether they were copied by us."""
    taken = list(reader.take(offsets, 50))
    by_codec = list(reader._taken(reader._reader, offsets, 50))
    assert [batch.num_rows for batch in taken] == [batch.num_rows for batch in by_codec]
    for ours, theirs in zip(taken, by_codec, strict=True):
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        ours.validate(full=True)
        assert ours.equals(theirs)
    wide = reader._wide_rows
    return wide is not None and wide.has(offsets)


WIDE = [
    pa.list_(pa.float32(), 128),
    pa.list_(pa.float16(), 128),
    pa.list_(pa.float64(), 40),
    pa.list_(pa.int8(), 300),
    pa.list_(pa.uint8(), 257),
    pa.list_(pa.list_(pa.float32(), 16), 8),
    pa.list_(pa.field("inner", pa.int32(), nullable=False), 64),
]


@pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
@pytest.mark.parametrize("kind", WIDE, ids=str)
def test_vectors_are_copied(tmp_path: Path, kind: pa.DataType, version: str) -> None:
    store = open_store(str(tmp_path))
    path = _file(store, [_batch(_vectors(kind))], version)
    for columns in (None, ["v"], ["t", "v"], ["v", "st.q", "id", "st.p"]):
        assert _is_copied(DataFileReader(store, path, columns)) == (version != "2.3")  # a layout that may still change
    assert not _is_copied(DataFileReader(store, path, ["id", "t"]))


def test_bytes_of_one_size(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert _is_copied(DataFileReader(store, _file(store, [_batch(_vectors(pa.binary(300)))]), ["v"]))


@given(
    items=st.integers(1, 80),
    rows=st.integers(1, 700),
    parts=st.integers(1, 4),
    nulls=st.booleans(),
    version=st.sampled_from(["2.0", "2.1", "2.2", "2.3"]),
    data=st.data(),
)
def test_any_file(
    tmp_path_factory: pytest.TempPathFactory,
    items: int,
    rows: int,
    parts: int,
    nulls: bool,
    version: str,
    data: st.DataObject,
) -> None:
    store = open_store(str(tmp_path_factory.mktemp("wide")))
    vectors = _vectors(pa.list_(pa.float32(), items), rows)
    if nulls:
        vectors = pa.array([None if n % 5 == 0 else each for n, each in enumerate(vectors.to_pylist())], vectors.type)
    batch = _batch(vectors)
    path = _file(store, [batch.slice(rows * n // parts, rows // parts + 1) for n in range(parts)], version)
    reader = DataFileReader(store, path, ["id", "v"])
    chosen = data.draw(st.sets(st.integers(0, reader.num_rows - 1), min_size=1))
    assert _is_copied(reader, np.array(sorted(chosen))) == (not nulls and version in ("2.1", "2.2") and items >= 64)


def test_several_pages(tmp_path: Path) -> None:
    """Of a stream the codec makes a page of each 8 MiB."""
    store = open_store(str(tmp_path))
    batches = [_batch(_vectors(pa.list_(pa.float32(), 1024))) for _ in range(9)]
    reader = DataFileReader(store, _file(store, batches), ["v"])
    assert reader._wide_rows is not None and len(reader._wide_rows.columns["v"].first_bytes) > 2
    assert _is_copied(reader, np.arange(0, 9 * ROWS, 13))
    assert _is_copied(reader, np.arange(5 * ROWS - 10, 5 * ROWS + 90))


def test_where_the_codec_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(tmp_path))
    path = _file(store, [_batch(_vectors(WIDE[0]))])

    def requests(offsets: np.ndarray) -> int:
        reader = DataFileReader(store, path, ["id", "v"])
        before = requests_made()
        assert pa.Table.from_batches(reader.take(offsets, 1000))["id"].to_pylist() == offsets.tolist()
        return requests_made() - before

    assert requests(OFFSETS) == 3  # another reader is opened, rows are taken, rows are copied
    assert requests(OFFSETS[: ROWS_MIN - 1]) == 1
    with monkeypatch.context() as patched:
        patched.setattr(wide_rows, "_are_in_memory", lambda data, positions: False)
        assert requests(OFFSETS) == 1
    with monkeypatch.context() as patched:
        patched.setattr(wide_rows, "_mincore", lambda: None)
        assert requests(OFFSETS) == 1


def test_stores_in_memory(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}")
    assert not _is_copied(DataFileReader(store, _file(store, [_batch(_vectors(WIDE[0]))])))


def test_a_file_that_was_cut_short(tmp_path: Path) -> None:
    """Bytes that are gone are not touched, which would end the process."""
    store = open_store(str(tmp_path))
    path = _file(store, [_batch(_vectors(WIDE[0]))])
    reader = DataFileReader(store, path, ["v"])
    assert _is_copied(reader)
    os.truncate(tmp_path / path, 8192)
    assert reader._wide_rows is not None and not reader._wide_rows.has(OFFSETS)
    with pytest.raises(StorageError, match="Could not read"):
        list(reader.take(OFFSETS, 50))


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    reader = DataFileReader(store, _file(store, [_batch(_vectors(WIDE[0]))]), ["v"])
    beyond = np.arange(ROWS - 100, ROWS + 1)
    assert reader._wide_rows is not None and not reader._wide_rows.has(beyond)


@pytest.mark.parametrize("content", [b"", b"LANC", os.urandom(5000)], ids=["empty", "short", "random"])
def test_no_data_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    schema = pa.schema({"v": WIDE[0]})
    assert open_wide_rows(str(tmp_path / "x"), b"", schema, "2.2", None) is None
    assert open_wide_rows(str(tmp_path / "none"), b"", schema, "2.2", None) is None


def test_a_file_that_became_another(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    path = _file(store, [_batch(_vectors(WIDE[0]))])
    first, second = DataFileReader(store, path, ["v"]), DataFileReader(store, path, ["v"])
    assert _is_copied(second)
    (tmp_path / path).unlink()
    assert second._wide_rows is not None and not second._wide_rows.has(OFFSETS)
    _file(store, [_batch(_vectors(WIDE[0], ROWS + 1))])
    assert first._wide_rows is None


@given(st.binary(max_size=80))
def test_any_metadata(data: bytes) -> None:
    """Bytes that are no metadata of such a column have no pages, and raise nothing."""
    assert decode_wide_pages(data, 10, 1 << 20) is None


def test_pages_are_in_memory(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    reader = DataFileReader(store, _file(store, [_batch(_vectors(WIDE[0]))]), ["v"])
    wide = reader._wide_rows
    assert wide is not None and wide_rows._are_in_memory(wide.data, np.array([0, 5000, 100_000]))
