"""Columns from SQL, functions and nulls, as they are planned."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

import tablewright as tw
from tablewright.operations.columns.add import BySql, Nulls, sample_schema
from tablewright.operations.columns.schema import InvalidColumns


def test_members_need_files_of_2_2(tmp_path: Path) -> None:
    with pytest.raises(InvalidColumns, match="sub column is not supported"):
        Nulls(pa.schema({"s": pa.struct({"w": pa.int8()})})).plan(small_table(tmp_path, data_storage_version="2.1"))


def test_nothing_is_read_for_nulls(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    for plan in (
        Nulls(pa.schema({"n": pa.int8()})).plan(snapshot),
        BySql({"n": "cast(null as int)"}, 0).plan(snapshot),
    ):
        assert plan.work is None and plan.tasks() == [] and plan.estimated_bytes == 0
        assert "no data is read or written" in str(plan)


def test_a_sample_of_an_empty_table_has_no_rows() -> None:
    snapshot = tw.write_dataset(pa.table({"x": pa.array([], pa.int64())}), "memory://sample-empty")._snapshot
    seen: list[int] = []

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.num_rows)
        return pa.record_batch({"y": batch["x"]})

    assert sample_schema(snapshot, function, ("x",)).names == ["y"]
    assert seen == [0]
