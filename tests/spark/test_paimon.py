"""Paimon tables and Spark: `to_spark` reads what `to_table` reads; a delete finds its rows there too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.unit.paimon.tables import create, new_store, numbers

import tablewright.paimon as paimon
from tablewright.errors import InvalidRequest

GOLDEN = Path(__file__).parents[1] / "golden" / "paimon" / "table"


def test_reading_and_deleting_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = shutil.copytree(GOLDEN, tmp_path / "orders")
    table = paimon.open(path)
    result = table.delete("city = 'Ulm' AND year = 2025", engine=spark)
    assert (result.num_deleted_rows, result.snapshot_id) == (2, 3)
    frame = table.to_spark(spark=spark)
    assert frame.rdd.getNumPartitions() == 3
    assert frame.toArrow().sort_by("id").to_pylist() == table.to_table().sort_by("id").to_pylist()
    some = table.to_spark(columns=["city", "id"], filter="city is not null and id < 8", spark=spark)
    assert some.columns == ["city", "id"] and {row.id for row in some.collect()} == {1, 2, 3, 5, 6, 7}
    with pytest.raises(InvalidRequest, match="at least one column"):
        table.to_spark(columns=[], spark=spark)
    store = new_store()
    create(store, numbers(0, 1).schema)
    with pytest.raises(InvalidRequest, match="memory of this process"):
        paimon.open(store.location.uri).to_spark(spark=spark)
