"""Small DataFrames come back in one job, larger ones are written by their executors; bulk work goes to the session."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.engine.choose import choose_engine
from tablewright.engine.costs import Costs
from tablewright.engine.spark.engine import SparkEngine
from tablewright.errors import InvalidRequest
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
ROWS = pa.table({"id": range(10), "text": [f"text {n}" for n in range(10)]})
VALUES = [tuple(row.values()) for row in ROWS.to_pylist()]
FRAMES: dict[str, Callable[[Any], Any]] = {
    "Arrow": lambda spark: spark.createDataFrame(ROWS),
    "Python rows": lambda spark: spark.createDataFrame(
        [tuple(row.values()) for row in ROWS.to_pylist()], ["id", "text"]
    ),
    "a query": lambda spark: spark.range(0, 10, 1, 4).selectExpr("id", "concat('text ', id) AS text"),
}


def jobs_of(spark: Any, action: Callable[[], Any]) -> int:
    """How many Spark jobs an action takes."""
    group, context = uuid.uuid4().hex, spark.sparkContext
    context.setJobGroup(group, "counted")
    try:
        action()
        return len(context.statusTracker().getJobIdsForGroup(group))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("name", FRAMES)
def test_a_small_frame_takes_one_job(spark: Any, tmp_path: Path, name: str) -> None:
    place, frame = str(tmp_path / "t.lance"), FRAMES[name](spark)
    assert jobs_of(spark, lambda: tw.write_dataset(frame, place)) <= 1
    ds = tw.dataset(place)
    assert len(ds.get_fragments()) == 1
    assert lance.dataset(place).to_table().to_pylist() == ds.to_table().to_pylist() == ROWS.to_pylist()
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    changed = frame.selectExpr("id + 5 AS id", "upper(text) AS text")
    assert jobs_of(spark, lambda: merge.execute(changed)) <= 1
    expected = {n: f"text {n}" for n in range(5)} | {n + 5: f"TEXT {n}" for n in range(10)}
    found = lance.dataset(place).to_table().to_pylist()
    assert {row["id"]: row["text"] for row in found} == expected
    assert sorted(ds.to_table().to_pylist(), key=str) == sorted(found, key=str)


def test_spark_writes_small_frames_too_where_it_is_asked_to(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, here = FRAMES["a query"](spark), Mock(side_effect=AssertionError("written by this process"))
    monkeypatch.setattr("tablewright.api.write.run_write", here)
    assert tw.write_dataset(frame, tmp_path / "t.lance", engine="spark").count_rows() == 10
    with pytest.raises(AssertionError, match="by this process"):
        tw.write_dataset(frame, tmp_path / "u.lance")


def test_dictionaries_stay_within_their_partition(spark: Any, tmp_path: Path) -> None:
    """Those of all partitions together have more values than the type of their indices."""
    schema = pa.schema({"id": pa.int64(), "text": pa.dictionary(pa.int8(), pa.string())})
    frame = spark.range(0, 400, 1, 4).selectExpr("id", "concat('text ', id) AS text")
    tw.write_dataset(frame, tmp_path / "t.lance", schema=schema)
    found = lance.dataset(str(tmp_path / "t.lance")).to_table()
    assert [str(text) for text in found["text"].to_pylist()] == [f"text {n}" for n in range(400)]


def _ids(batches: Iterator[pa.RecordBatch], world: World) -> list[int]:
    return [n for batch in batches for n in batch.column("id").to_pylist()]


@pytest.mark.parametrize(("bytes_max", "parts"), [(0, 4), (400, None), (1 << 20, None)])
def test_the_order_of_partitions_stays(spark: Any, tmp_path: Path, bytes_max: int, parts: int | None) -> None:
    """Partition 2 has most of the rows: with a limit in between, those before and after it come back."""
    world = World(open_store(tmp_path))
    frame = spark.range(0, 4, 1, 4).selectExpr("explode(sequence(id * 1000, id * 1000 + if(id = 2, 300, 2))) AS id")
    expected = [n for start, count in ((0, 3), (1000, 3), (2000, 301), (3000, 3)) for n in range(start, start + count)]
    found = SparkEngine(spark).gather_frame(frame, _ids, world, pa.schema({"id": pa.int64()}), bytes_max=bytes_max)
    if found.rows is not None:
        assert bytes_max > 400 and found.rows.column("id").to_pylist() == expected
    else:
        assert [n for part in found.results for n in part] == expected
        assert len(found.results) == (parts or 3)


def test_a_frame_is_computed_once(spark: Any, tmp_path: Path) -> None:
    """Also one that turns out to be large after its first partitions came back."""
    from pyspark.sql.functions import udf

    seen = spark.sparkContext.accumulator(0)

    def count(n: int) -> int:
        seen.add(1)
        return n

    frame = spark.range(0, 1000, 1, 2).select(udf(count, "long", useArrow=True)("id").alias("id"))
    for bytes_max in (0, 3000, 1 << 20):
        before = seen.value
        SparkEngine(spark).gather_frame(
            frame, _ids, World(open_store(tmp_path)), pa.schema({"id": pa.int64()}), bytes_max=bytes_max
        )
        assert seen.value - before == 1000


def test_no_rows(spark: Any, tmp_path: Path) -> None:
    frame = FRAMES["a query"](spark).where("id < 0")
    ds = tw.write_dataset(frame, tmp_path / "t.lance")
    assert (ds.count_rows(), ds.get_fragments()) == (0, [])
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute(frame)["num_inserted_rows"] == 0


def test_memory_is_no_place_for_a_frame(spark: Any) -> None:
    with pytest.raises(InvalidRequest, match="memory of this process"):
        tw.write_dataset(FRAMES["Arrow"](spark), "memory://gathered")


def test_a_frame_that_can_not_be_computed_is_named(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(3).selectExpr("raise_error('this row is bad') AS id")
    with pytest.raises(InvalidRequest, match="this row is bad"):
        tw.write_dataset(frame, tmp_path / "t.lance")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_bulk_work_goes_to_the_active_session(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs by which ten rows are bulk, and Spark hardly slower."""
    bulk = Costs(row_seconds=10.0, job_seconds=0.0, task_seconds=0.0)
    monkeypatch.setattr("tablewright.jobs.table.choose_engine", partial(choose_engine, costs=bulk))
    ds = tw.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=5)
    assert "engine=spark: bulk work" in ds.prepare_delete("id = 3").explain_plan()
    assert jobs_of(spark, lambda: ds.delete("id = 3")) == 1
    assert jobs_of(spark, lambda: ds.update({"text": "'new'"}, where="id > 4")) == 2
    assert jobs_of(spark, lambda: ds.add_columns({"next": "id + 1"})) == 1
    found = lance.dataset(str(tmp_path / "t.lance")).to_table().sort_by("id").to_pylist()
    assert [row["next"] for row in found] == [n + 1 for n in range(10) if n != 3]
    assert [row["text"] for row in found][-5:] == ["new"] * 5
