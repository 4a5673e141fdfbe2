"""Values at any rows of a local file, as the codec gives them; files that only the codec can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.packed_reads import PackedColumn, open_packed
from tablewright.errors import CorruptTable
from tablewright.storage import open_store
from tablewright.storage.base import Store

ROWS = 60_000


def written(place: str, columns: dict[str, Any], version: str = "2.2") -> Store:
    store = open_store(place)
    batch = pa.record_batch(columns)
    writer = DataFileWriter(store, "a.lance", batch.schema, version)
    for start in range(0, len(batch), 10_000):
        writer.write(batch.slice(start, 10_000))
    writer.close()
    return store


def numbers() -> dict[str, Any]:
    chance = np.random.default_rng(1)
    return {
        "values": np.sort(chance.integers(0, 1 << 40, ROWS)),
        "ids": chance.integers(0, 1 << 34, ROWS, dtype=np.uint64),
    }


def opened(store: Store, **columns: pa.DataType) -> tuple[PackedColumn | None, ...]:
    return open_packed(store, "a.lance", columns)


def test_any_rows(tmp_path: Path) -> None:
    columns = numbers()
    store = written(str(tmp_path), columns)
    values, ids = opened(store, values=pa.int64(), ids=pa.uint64())
    assert values is not None and ids is not None and values.first_row == 0
    chance = np.random.default_rng(2)
    for count in (1, 10, 1000, ROWS):
        rows = np.sort(chance.choice(ROWS, count, replace=False))
        assert values.take(rows).view(np.int64).tolist() == columns["values"][rows].tolist()
        assert ids.take(rows).tolist() == columns["ids"][rows].tolist()
    assert ids.take(np.zeros(0, np.int64)).tolist() == []


def test_pages_of_chunks(tmp_path: Path) -> None:
    """Positions are those where chunks begin; what was touched is mapped."""
    store = written(str(tmp_path), numbers())
    values, ids = opened(store, values=pa.int64(), ids=pa.uint64())
    assert values is not None and ids is not None
    rows = np.array([ROWS - 1, 5, 2000, 6])
    for column in (values, ids):
        begins = column.begins(rows)
        assert begins[1] == begins[3] == column.chunks.offsets[0]
        assert begins.tolist() == column.chunks.offsets[column.chunks.owners(rows)].tolist()
        column.touch(begins)
        assert column.is_mapped(begins)
    assert values.begins(np.zeros(0, np.int64)).tolist() == []


def test_rows_after_nulls(tmp_path: Path) -> None:
    """Pages with nulls are left to the codec, later ones are read."""
    store = open_store(str(tmp_path))
    schema = pa.schema([pa.field("values", pa.int64())])
    wide = np.sort(np.random.default_rng(3).integers(0, 1 << 60, 4_000_000))
    writer = DataFileWriter(store, "a.lance", schema, "2.2")
    writer.write(pa.record_batch([pa.array([None] * 5000, pa.int64())], schema=schema))
    for start in range(0, len(wide), 1 << 17):
        writer.write(pa.record_batch([pa.array(wide[start : start + (1 << 17)])], schema=schema))
    writer.close()
    (values,) = opened(store, values=pa.int64())
    assert values is not None and 5000 <= values.first_row < 3_000_000
    rows = np.arange(values.first_row, 5000 + len(wide), 997)
    assert values.take(rows).view(np.int64).tolist() == wide[rows - 5000].tolist()
    assert values.begins(np.array([0, values.first_row, 1])).tolist() == [values.chunks.offsets[0]]


def test_what_only_the_codec_can_read(tmp_path: Path) -> None:
    columns = numbers()
    assert opened(written("memory://packed-reads", columns), values=pa.int64()) == (None,)
    assert opened(open_store(str(tmp_path / "none")), values=pa.int64()) == (None,)
    old = written(str(tmp_path / "old"), columns, "2.1")
    assert opened(old, values=pa.int64()) == (None,)
    store = written(str(tmp_path / "new"), {**columns, "texts": [f"{row}" for row in range(ROWS)]})
    found = opened(store, values=pa.uint64(), ids=pa.timestamp("us"), texts=pa.string(), missing=pa.int64())
    assert found == (None, None, None, None)
    assert opened(store, ids=pa.uint64())[0] is not None
    nested = written(str(tmp_path / "nested"), {"s": pa.array([{"values": row} for row in range(ROWS)])})
    assert opened(nested, values=pa.int64()) == (None,)


def test_a_file_that_was_cut_or_removed(tmp_path: Path) -> None:
    store = written(str(tmp_path), numbers())
    (values,) = opened(store, values=pa.int64())
    assert values is not None
    file = tmp_path / "a.lance"
    whole = file.read_bytes()
    file.write_bytes(whole[:1000])
    with pytest.raises(CorruptTable, match=r"a\.lance"):
        values.take(np.array([ROWS - 1]))
    for read in (values.touch, values.is_mapped):
        with pytest.raises(CorruptTable, match="another size"):
            read(values.begins(np.array([ROWS - 1])))
    file.unlink()
    with pytest.raises(CorruptTable, match=r"a\.lance"):
        values.take(np.array([5]))
    file.write_bytes(whole)
    (again,) = opened(store, values=pa.int64())
    assert again is not None
    (batch,) = DataFileReader(store, "a.lance", ["values"]).take(np.array([5]), 10)
    assert again.take(np.array([5])).tolist() == batch.column(0).to_pylist()
