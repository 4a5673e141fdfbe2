"""Ranges of numbers: as they were written, whatever their encoding. Damaged bytes are no error here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data.encoder import DataFileWriter
from tablewright.data.file_end import FileEnd, read_end
from tablewright.format.packed_pages import decode_pages
from tablewright.format.packed_range import decode_range
from tablewright.storage import open_store

VERSION = "2.2"


def written(*batches: Any, version: str = VERSION) -> FileEnd:
    store = open_store(f"memory://ranges-{np.random.default_rng().integers(1 << 60)}")
    arrays = [pa.array(batch) for batch in batches]
    schema = pa.schema([pa.field("values", arrays[0].type)])
    writer = DataFileWriter(store, "a.lance", schema, version)
    for array in arrays:
        writer.write(pa.record_batch([array], schema=schema))
    writer.close()
    return read_end(store, "a.lance")


def decoded(end: FileEnd, start: int, stop: int, column: bytes | None = None) -> Any:
    return decode_range(end.tail.columns[0] if column is None else column, end.num_rows, start, stop, end.read)


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
@given(bits=st.integers(0, 64), rows=st.integers(1, 6000), seed=st.integers(0, 99), data=st.data())
def test_every_number_of_bits(kind: str, bits: int, rows: int, seed: int, data: st.DataObject) -> None:
    width = np.dtype(kind).itemsize * 8
    numbers = np.random.default_rng(seed).integers(0, 1 << 64, rows, np.uint64)
    values = (numbers >> np.uint64(64 - min(bits, width)) if bits else numbers * np.uint64(0)).astype(kind)
    end = written(values)
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))
    found = decoded(end, start, stop)
    if found is not None:  # few different numbers are written as a dictionary, or as runs
        assert found.dtype == kind
        assert found.tolist() == values[start:stop].tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(9000) * 1_000_003,
        np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 9000),
        np.random.default_rng(0).integers(0, 2**31, 9000, dtype=np.int32),
        np.random.default_rng(0).random(9000),
        np.full(9000, -7),
    ],
    ids=["packed", "flat", "int32", "float64", "one value"],
)
def test_the_encodings_of_numbers(values: Any) -> None:
    end = written(values)
    for start, stop in ((0, 9000), (0, 1), (8999, 9000), (1023, 1025), (1024, 2048), (3000, 8000)):
        assert decoded(end, start, stop).view(values.dtype).tolist() == values[start:stop].tolist()


def test_rows_of_several_pages() -> None:
    wide = np.sort(np.random.default_rng(3).integers(0, 1 << 60, 3_000_000))
    end = written(*(wide[start : start + (1 << 17)] for start in range(0, len(wide), 1 << 17)))
    for start in range(100_000, 2_900_000, 400_003):
        assert decoded(end, start, start + 5000).view(np.int64).tolist() == wide[start : start + 5000].tolist()
    assert decoded(end, 0, len(wide)).view(np.int64).tolist() == wide.tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b"] * 1000),
        pa.array([None, 1] * 1000),
        pa.nulls(2000, pa.int64()),
        pa.array([True, False] * 1000),
    ],
    ids=["text", "nulls", "only nulls", "booleans"],
)
def test_other_encodings_are_the_codecs(values: pa.Array) -> None:
    assert decoded(written(values), 0, 1000) is None


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_other_versions_have_other_chunks(version: str) -> None:
    assert decoded(written(np.arange(5000) * 1_000_003, version=version), 0, 1000) is None


def test_rows_that_are_not_there() -> None:
    end = written(np.arange(5000) * 1_000_003)
    assert decoded(end, 4000, 5001) is None
    assert decoded(end, 5000, 5000) is None
    assert decode_range(end.tail.columns[0], 5001, 0, 10, end.read) is None
    assert decode_range(b"\xff", 5000, 0, 10, end.read) is None


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("which", [0, 1], ids=["packed", "flat"])
def test_a_header_of_a_chunk_that_says_another_size(which: int, at: int) -> None:
    end = DAMAGED[which]
    (_, page), *_ = decode_pages(end.tail.columns[0], end.num_rows)

    def read(begin: int, stop: int) -> bytes:
        data = bytearray(end.read(begin, stop))
        if begin == page.data[0]:
            data[at] ^= 0x40
        return bytes(data)

    assert decode_range(end.tail.columns[0], end.num_rows, 0, 10, end.read) is not None
    assert decode_range(end.tail.columns[0], end.num_rows, 0, 10, read) is None


@given(seed=st.integers(0, 10_000))
def test_damage_is_no_error(seed: int) -> None:
    """Metadata, tables and chunks with random bytes: no rows, or as many as were asked for."""
    chance = np.random.default_rng(seed)
    end = DAMAGED[seed % len(DAMAGED)]

    def spoilt(data: bytes) -> bytes:
        spoiled = bytearray(data)
        for at in chance.integers(0, max(1, len(data)), chance.integers(0, 3)):
            spoiled[at] = chance.integers(256)
        return bytes(spoiled[: chance.choice([len(spoiled), chance.integers(len(spoiled) + 1)], p=[0.9, 0.1])])

    def read(begin: int, stop: int) -> bytes:
        return spoilt(end.read(begin, stop)) if begin < stop <= end.tail.size else b""

    found = decode_range(spoilt(end.tail.columns[0]), end.num_rows, 1000, 3000, read)
    assert found is None or len(found) == 2000


DAMAGED = [
    written(np.arange(5000) * 1_000_003),
    written(np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 5000)),
    written(np.full(5000, 9)),
]
