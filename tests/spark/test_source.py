"""The data source through Spark: found by its name, read, written, in SQL; pylance judges what was written.

What needs no session is in tests/unit/spark; here is what only Spark shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.spark.helpers import backwards, once_written

import tablewright as tw

pytestmark = pytest.mark.timeout(300)

TYPES = pa.schema(
    {
        "id": pa.int64(),
        "vector": pa.list_(pa.float32(), 2),
        "text": pa.large_string(),
        "small": pa.uint8(),
        "at": pa.timestamp("us", "UTC"),
        "naive": pa.timestamp("us"),
        "day": pa.date32(),
        "price": pa.decimal128(10, 2),
        "inner": pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
    }
)


def typed(ids: range) -> pa.Table:
    """A row per id, a null in each column once."""
    rows = [
        {
            "id": id,
            "vector": [id + 0.5, -1.0],
            "text": f"text {id}",
            "small": id % 256,
            "at": datetime(2024, 1, 1, 12, id % 60, tzinfo=UTC),
            "naive": datetime(2024, 7, 1, 2, id % 60),
            "day": date(2024, 2, 1 + id % 28),
            "price": Decimal(id) / 4,
            "inner": {"a": id, "b": ["x", None]},
        }
        for id in ids
    ]
    return pa.Table.from_pylist([*rows, {"id": -1}], TYPES)


@pytest.fixture
def table(tmp_path: Path) -> str:
    tw.write_dataset(typed(range(100)), tmp_path / "t.lance", max_rows_per_file=40)
    return str(tmp_path / "t.lance")


@pytest.fixture
def zone(spark: Any) -> Iterator[str]:
    """A session elsewhere: instants and naive times stay what they are."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield "Asia/Tokyo"
    spark.conf.set("spark.sql.session.timeZone", before)


def source(spark: Any, table: str, **options: str) -> Any:
    return spark.read.format("tablewright").options(**options).load(table)


def failing(spark: Any, table: str, files: int, then: str) -> Any:
    """Rows for the table; the last of four partitions fails when so many data files are there."""
    frame = backwards(spark, 400, 4, once_written(f"{table}/data", files, then))
    columns = [f"CAST(NULL AS {kind.simpleString()}) AS {name}" for name, kind in types_of(spark, table).items()]
    return frame.selectExpr("id", *columns[1:])


def types_of(spark: Any, table: str) -> dict[str, Any]:
    return {field.name: field.dataType for field in source(spark, table).schema.fields}


def test_reading_with_options(spark: Any, table: str) -> None:
    frame = source(spark, table)
    assert frame.columns == TYPES.names
    tw.dataset(table).insert(typed(range(100, 101)))
    assert frame.count() == 101  # the version at which it was made
    assert frame.where("id >= 90").agg({"id": "sum"}).first()[0] == sum(range(90, 100))
    assert frame.count() == 101  # a filter of another query stays there
    some = source(spark, table, columns="id,text", filter="id > 97 AND text <> 'text 99'")
    assert [tuple(row) for row in some.collect()] == [(98, "text 98"), (100, "text 100")]
    given = spark.read.format("tablewright").schema("text string").option("version", 1).load(table)
    assert (given.count(), given.columns) == (101, ["text"])
    with pytest.raises(Exception, match="did you mean 'filter'"):
        source(spark, table, fliter="id > 1").count()  # Connect does not ask before


def test_types_there_and_back(spark: Any, table: str, tmp_path: Path, zone: str) -> None:
    """Every type through Spark, appended to the same table and to one that Spark makes; pylance reads both."""
    frame = source(spark, table)
    frame.write.format("tablewright").mode("append").save(table)
    again = lance.dataset(table)
    assert again.version == 2
    assert again.schema == TYPES
    before, after = again.checkout_version(1).to_table(), again.to_table()
    assert after.slice(before.num_rows).sort_by("id").to_pylist() == before.sort_by("id").to_pylist()
    made = str(tmp_path / "made.lance")
    frame.write.format("tablewright").mode("overwrite").option("stable_row_ids", "true").save(made)
    theirs = lance.dataset(made)
    assert theirs.has_stable_row_ids
    assert theirs.to_table().sort_by("id").to_pylist() == before.sort_by("id").to_pylist()


def test_sql(spark: Any, table: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW docs USING tablewright OPTIONS (path '{table}')")
    assert spark.sql("SELECT max(id) FROM docs").first()[0] == 99
    spark.sql("INSERT INTO docs SELECT * FROM docs WHERE id < 2")
    assert lance.dataset(table).version == 2
    assert lance.dataset(table).count_rows() == 104  # ids -1, 0 and 1 once more
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW some USING tablewright "
        f"OPTIONS (path '{table}', COLUMNS 'id', filter 'id < 2')"
    )
    assert spark.sql("SELECT count(*) FROM some").first()[0] == 6


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_task_that_fails_leaves_nothing(spark: Any, table: str, mode: str) -> None:
    files = sorted(path.name for path in Path(table, "data").glob("*"))
    frame = failing(spark, table, len(files) + 3, "raise")
    with pytest.raises(Exception, match="row 0 is bad"):
        frame.write.format("tablewright").mode(mode).save(table)
    assert sorted(path.name for path in Path(table, "data").glob("*")) == files
    assert tw.dataset(table).version == 1


def test_a_worker_that_is_killed_is_an_error_and_leaves_nothing(spark: Any, table: str) -> None:
    files = sorted(path.name for path in Path(table, "data").glob("*.lance"))
    with pytest.raises(Exception, match="exited unexpectedly"):
        failing(spark, table, len(files) + 3, "kill").write.format("tablewright").mode("append").save(table)
    assert sorted(path.name for path in Path(table, "data").glob("*.lance")) == files
    assert tw.dataset(table).version == 1
