"""The public face on Spark: the same answers as the local engine gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tablewright as tw
from tablewright.errors import InvalidRequest, SchemaMismatch

ROWS = 500


def frame_of(spark: SparkSession, rows: int = ROWS) -> Any:
    return spark.range(rows).selectExpr(
        "id", "concat('doc ', id) AS text", "array(float(id), float(2)) AS vector", "id % 3 = 0 AS flag"
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "frame.lance")


@pytest.mark.parametrize("engine", [None, "spark"], ids=["collected", "executors"])
def test_a_frame_becomes_one_version_that_pylance_opens(spark: SparkSession, uri: str, engine: str | None) -> None:
    ds = tw.write_dataset(frame_of(spark).repartition(3), uri, commit_message="from Spark", engine=engine)
    theirs = lance.dataset(uri)
    theirs.validate()
    assert (ds.version, theirs.version, theirs.count_rows(), len(theirs.get_fragments())) == (1, 1, ROWS, 1)
    assert ds.to_table().equals(theirs.to_table())
    assert sorted(ds.to_table(columns=["id"])["id"].to_pylist()) == list(range(ROWS))


def test_an_appended_frame_takes_the_tables_types(spark: SparkSession, uri: str) -> None:
    schema = pa.schema(
        {"id": pa.int64(), "text": pa.large_string(), "vector": pa.list_(pa.float32(), 2), "flag": pa.bool_()}
    )
    ds = tw.write_dataset(schema.empty_table(), uri, enable_stable_row_ids=True)
    ds.insert(frame_of(spark))
    ds.insert(frame_of(spark, 10).drop("flag"))
    theirs = lance.dataset(uri)
    theirs.validate()
    assert (ds.schema, theirs.count_rows(), theirs.count_rows("flag IS NULL")) == (schema, ROWS + 10, 10)
    ids = theirs.to_table(columns=["_rowid"])["_rowid"].to_pylist()
    assert len(set(ids)) == ROWS + 10


def test_a_schema_casts_the_frame(spark: SparkSession, uri: str) -> None:
    frame = frame_of(spark, 20).selectExpr("id", "transform(vector, x -> double(x)) AS vector")
    wanted = pa.schema({"id": pa.int32(), "vector": pa.list_(pa.float32(), 2)})
    ds = tw.write_dataset(frame, uri, schema=wanted)
    assert ds.schema == wanted
    assert ds.to_table(filter="id = 7").to_pylist() == [{"id": 7, "vector": [7.0, 2.0]}]


def test_frames_that_do_not_fit_are_refused_and_leave_nothing(spark: SparkSession, uri: str) -> None:
    ds = tw.write_dataset(frame_of(spark, 5), uri)
    before = sorted(path.name for path in Path(uri, "data").iterdir())
    with pytest.raises(SchemaMismatch, match="unexpected"):
        ds.insert(spark.range(3).withColumnRenamed("id", "other"))
    with pytest.raises(InvalidRequest, match="memory of this process"):
        tw.write_dataset(frame_of(spark, 5), "memory://frames")
    assert sorted(path.name for path in Path(uri, "data").iterdir()) == before
    assert ds.latest_version == 1


def test_a_failing_partition_leaves_nothing_visible(spark: SparkSession, uri: str) -> None:
    frame = spark.range(20).selectExpr("id", "array(float(id)) AS vector").repartition(2)
    ds = tw.write_dataset(pa.schema({"id": pa.int64(), "vector": pa.list_(pa.float32(), 2)}).empty_table(), uri)
    with pytest.raises(Exception, match="vector"):
        ds.insert(frame)  # lists of one do not fit lists of two
    assert (tw.dataset(uri).version, tw.dataset(uri).count_rows()) == (1, 0)
    assert list(Path(uri).rglob("*.lance")) == []


@pytest.mark.parametrize(
    ("columns", "filter"),
    [(None, None), (["id", "text"], "id % 2 = 1"), ({"n": "length(text)"}, "flag"), (["_rowid", "id"], "id > 490")],
)
def test_to_spark_reads_what_to_table_reads(spark: SparkSession, uri: str, columns: Any, filter: str | None) -> None:
    ds = tw.write_dataset(frame_of(spark), uri, max_rows_per_file=100)
    lance.dataset(uri).delete("id BETWEEN 100 AND 120")
    ds.checkout_latest()
    read = ds.to_spark(spark, columns=columns, filter=filter).toArrow()
    expected = ds.to_table(columns=columns, filter=filter).cast(read.schema)  # Spark has no unsigned numbers
    assert read.column_names == expected.column_names
    assert sorted(map(str, read.to_pylist())) == sorted(map(str, expected.to_pylist()))
    for frame in (ds.to_spark(spark, columns, filter), ds.to_spark(columns, filter, spark=spark)):
        assert (frame.columns, frame.count()) == (expected.column_names, expected.num_rows)


def test_counting_agrees_on_both_engines(spark: SparkSession, uri: str) -> None:
    tw.write_dataset(frame_of(spark), uri, max_rows_per_file=100)
    here, there = (tw.dataset(uri, engine=engine) for engine in ("local", spark))
    for filter in ("id > 17", "text LIKE '%9'", "flag IS NULL"):
        assert here.count_rows(filter) == there.count_rows(filter)
    assert there.scanner(filter="id > 17", limit=5, offset=2).count_rows() == 5
    assert "engine=spark" in there.scanner(filter="id > 17").explain_plan(verbose=True)


def test_rows_of_this_process_are_written_by_it_also_where_spark_is_asked_for(spark: SparkSession, uri: str) -> None:
    rows = pa.table({"id": range(50), "vector": pa.array([[1.0, 2.0]] * 50, pa.list_(pa.float32(), 2))})
    spark.sparkContext.addJobTag("test-rows")
    try:
        ds = tw.write_dataset(rows, uri, engine=spark)
    finally:
        spark.sparkContext.removeJobTag("test-rows")
    assert ds.to_table().equals(rows)
    assert list(spark.sparkContext._jsc.sc().statusTracker().getJobIdsForTag("test-rows")) == []
