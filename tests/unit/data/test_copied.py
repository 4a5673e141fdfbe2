"""Rows of vectors and numbers without the codec: its batches, and the codec wherever anything is unusual."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data import copied
from tablewright.data.copied import NUMBER_ROWS_MIN, ROWS_MIN, CopiedColumns, open_copied
from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.sizes import fixed_width
from tablewright.errors import CorruptTable, StorageError
from tablewright.format.file_tail import FileTail, decode_tail
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


def _tail(path: Path) -> FileTail:
    data = path.read_bytes()
    return decode_tail(len(data), lambda begin, end: data[begin:end], str(path))


def _is_copied(reader: DataFileReader, offsets: np.ndarray = OFFSETS) -> bool:
    """Take rows in both ways, compare, and say whether they were copied by us."""
    taken = list(reader.take(offsets, 50))
    by_codec = list(reader._taken(reader._reader, offsets, 50))
    assert [batch.num_rows for batch in taken] == [batch.num_rows for batch in by_codec]
    for ours, theirs in zip(taken, by_codec, strict=True):
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        ours.validate(full=True)
        assert ours.equals(theirs)
    opened = _opened(reader, len(offsets))
    return opened is not None and opened.has(offsets)


def _opened(reader: DataFileReader, rows: int = ROWS_MIN) -> CopiedColumns | None:
    return reader._copied(rows)


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
    count = data.draw(st.integers(1, reader.num_rows))
    chosen = np.sort(np.random.default_rng(count).choice(reader.num_rows, count, replace=False))
    is_wide = not nulls and version in ("2.1", "2.2") and items >= 64
    assert _is_copied(reader, chosen) == (is_wide and count >= ROWS_MIN)


def test_several_pages(tmp_path: Path) -> None:
    """Of a stream the codec makes a page of each 8 MiB."""
    store = open_store(str(tmp_path))
    batches = [_batch(_vectors(pa.list_(pa.float32(), 1024))) for _ in range(9)]
    reader = DataFileReader(store, _file(store, batches), ["v"])
    tail = _tail(tmp_path / "data/x.lance")
    pages = decode_wide_pages(tail.columns[-2], 9 * ROWS, tail.size)
    assert pages is not None and len(pages.first_bytes) > 2
    assert _is_copied(reader, np.arange(0, 9 * ROWS, 13))
    assert _is_copied(reader, np.arange(5 * ROWS - 10, 5 * ROWS + 90))


NUMBERS = {
    "int8": pa.int8(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.duration("us"),
    "moment": pa.timestamp("us", "UTC"),
}


@given(
    rows=st.integers(NUMBER_ROWS_MIN, 9000),
    bits=st.integers(0, 63),
    parts=st.integers(1, 3),
    version=st.sampled_from(["2.0", "2.1", "2.2", "2.3"]),
    data=st.data(),
)
def test_numbers(
    tmp_path_factory: pytest.TempPathFactory, rows: int, bits: int, parts: int, version: str, data: st.DataObject
) -> None:
    chance = np.random.default_rng(bits)
    words = chance.integers(0, 1 << bits, rows, np.uint64, endpoint=True)
    columns = {
        name: pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(words.astype(f"u{kind.bit_width // 8}"))])
        for name, kind in NUMBERS.items()
        if name not in ("float", "double")
    }
    columns |= {name: pa.array(words.astype(name)) for name in ("float", "double")}
    columns["null"] = pa.array([None if n % 3 == 0 else n for n in range(rows)])
    columns["text"] = pa.array([f"text {n}" for n in range(rows)])
    batch = pa.record_batch(columns)
    store = open_store(str(tmp_path_factory.mktemp("numbers")))
    edges = [rows * n // parts for n in range(parts + 1)]
    path = _file(store, [batch.slice(a, b - a) for a, b in pairwise(edges)], version)
    offsets = np.sort(chance.choice(rows, data.draw(st.integers(NUMBER_ROWS_MIN, rows)), replace=False))
    reader = DataFileReader(store, path, data.draw(st.sampled_from([None, ["int64", "text"], ["double"]])))
    is_copied = _is_copied(reader, offsets)
    assert is_copied == (version == "2.2") or bits <= 8  # few values may have an encoding that only the codec knows
    if is_copied:
        opened = _opened(reader, rows)
        assert opened is not None and {"null", "text"}.isdisjoint(opened.columns)
    assert not _is_copied(reader, offsets[: NUMBER_ROWS_MIN - 1])


def test_numbers_that_say_another_width(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    path = _file(store, [pa.record_batch({"a": np.arange(5000)})])
    reader = DataFileReader(store, path)
    opened = _opened(reader, 5000)
    assert opened is not None
    first = int(opened.columns["a"].positions(np.array([0]))[0])
    with (tmp_path / path).open("r+b") as file:
        file.seek(first + 8)
        file.write(b"\x3f")
    with pytest.raises(CorruptTable, match="column a: a chunk of its values has another size than it says"):
        list(reader.take(np.arange(0, 5000, 2), 5000))


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
        patched.setattr(copied, "are_in_memory", lambda data, positions: False)
        assert requests(OFFSETS) == 1
    with monkeypatch.context() as patched:
        patched.setattr(copied, "can_tell_memory", lambda: False)
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
    assert (opened := _opened(reader)) is not None and not opened.has(OFFSETS)
    with pytest.raises(StorageError, match="Could not read"):
        list(reader.take(OFFSETS, 50))


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    reader = DataFileReader(store, _file(store, [_batch(_vectors(WIDE[0]))]), ["v"])
    beyond = np.arange(ROWS - 100, ROWS + 1)
    assert (opened := _opened(reader)) is not None and not opened.has(beyond)


@pytest.mark.parametrize("content", [b"", b"LANC", os.urandom(5000)], ids=["empty", "short", "random"])
def test_no_data_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    schema = pa.schema({"v": WIDE[0]})
    assert open_copied(str(tmp_path / "x"), b"", schema, "2.2", None, numbers=True) is None
    assert open_copied(str(tmp_path / "none"), b"", schema, "2.2", None, numbers=True) is None


def test_a_file_that_became_another(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    path = _file(store, [_batch(_vectors(WIDE[0]))])
    first, second = DataFileReader(store, path, ["v"]), DataFileReader(store, path, ["v"])
    assert _is_copied(second)
    (tmp_path / path).unlink()
    assert (opened := _opened(second)) is not None and not opened.has(OFFSETS)
    _file(store, [_batch(_vectors(WIDE[0], ROWS + 1))])
    assert _opened(first) is None


@given(st.binary(max_size=80))
def test_any_metadata(data: bytes) -> None:
    """Bytes that are no metadata of such a column have no pages, and raise nothing."""
    assert decode_wide_pages(data, 10, 1 << 20) is None


def test_pages_are_in_memory(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    reader = DataFileReader(store, _file(store, [_batch(_vectors(WIDE[0]))]), ["v"])
    opened = _opened(reader)
    assert opened is not None and copied.are_in_memory(opened.data, np.array([0, 5000, 100_000]))
