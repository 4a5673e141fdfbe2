"""DataFrames through the public face: executors write, one commit shows it, and pylance reads the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, SchemaMismatch, TableExists

VECTORS = pa.schema(
    {"id": pa.int64(), "text": pa.string(), "small": pa.uint8(), "vector": pa.list_(pa.float32(), 4)},
)


def documents(spark: Any, start: int, end: int, partitions: int = 3) -> Any:
    return spark.range(start, end, 1, partitions).selectExpr(
        "id",
        "concat('document ', id) AS text",
        "cast(id % 200 AS smallint) AS small",
        "array(cast(id AS float), 1.5f, 2.5f, cast(-id AS float)) AS vector",
    )


def expected(start: int, end: int) -> pa.Table:
    rows = [
        {"id": id, "text": f"document {id}", "small": id % 200, "vector": [id, 1.5, 2.5, -id]}
        for id in range(start, end)
    ]
    return pa.Table.from_pylist(rows, VECTORS)


def data_files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "documents.lance")


def test_a_dataframe_becomes_one_version(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(documents(spark, 0, 3_000), uri, schema=VECTORS)
    assert ds.version == 1
    assert len(ds.get_fragments()) == 3
    assert ds.schema.equals(VECTORS)
    assert ds.to_table().equals(expected(0, 3_000))
    theirs = lance.dataset(uri)
    theirs.validate()
    assert theirs.to_table().equals(expected(0, 3_000))


def test_append_takes_the_types_of_the_table(spark: Any, uri: str) -> None:
    tw.write_dataset(expected(0, 10), uri)
    ds = tw.write_dataset(documents(spark, 10, 20), uri, mode="append")
    assert (ds.version, ds.count_rows()) == (2, 20)
    assert ds.to_table().equals(expected(0, 20))
    assert lance.dataset(uri).to_table().equals(expected(0, 20))


def test_overwrite_and_stable_row_ids(spark: Any, uri: str) -> None:
    tw.write_dataset(pa.table({"x": [1]}), uri)
    frame = documents(spark, 0, 100)
    ds = tw.write_dataset(frame, uri, schema=VECTORS, mode="overwrite")
    assert (ds.version, ds.to_table().equals(expected(0, 100))) == (2, True)
    other = tw.write_dataset(frame, uri + "2", schema=VECTORS, enable_stable_row_ids=True)
    ids = lance.dataset(uri + "2").to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    assert ids == list(range(100))
    assert other.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist() == ids


def test_without_a_schema_spark_types_are_taken(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(documents(spark, 0, 5), uri)
    assert ds.schema.field("vector").type == pa.list_(pa.float32())
    assert ds.schema.field("small").type == pa.int16()
    assert lance.dataset(uri).to_table()["id"].to_pylist() == list(range(5))


def test_rows_roll_over_into_more_files(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(documents(spark, 0, 1_000, 2), uri, schema=VECTORS, max_rows_per_file=200)
    assert [fragment.count_rows() for fragment in ds.get_fragments()] == [200, 200, 100] * 2
    assert ds.to_table().equals(expected(0, 1_000))


def test_an_empty_dataframe_makes_an_empty_table(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(documents(spark, 0, 0), uri, schema=VECTORS)
    assert (ds.version, ds.count_rows()) == (1, 0)
    assert lance.dataset(uri).schema.equals(VECTORS)


def test_what_does_not_fit_is_refused_and_leaves_nothing(spark: Any, uri: str) -> None:
    tw.write_dataset(expected(0, 10), uri)
    before = data_files(uri)
    with pytest.raises(TableExists):
        tw.write_dataset(documents(spark, 0, 5), uri)
    with pytest.raises(SchemaMismatch, match="extra"):
        tw.write_dataset(documents(spark, 0, 5).selectExpr("*", "1 AS extra"), uri, mode="append")
    doubles = documents(spark, 0, 5).selectExpr("id", "text", "small", "cast(vector AS array<double>) AS vector")
    with pytest.raises(SchemaMismatch, match="vector"):
        tw.write_dataset(doubles, uri, mode="append")
    ragged = documents(spark, 0, 6).selectExpr("id", "text", "small", "if(id = 5, array(1.0f), vector) AS vector")
    with pytest.raises(InvalidRequest, match="Column 'vector' can't be written"):
        tw.write_dataset(ragged, uri, mode="append")
    assert tw.dataset(uri).version == 1
    assert data_files(uri) == before


def test_to_spark_reads_the_projection(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(expected(0, 1_000), uri, max_rows_per_file=300)
    frame = ds.to_spark(spark, columns=["id", "vector"], filter="id >= 990")
    assert frame.columns == ["id", "vector"]
    assert sorted(row.id for row in frame.collect()) == list(range(990, 1_000))
    assert ds.to_spark(spark).count() == 1_000
    whole = ds.to_spark().orderBy("id").toArrow()
    assert whole.cast(VECTORS).equals(expected(0, 1_000))


def test_a_frame_is_pinned_to_its_version(spark: Any, uri: str) -> None:
    frame = tw.write_dataset(expected(0, 10), uri).to_spark(spark)
    tw.write_dataset(expected(10, 20), uri, mode="append")
    assert frame.count() == 10
    assert tw.dataset(uri).to_spark(spark).count() == 20
    assert tw.dataset(uri, version=1).to_spark(spark).count() == 10


def test_deleted_rows_do_not_reach_spark(spark: Any, uri: str) -> None:
    tw.write_dataset(expected(0, 100), uri, max_rows_per_file=30)
    lance.dataset(uri).delete("id % 10 = 3")
    ids = sorted(row.id for row in tw.dataset(uri).to_spark(spark, columns=["id"]).collect())
    assert ids == [id for id in range(100) if id % 10 != 3]


def test_spark_reads_what_spark_wrote_from_pylance_too(spark: Any, uri: str) -> None:
    lance.write_dataset(expected(0, 50), uri, max_rows_per_file=20)
    tw.write_dataset(tw.dataset(uri).to_spark(spark).where("id < 5"), uri, mode="append")
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == sorted([*range(50), *range(5)])


def test_local_data_on_spark_when_asked(spark: Any, uri: str) -> None:
    ds = tw.write_dataset(expected(0, 100), uri, engine="spark")
    assert sorted(ds.to_table()["id"].to_pylist()) == list(range(100))
    assert ds.schema.equals(VECTORS)
    assert tw.write_dataset(expected(0, 100), uri, mode="append", engine=spark).count_rows() == 200
