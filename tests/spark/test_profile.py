"""What has to work on every PySpark of the declared range: each verb once, on executors.

Here it runs on the newest PySpark; `test_oldest.py` runs this file again on the oldest.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.helpers import written_by_executors
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw
from tablewright.engine.spark import payload
from tablewright.errors import InvalidRequest, SchemaMismatch
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "n": pa.int64(),
        "vector": pa.list_(pa.float32(), 2),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "price": pa.decimal128(9, 2),
        "more": pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
    }
)
COLUMNS = (
    "id",
    "cast(id as int) as n",
    "array(double(id), 1.5d) as vector",
    "timestamp_micros(id * 1000000) as at",
    "timestamp_ntz '2024-05-06 07:08:09' as local",
    "cast(1.5 as decimal(3, 1)) as price",
    "named_struct('b', array('x', null), 'a', cast(id as int)) as more",
)
SHUFFLED = MergeLimits(match=MatchLimits(keys_per_worker=0, shuffle_partition_rows=50, shuffle_task_rows=30))


def rows(spark: Any, start: int, stop: int) -> Any:
    return spark.range(start, stop, 1, 4).selectExpr(*COLUMNS)


@pytest.fixture(scope="module")
def base(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 rows, written by executors."""
    path = tmp_path_factory.mktemp("profile") / "base.lance"
    tw.write_dataset(rows(spark, 0, 200), str(path), schema=SCHEMA, engine="spark")
    return path


@pytest.fixture
def ds(base: Path, tmp_path: Path) -> tw.LanceDataset:
    """A copy of them."""
    shutil.copytree(base, tmp_path / "t.lance")
    return tw.dataset(str(tmp_path / "t.lance"), engine="spark")


def test_write_and_read(spark: Any, ds: tw.LanceDataset) -> None:
    assert ds.schema == SCHEMA and ds.version == 1
    frame = ds.to_spark(spark, filter="id >= 190")
    assert frame.count() == 10
    seen = frame.orderBy("id").toArrow().slice(0, 1)
    expected = ds.to_table(filter="id = 190")
    assert seen.to_pylist() == expected.to_pylist()
    assert expected["vector"].to_pylist() == [[190.0, 1.5]]
    assert ds.to_spark(spark, columns={"twice": "n * 2"}).agg({"twice": "sum"}).first()[0] == 199 * 200


def test_append_takes_the_tables_types(spark: Any, ds: tw.LanceDataset) -> None:
    tw.write_dataset(rows(spark, 200, 300), ds, mode="append", engine="spark")
    ds.insert(spark.sql("select 1000 as id, array(1, 2) as vector"))
    assert ds.count_rows() == 301 and ds.to_table(filter="id = 1000")["vector"].to_pylist() == [[1.0, 2.0]]
    with pytest.raises(SchemaMismatch, match="`id` should have type int64"):
        ds.insert(spark.sql("select '7' as id"))
    with pytest.raises(InvalidRequest, match=r'Cannot cast column "vector".*does not fit'):
        ds.insert(spark.sql("select 7L as id, array(1d, 2d, 3d) as vector"))
    assert ds.latest_version == 3


def test_merge(spark: Any, ds: tw.LanceDataset) -> None:
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    done = merge.execute(spark.range(100, 300, 1, 3).selectExpr("cast(id as int) as id", "id + 1 as n"))
    assert (done["num_updated_rows"], done["num_inserted_rows"]) == (100, 100)
    assert ds.count_rows("n = id + 1") == 200
    assert ds.to_table(filter="id = 150")["vector"].to_pylist() == [[150.0, 1.5]]


def test_merge_by_a_shuffle(spark: Any, ds: tw.LanceDataset) -> None:
    source = spark.range(100, 300, 1, 3).selectExpr("id", "id + 1 as n")
    merge = builder(ds, "id", SHUFFLED).when_matched_update_all().when_not_matched_by_source_delete()
    done = merge.execute(source)
    assert (done["num_updated_rows"], done["num_deleted_rows"]) == (100, 100)


def test_update_and_delete(ds: tw.LanceDataset) -> None:
    assert ds.update({"n": "n + 1000"}, where="id % 2 = 0") == {"num_rows_updated": 100}
    assert ds.delete("id < 50") == {"num_deleted_rows": 50}
    assert ds.count_rows("n >= 1000") == 75


def test_columns(ds: tw.LanceDataset) -> None:
    ds.add_columns({"square": "id * id"})
    assert ds.to_table(filter="id = 12")["square"].to_pylist() == [144]


def test_compaction(ds: tw.LanceDataset) -> None:
    ds.insert(ds.to_table(filter="id < 10"))
    ds.delete("id < 5")
    done = ds.optimize.compact_files()
    assert done.fragments_added == 1 and ds.count_rows() == 200


def test_index(ds: tw.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE")
    assert ds.to_table(filter="id = 77")["n"].to_pylist() == [77]
    assert "id = 77" in ds.scanner(filter="id = 77").explain_plan()


def collect(batches: Any, world: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_naive_timestamps_in_another_zone(spark: Any, ds: tw.LanceDataset) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Lima")
        frame = ds.to_spark(spark, columns=["id", "at", "local"], filter="id = 7")
        (back,) = written_by_executors(frame, collect, ds._table.world, ds.to_table(["id", "at", "local"]).schema)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert back == ds.to_table(columns=["id", "at", "local"], filter="id = 7").to_pylist()


def test_large_payloads_travel_as_a_column(ds: tw.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "CARRIED_BYTES_MAX", 0)
    assert ds.delete("id >= 0") == {"num_deleted_rows": 200}


def test_data_source(spark: Any, ds: tw.LanceDataset) -> None:
    uri, other = ds.uri, f"{ds.uri}.other"
    frame = spark.read.format("tablewright").option("filter", "id < 10").load(uri)
    assert frame.agg({"id": "sum"}).first()[0] == 45
    rows(spark, 500, 510).write.format("tablewright").mode("append").save(uri)
    assert tw.dataset(uri).count_rows("id >= 500") == 10 and tw.dataset(uri).version == 2
    options = {"columns": '{"id": "id", "twice": "n * 2"}', "filter": "id >= 198", "version": "1"}
    old = spark.read.format("tablewright").options(**options).load(uri)
    for _ in range(2):
        old.write.format("tablewright").mode("overwrite").option("stable_row_ids", "true").save(other)
    made = tw.dataset(other)
    assert (made.version, made.has_stable_row_ids) == (2, True)
    assert sorted(map(tuple, made.to_table().to_pandas().values.tolist())) == [(198, 396), (199, 398)]
    given = spark.read.format("tablewright").schema("twice bigint").load(other)
    assert sorted(row.twice for row in given.collect()) == [396, 398]
    with pytest.raises(Exception, match="did you mean 'filter'"):
        spark.read.format("tablewright").option("fliter", "id < 1").load(uri).count()


def test_sql(spark: Any, tmp_path: Path) -> None:
    """Each kind of statement once, over a table by its name."""

    def run(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in tw.sql(spark, statement).collect()]

    path = tmp_path / "t.lance"
    properties = "TBLPROPERTIES ('stable_row_ids' = 'true')"
    select = "SELECT id, id * 10 AS n FROM range(4)"
    assert run(f"CREATE TABLE numbers USING tablewright LOCATION '{path}' {properties} AS {select}") == [(4, 1)]
    merge = "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
    source = "(SELECT id + 2 AS id, id + 1 AS n FROM range(3))"
    assert run(f"MERGE INTO numbers t USING {source} s ON t.id = s.id {merge}") == [(2, 0, 1, 2)]
    assert run("UPDATE numbers SET n = n + 100 WHERE id = 0") == [(1, 3)]
    assert run("DELETE FROM numbers WHERE id = 1") == [(1, 4)]
    assert run("INSERT INTO numbers SELECT id + 9, n FROM numbers WHERE id = 4") == [(1, 5)]
    assert run("SELECT * FROM numbers ORDER BY id") == [(0, 100), (2, 21), (3, 32), (4, 3), (13, 3)]
    assert run(f"SELECT sum(n) FROM tablewright.`{path}` VERSION AS OF 1") == [(60,)]
    feed = "SELECT id, n, _change_type, _commit_version FROM table_changes('numbers', 3, 5) ORDER BY 4, 3 DESC"
    assert run(feed) == [
        (0, 0, "update_preimage", 3),
        (0, 100, "update_postimage", 3),
        (1, 10, "delete", 4),
        (13, 3, "insert", 5),
    ]
    assert spark.sql("SELECT count(*) FROM numbers").first()[0] == 5
    spark.catalog.dropTempView("numbers")


def test_the_handle(spark: Any, ds: tw.LanceDataset) -> None:
    table = tw.table(spark, ds.uri)
    merge = table.alias("t").merge(spark.range(199, 202).selectExpr("id", "0L AS n"), "t.id = s.id")
    done = merge.whenMatchedUpdate(None, {"n": "s.n"}).whenNotMatchedInsertAll().execute()
    assert (done["num_updated_rows"], done["num_inserted_rows"]) == (1, 2)
    table.delete("id < 190")
    assert table.toDF().where("n = 0").count() == 3 and table.toDF().count() == 12
    assert [row["version"] for row in table.history(2).collect()] == [3, 2]
    assert table.detail().first()["numRows"] == 12
