"""Chunks of numbers: every width and bit count that the codec writes, and metadata that does not fit the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data.encoder import DataFileWriter
from tablewright.data.file_end import FileEnd, read_end
from tablewright.format.packed_column import Chunks, decode_chunks, load_chunks
from tablewright.storage import open_store
from tablewright.storage.base import Store

VERSION = "2.2"


def written(values: pa.Array, version: str = VERSION) -> tuple[Store, FileEnd]:
    store = open_store(f"memory://packed-{np.random.default_rng().integers(1 << 60)}")
    schema = pa.schema([pa.field("values", values.type)])
    writer = DataFileWriter(store, "a.lance", schema, version)
    writer.write(pa.record_batch([values], schema=schema))
    writer.close()
    return store, read_end(store, "a.lance")


def chunks_of(values: pa.Array, version: str = VERSION) -> tuple[Store, Chunks | None]:
    store, end = written(values, version)
    return store, decode_chunks(end.tail.columns[0], end.num_rows, end.read)


def all_values(store: Store, chunks: Chunks) -> Any:
    data = np.frombuffer(store.get("a.lance"), np.uint8)
    which = np.arange(len(chunks.offsets))
    loaded = load_chunks(chunks, which, data, chunks.offsets)
    rows = np.arange(chunks.begins[0], chunks.begins[-1])
    owners = np.searchsorted(chunks.begins, rows, "right") - 1
    return loaded.at(owners).values(rows - chunks.begins[owners])


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
@given(bits=st.integers(1, 64), rows=st.integers(1, 3000), seed=st.integers(0, 99))
def test_every_number_of_bits(kind: str, bits: int, rows: int, seed: int) -> None:
    width = np.dtype(kind).itemsize * 8
    numbers = np.random.default_rng(seed).integers(0, 1 << 64, rows, np.uint64) >> np.uint64(64 - min(bits, width))
    values = numbers.astype(kind)
    store, chunks = chunks_of(pa.array(values))
    if chunks is not None:  # few different numbers are written as a dictionary, or as runs
        assert chunks.bits == width
        assert all_values(store, chunks).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("numbers", "is_packed"),
    [
        (np.arange(5000) * 1_000_003, True),
        (np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 5000), False),
        (np.random.default_rng(0).integers(0, 2**31, 5000, dtype=np.int32), True),
        (np.random.default_rng(0).random(5000), True),
    ],
    ids=["packed", "flat", "int32", "float64"],
)
def test_the_encodings_of_numbers(numbers: Any, is_packed: bool) -> None:
    store, chunks = chunks_of(pa.array(numbers))
    assert chunks is not None
    assert chunks.is_packed.all() == chunks.is_packed.any() == is_packed
    assert all_values(store, chunks).view(numbers.dtype).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b"] * 1000),
        pa.array([None, 1] * 1000),
        pa.array([7] * 5000),
        pa.array([True, False] * 1000),
    ],
    ids=["text", "nulls", "one value", "booleans"],
)
def test_other_encodings_are_the_codecs(values: pa.Array) -> None:
    assert chunks_of(values)[1] is None


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_other_versions_have_other_chunks(version: str) -> None:
    """``packed_reads`` does not ask about them; if it did, the answer would be no."""
    assert chunks_of(pa.array(np.arange(5000) * 1_000_003), version)[1] is None


def test_metadata_that_does_not_fit(tmp_path: Path) -> None:
    _, end = written(pa.array(np.arange(5000) * 1_000_003))
    column = end.tail.columns[0]
    assert decode_chunks(column, end.num_rows, end.read) is not None
    assert decode_chunks(column, end.num_rows + 1, end.read) is None
    assert decode_chunks(column[:-1], end.num_rows, end.read) is None
    assert decode_chunks(b"\xff", end.num_rows, end.read) is None
    for damaged in (b"", b"abc", b"\xff" * 20, b"\0" * 20):

        def read(begin: int, stop: int, data: bytes = damaged) -> bytes:
            return data

        assert decode_chunks(column, end.num_rows, read) is None


def test_a_chunk_that_says_more_bits_than_it_has() -> None:
    store, chunks = chunks_of(pa.array(np.arange(5000) * 1_000_003))
    assert chunks is not None
    for width in (64, 65, 2**63, 2**64 - 1):
        data = np.frombuffer(store.get("a.lance"), np.uint8).copy()
        at = int(chunks.offsets[0]) + 8
        data[at : at + 8] = np.frombuffer(np.uint64(width).tobytes(), np.uint8)
        with pytest.raises(ValueError, match="another size than it says"):
            load_chunks(chunks, np.arange(len(chunks.offsets)), data, chunks.offsets)


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "flat"])
def test_a_place_that_is_not_that_of_a_chunk(is_packed: bool) -> None:
    """The header of a chunk says its size: where it says another one, there is no value."""
    numbers = np.arange(5000) * 1_000_003 if is_packed else np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 5000)
    store, chunks = chunks_of(pa.array(numbers))
    assert chunks is not None and chunks.is_packed.all() == is_packed
    data, rows = np.frombuffer(store.get("a.lance"), np.uint8), np.array([3, 4000])
    assert picked(chunks, rows, data) == numbers[rows].tolist()
    for shift in (8, 1024, -8):
        moved = replace(chunks, offsets=chunks.offsets + shift, ends=chunks.ends + shift)
        with pytest.raises(ValueError, match="another size than it says"):
            load_chunks(moved, np.array([0, 2]), data, moved.offsets[[0, 2]])
        assert picked(moved, rows, data) is None
    for at in (0, 1, 2, 3, 4, 5):
        damaged = data.copy()
        damaged[int(chunks.offsets[0]) + at] ^= 0x40
        with pytest.raises(ValueError, match="another size than it says"):
            load_chunks(chunks, np.array([0]), damaged, chunks.offsets[:1])
        assert picked(chunks, rows, damaged) is None
        assert picked(chunks, rows[1:], damaged) == numbers[rows[1:]].tolist()


def picked(chunks: Chunks, rows: Any, data: Any) -> list[int] | None:
    found = chunks.pick(rows, lambda begin, end: bytes(data[begin:end]))
    return None if found is None else found.values().view(np.int64).tolist()
