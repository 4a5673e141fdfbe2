"""Tables with blob columns on Spark: workers read descriptions and bytes, and rows that they move keep their blobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import tablewright as tw


def _table(path: Path) -> str:
    values = [None if i % 5 == 4 else bytes([i]) * (i % 3 * 40) for i in range(60)]
    blob = lance.blob_field("b", inline_size_threshold=50, dedicated_size_threshold=500)
    schema = pa.schema([pa.field("id", pa.int64()), blob, pa.field("s", pa.string())])
    table = pa.table([pa.array(range(60)), lance.blob_array(values), pa.array(["x"] * 60)], schema=schema)
    lance.write_dataset(table, path, max_rows_per_file=20)
    return str(path)


def test_read_and_update_on_spark(spark: Any, tmp_path: Path) -> None:
    uri = _table(tmp_path / "t")
    before = {row["id"]: row for row in lance.dataset(uri).to_table(blob_handling="all_binary").to_pylist()}
    frame = tw.dataset(uri).to_spark(spark, filter="b.size > 0")
    assert {row.id: int(row.b.size) for row in frame.collect()} == {
        id: len(row["b"]) for id, row in before.items() if row["b"]
    }
    bytes_frame = tw.dataset(uri).to_spark(spark, columns=["id", "b"], blob_handling="all_binary")
    assert {row.id: None if row.b is None else bytes(row.b) for row in bytes_frame.collect()} == {
        id: row["b"] for id, row in before.items()
    }
    ds = tw.dataset(uri, engine="spark", spark=spark)
    ds.update({"s": "'moved'"}, where="id % 4 = 1", write_mode="rewrite_rows")
    ds.delete("b is null")
    source = spark.createDataFrame([(0, "merged"), (900, "new")], "id long, s string")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
    there = lance.dataset(uri)
    there.validate()
    after = {row["id"]: row for row in there.to_table(blob_handling="all_binary").to_pylist()}
    assert after.keys() == {id for id, row in before.items() if row["b"] is not None} | {900}
    assert all(after[id]["b"] == before[id]["b"] for id in after if id != 900)
    assert after[900]["b"] is None
    assert {id for id, row in after.items() if row["s"] == "moved"} == {id for id in after if id < 900 and id % 4 == 1}
