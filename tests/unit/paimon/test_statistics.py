"""Bounds out of manifests and footers: what is not certain is not there."""

from __future__ import annotations

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablewright.paimon.columns import Source
from tablewright.paimon.format.binary_row import encode_partition
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import TableSchema
from tablewright.paimon.format.types import DataType, Field
from tablewright.paimon.statistics import _values, bounds_of_files, bounds_of_row_groups


def schema_of(id: int, **columns: tuple[int, str]) -> TableSchema:
    fields = tuple(Field(id=id, name=name, type=DataType(root=root)) for name, (id, root) in columns.items())
    return TableSchema(id=id, fields=fields, partition_keys=(), primary_keys=(), options={})


def file_of(schema_id: int, low: Any, high: Any, **others: Any) -> DataFile:
    types = [pa.int64() if isinstance(value, int) and abs(value) > 2**31 else pa.int32() for value in low]
    return DataFile(
        partition=bytes(12),
        bucket=0,
        level=0,
        name="f",
        size=1,
        row_count=1,
        schema_id=schema_id,
        stats_low=encode_partition(low, types),
        stats_high=encode_partition(high, types),
        **others,
    )


def test_files() -> None:
    """Renamed, widened, narrowed, added; of all columns or of some; rows of another width, or none."""
    schemas = {
        0: schema_of(0, a=(0, "INT"), b=(1, "INT")),
        1: schema_of(1, b=(0, "BIGINT"), c=(2, "INT"), s=(3, "STRING")),
        2: schema_of(2, a=(0, "BIGINT"), b=(1, "INT")),
    }
    files = [
        file_of(0, [1, 2], [3, 4], stats_columns=("b", "a")),  # a is the table's b
        file_of(0, [1, 2], [3, 4]),  # of all columns
        file_of(0, [1], [3], stats_columns=("b",)),
        file_of(0, [1], [3], stats_columns=("a", "b")),
        file_of(0, [None, 2], [None, 4], stats_columns=("a", "b")),
        file_of(0, [1, 1], [3, 3], stats_columns=("a", "a")),
        file_of(0, [5, 6], [7, 8], write_cols=("a",)),
        file_of(1, [2**40], [2**41], stats_columns=("b",)),
    ]
    bounds = bounds_of_files(files, schemas, schemas[1], ["b", "c", "s"])
    assert sorted(bounds) == ["b", "c"]
    assert bounds["b"].low.to_pylist() == [2, 1, None, None, None, None, None, 2**40]
    assert bounds["b"].high.to_pylist() == [4, 3, None, None, None, None, None, 2**41]
    assert not bounds["b"].only_nulls.any()
    assert bounds["c"].only_nulls.tolist() == [True] * 6 + [False] * 2  # a later column, all of it null
    narrowed = file_of(2, [2**40, 1], [2**41, 1], stats_columns=("a", "b"))
    assert bounds_of_files([narrowed], schemas, schemas[0], ["a"])["a"].low.to_pylist() == [None]


def test_row_groups() -> None:
    """Texts, times, floats, widened numbers; a struct's child is no column; all null, or without statistics."""
    rows = pa.table(
        {
            "a.b": pa.array([1, 2, None, None], pa.int32()),
            "s": ["b", "ä", None, "c"],
            "at": pa.array([5, 3, 2, 1], pa.timestamp("us")),
            "x": [math.nan, 1.0, math.nan, math.nan],
            "st": pa.array([{"z": 1}] * 4),
            "dark": [1, 2, 3, 4],
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=2, write_statistics=["a.b", "s", "at", "x", "st.z"])
    file = pq.ParquetFile(sink)
    names = {
        "n": ("a.b", "BIGINT"),
        "s": ("s", "STRING"),
        "at": ("at", "TIMESTAMP"),
        "x": ("x", "DOUBLE"),
        "z": ("st.z", "BIGINT"),
        "dark": ("dark", "BIGINT"),
        "text": ("dark", "STRING"),
        "new": (None, "BIGINT"),
        "list": (None, "BYTES"),
    }
    sources = [
        Source(field=Field(id=1, name=name, type=DataType(root=root)), name=place, type=DataType(root=root))
        for name, (place, root) in names.items()
    ]
    bounds = bounds_of_row_groups(file.metadata, file.schema_arrow, sources)
    found = {name: (bound.low.to_pylist(), bound.high.to_pylist()) for name, bound in bounds.items()}
    assert found["n"] == ([1, None], [2, None]) and bounds["n"].only_nulls.tolist() == [False, True]
    assert found["s"] == (["b", "c"], ["ä", "c"])
    assert [bounds["at"].low.cast(pa.int64()).to_pylist(), bounds["at"].low.type] == [[3, 1], pa.timestamp("us")]
    assert found["x"] == ([1.0, None], [1.0, None]) and not bounds["x"].only_nulls.any()
    assert found["dark"] == ([None, None], [None, None]) and not bounds["dark"].only_nulls.any()
    assert bounds["new"].only_nulls.all() and bounds["list"].only_nulls.all()
    assert "z" not in bounds and "text" not in bounds


@pytest.mark.parametrize(
    ("values", "raw", "kind", "expected"),
    [
        ([math.nan, 1.5], pa.float64(), pa.float64(), [None, 1.5]),
        ([b"\xff", b"a"], pa.binary(), pa.string(), [None, None]),
        (["a", b"b"], pa.binary(), pa.string(), ["a", "b"]),
        ([1, "x"], pa.int64(), pa.int64(), [None, None]),
        ([2**40], pa.int64(), pa.int32(), [None]),
        ([1], None, pa.int32(), [None]),
    ],
)
def test_values_that_bound_nothing(values: list[Any], raw: pa.DataType, kind: pa.DataType, expected: list[Any]) -> None:
    assert _values(values, raw, kind, kind).to_pylist() == expected
