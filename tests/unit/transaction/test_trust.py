"""Which columns and rows are compared before rows are followed through a rewrite."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest
from tests.compactor import plan_compaction

import tablewright as tw
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.transaction.trust import compared_columns, difference, sample
from tablewright.world import World

VECTOR = pa.list_(pa.float32(), 4)


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"v": VECTOR, "id": pa.int64(), "s": pa.string()}, ["id", "s"]),
        ({"v": VECTOR, "st": pa.struct({"x": pa.int64()})}, ["v"]),
        ({"t": pa.timestamp("us"), "d": pa.decimal128(10, 2), "b": pa.bool_()}, ["t", "d", "b"]),
        ({f"c{i}": pa.int32() for i in range(20)}, [f"c{i}" for i in range(16)]),
    ],
)
def test_narrow_columns_are_compared(columns: dict[str, pa.DataType], chosen: list[str]) -> None:
    assert list(compared_columns(Schema.from_arrow(pa.schema(columns))).names) == chosen


def test_few_rows_are_all_compared() -> None:
    map = AddressMap((OldRows(0, 10),), (NewRows(1, 10),))
    assert sample(map, 0, RowSet.full(10), 10) == RowSet.full(10)


def test_a_sample_has_the_edges_and_the_rows_beside_each_border() -> None:
    map = AddressMap((OldRows(0, 100_000, RowSet.of([3])),), (NewRows(1, 33_333), NewRows(2, 66_666)))
    rows = RowSet.full(100_000) - RowSet.of([3])
    chosen = sample(map, 0, rows, 64)
    border = 33_334  # row 3 was left out
    assert {0, 99_999, border - 1, border} <= set(chosen)
    assert len(chosen) <= 66
    assert np.diff(chosen.to_numpy()).max() <= 100_000 // 63 + 2


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("reorder", [False, True])
def test_values_that_are_not_numbers_equal_themselves(stable: bool, reorder: bool) -> None:
    uri = f"memory://{uuid.uuid4()}"
    rows = pa.table({"f": pa.array([float("nan"), None, 1.0, -0.0], pa.float32())})
    tw.write_dataset(rows, uri, max_rows_per_file=2, enable_stable_row_ids=stable)
    before = open_snapshot(World(open_store(uri)))
    after = plan_compaction(before, reorder=reorder).commit()
    map = AddressMap((OldRows(0, 2), OldRows(1, 2)), (NewRows(int(after.fragments.ids[0]), 4),))
    found = difference(before, after, map, {0: RowSet.full(2), 1: RowSet.of([1])})
    wanted = ("3 rows have other row ids" if stable else "other values in column 'f'") if reorder else None
    assert found is None if wanted is None else wanted in str(found)


def test_a_table_without_a_comparable_column_is_not_trusted() -> None:
    uri = f"memory://{uuid.uuid4()}"
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    tw.write_dataset(
        pa.table({"b": pa.array([b"1", b"2"], pa.large_binary())}, schema=schema), uri, data_storage_version="2.1"
    )
    snapshot = open_snapshot(World(open_store(uri)))
    map = AddressMap((OldRows(0, 2),), (NewRows(1, 2),))
    assert "no column by which" in str(difference(snapshot, snapshot, map, {0: RowSet.of([0])}))
