"""Row widths that are estimated, and the rows that are read at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.sizes import RowSizes, fixed_width
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


def _snapshot(path: Path | str, version: int | None = None) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))), version)


def test_sizes_follow_the_width_of_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": range(2000),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.random.rand(2000 * 256).astype("f4")), 256),
            "text": ["x" * 100 + str(i) for i in range(2000)],
        }
    )
    tw.write_dataset(table, tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    fragment, schema = snapshot.fragments[0], snapshot.schema

    def rows(*names: str) -> int:
        return RowSizes(schema, schema.project_ids([schema.resolve(n).id for n in names])).rows_per_batch(fragment)

    assert rows("id") == 1 << 18
    assert rows("vector") == 4096
    assert rows("id", "text") <= 1 << 16
    assert RowSizes(schema, schema).rows_per_piece(fragment) == 2 * rows("id", "vector", "text")
    numbers = schema.project_ids([0])
    assert RowSizes(schema, numbers).rows_per_piece(fragment) == 1 << 20
    assert RowSizes(schema, numbers, 1 << 18).rows_per_piece(fragment) == 1 << 18


@pytest.mark.parametrize(("megabytes", "rows"), [(0.1, 64), (1, 21), (4, 5), (40, 4), (400, 4)])
def test_few_very_wide_rows_are_read_at_a_time(megabytes: float, rows: int, tmp_path: Path) -> None:
    """64 rows of 40 MB would be more than an array of text or binary can hold."""
    tw.write_dataset(pa.table({"b": pa.array([b"x"] * 10)}), tmp_path)
    snapshot = _snapshot(tmp_path)
    fragment, sizes = snapshot.fragments[0], RowSizes(snapshot.schema, snapshot.schema)
    file = replace(fragment.files[0], file_size_bytes=int(10 * megabytes * 2**20))
    assert sizes.rows_per_batch(replace(fragment, files=(file,))) == rows


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        (pa.bool_(), 1),
        (pa.int64(), 8),
        (pa.decimal256(50), 32),
        (pa.binary(7), 7),
        (pa.list_(pa.float32(), 3), 12),
        (pa.list_(pa.list_(pa.int16(), 2), 3), 12),
        (pa.uuid(), 16),
        (pa.string(), None),
        (pa.list_(pa.int8()), None),
        (pa.list_(pa.string(), 2), None),
        (pa.struct({"a": pa.string()}), None),
    ],
    ids=str,
)
def test_widths_of_types(kind: pa.DataType, width: int | None) -> None:
    assert fixed_width(kind) == width


def test_small_batches_are_for_primitive_types() -> None:
    def rows(*kinds: pa.DataType) -> int:
        schema = Schema.from_arrow(pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)]))
        return RowSizes(schema, schema).rows_per_small_batch

    assert rows(pa.int64(), pa.int8()) == rows(pa.float64()) == 252 * 1024 // 8
    assert rows(pa.int16()) == 252 * 1024 // 2
    assert rows() == rows(pa.int64(), pa.string()) == rows(pa.dictionary(pa.int8(), pa.string())) == 0
    assert rows(pa.list_(pa.float32(), 4)) == 0
