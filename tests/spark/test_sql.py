"""SQL statements beside the same through the Python API: two copies of a table, equal rows and versions afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, TableNotFound
from tablewright.statements.names import registered
from tablewright.statements.place import InvalidStatement

TABLE = pa.table(
    {
        "id": pa.array(range(1, 7), pa.int64()),
        "v": pa.array([10, 20, None, 40, 50, 60], pa.int64()),
        "s": ["a", "b", "c", None, "e", "f"],
    }
)


class Twins:
    """Two copies of a table: ``sql`` is changed by statements, ``own`` by calls."""

    def __init__(self, spark: Any, directory: Path, template: Path) -> None:
        self.spark, self.paths = spark, [str(directory / name) for name in ("sql.lance", "own.lance")]
        for path in self.paths:
            shutil.copytree(template, path)
        tw.register(spark, "docs", self.paths[0])
        self.own = tw.dataset(self.paths[1], spark=spark)

    def run(self, statement: str) -> list[dict[str, Any]]:
        text = statement.replace("PATH", f"tablewright.`{self.paths[0]}`")
        return [row.asDict() for row in tw.sql(self.spark, text).collect()]

    def check(self) -> None:
        """The same rows, columns and version, for us, for pylance, and for plain Spark SQL."""
        ours, theirs = tw.dataset(self.paths[0]), tw.dataset(self.paths[1])
        assert ours.schema == theirs.schema and ours.version == theirs.version
        rows = [_sorted(ds.to_table()) for ds in (ours, theirs, lance.dataset(self.paths[0]))]
        assert rows[0] == rows[1] == rows[2]
        assert self.spark.sql("SELECT count(*) AS n FROM docs").collect()[0]["n"] == ours.count_rows()


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "t.lance"
    tw.write_dataset(TABLE, path, max_rows_per_file=2, enable_stable_row_ids=True)
    tw.dataset(path).update({"s": "'z'"}, "id = 6")
    return path


@pytest.fixture
def twins(spark: Any, tmp_path: Path, template: Path) -> Iterator[Twins]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    made = Twins(spark, tmp_path, template)
    news = [(1, 5, "u"), (2, None, "d"), (9, 90, "i"), (8, 1, "x")]
    spark.createDataFrame(news, "id bigint, v int, op string").createOrReplaceTempView("news")
    yield made
    spark.conf.set("spark.sql.session.timeZone", zone)
    for name in ("news", "docs"):
        spark.catalog.dropTempView(name)


NEWS = pa.table({"id": [1, 2, 9, 8], "v": [5, None, 90, 1], "op": ["u", "d", "i", "x"]})


def _merge(ds: tw.LanceDataset) -> Any:
    return ds.merge_insert("id")


CHANGES: dict[str, tuple[str, Callable[[tw.LanceDataset], Any]]] = {
    "delete": ("DELETE FROM docs WHERE v > 30 OR s = 'a'", lambda ds: ds.delete("v > 30 or s = 'a'")),
    "delete all": ("DELETE FROM PATH", lambda ds: ds.delete("true")),
    "update": (
        "UPDATE PATH SET v = v / 2 + id, s = concat(s, '!') WHERE id <> 3",
        lambda ds: ds.update({"v": "cast(v as double) / 2 + id", "s": "s || '!'"}, "id <> 3"),
    ),
    "insert": (
        "INSERT INTO docs SELECT id + 100, v, op FROM news",
        lambda ds: ds.insert(pa.table({"id": [101, 102, 109, 108], "v": NEWS["v"], "s": NEWS["op"]})),
    ),
    "insert columns": (
        "INSERT INTO docs (s, ID) VALUES ('x', 1), ('y', 2)",
        lambda ds: ds.insert(pa.table({"id": [1, 2], "s": ["x", "y"]})),
    ),
    "insert nulls and narrower numbers": (
        "INSERT INTO docs VALUES (1, NULL, 'x'), (tinyint(2), 3, NULL)",
        lambda ds: ds.insert(pa.table({"id": [1, 2], "v": [None, 3], "s": ["x", None]})),
    ),
    "insert by name": (
        "INSERT INTO docs BY NAME SELECT op AS s, id, v FROM news",
        lambda ds: ds.insert(pa.table({"id": NEWS["id"], "v": NEWS["v"], "s": NEWS["op"]})),
    ),
    "insert from itself": (
        "INSERT INTO docs SELECT id + 10, v, s FROM docs WHERE id < 3",
        lambda ds: ds.insert(pa.table({"id": [11, 12], "v": [10, 20], "s": ["a", "b"]})),
    ),
    "overwrite": (
        "INSERT OVERWRITE docs SELECT id, v, op FROM news",
        lambda ds: ds.insert(pa.table({"id": NEWS["id"], "v": NEWS["v"], "s": NEWS["op"]}), mode="overwrite"),
    ),
    "merge": (
        "MERGE INTO docs t USING news s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = t.v + s.v, s = 'up' "
        "WHEN NOT MATCHED AND s.op = 'i' THEN INSERT (id, s) VALUES (s.id, s.op) "
        "WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN UPDATE SET v = 0 "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE",
        lambda ds: (
            _merge(ds)
            .when_matched_delete("source.op = 'd'")
            .when_matched_update({"v": "target.v + source.v", "s": "'up'"})
            .when_not_matched_insert({"id": "source.id", "s": "source.op"}, "source.op = 'i'")
            .when_not_matched_by_source_update({"v": "0"}, "target.v is null")
            .when_not_matched_by_source_delete("target.id = 5")
            .execute(NEWS)
        ),
    ),
    "merge all columns": (
        "MERGE INTO PATH AS t USING (SELECT id AS key, v, op AS s, 1 AS more FROM news) n ON n.key = t.id "
        "WHEN MATCHED AND n.v IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        lambda ds: (
            _merge(ds)
            .when_matched_delete("source.v is null")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(pa.table({"id": NEWS["id"], "v": NEWS["v"], "s": NEWS["op"]}))
        ),
    ),
    "merge from itself": (
        "MERGE INTO docs USING (SELECT id + 1 AS id, max(v) AS v FROM docs VERSION AS OF 1 GROUP BY 1) s "
        "ON docs.id = s.id WHEN MATCHED AND s.v > docs.v THEN UPDATE SET v = s.v",
        lambda ds: (
            _merge(ds)
            .when_matched_update({"v": "source.v"}, "source.v > target.v")
            .execute(pa.table({"id": [2, 3, 4, 5, 6, 7], "v": [10, 20, None, 40, 50, 60]}))
        ),
    ),
    "add columns": (
        "ALTER TABLE docs ADD COLUMNS (n INT, l ARRAY<STRING>)",
        lambda ds: ds.add_columns(pa.schema({"n": pa.int32(), "l": pa.list_(pa.string())})),
    ),
    "drop column": ("ALTER TABLE docs DROP COLUMN v", lambda ds: ds.drop_columns(["v"])),
    "rename column": (
        "ALTER TABLE docs RENAME COLUMN v TO w",
        lambda ds: ds.alter_columns({"path": "v", "name": "w"}),
    ),
    "alter column": (
        "ALTER TABLE docs ALTER COLUMN v TYPE INT",
        lambda ds: ds.alter_columns({"path": "v", "data_type": pa.int32()}),
    ),
    "create index": (
        "CREATE INDEX by_id ON docs USING BTREE (id)",
        lambda ds: ds.create_scalar_index("id", "BTREE", name="by_id"),
    ),
    "restore": ("RESTORE TABLE docs TO VERSION AS OF 1", lambda ds: ds.checkout_version(1).restore()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_statement_equals_its_call(twins: Twins, name: str) -> None:
    statement, call = CHANGES[name]
    (row,) = twins.run(statement)
    done = call(twins.own)
    twins.check()
    assert row["version"] == tw.dataset(twins.paths[1]).version
    if isinstance(done, dict):
        given = {"num_updated_rows": "num_rows_updated"} if name == "update" else {}
        assert all(row[key] == done[given.get(key, key)] for key in row if key != "version")
    elif "num_inserted_rows" in row:
        assert row["num_inserted_rows"] == twins.own.count_rows() - (0 if name == "overwrite" else 6)


def test_indices_and_upkeep(twins: Twins) -> None:
    twins.run("CREATE INDEX IF NOT EXISTS by_id ON docs (id)")
    twins.run("CREATE INDEX IF NOT EXISTS by_id ON docs (id)")
    assert [index["name"] for index in tw.dataset(twins.paths[0]).list_indices()] == ["by_id"]
    (compacted,) = twins.run("OPTIMIZE docs")
    assert (compacted["fragments_removed"], compacted["fragments_added"]) == (4, 1)
    twins.run("DROP INDEX by_id ON docs")
    twins.run("DROP INDEX IF EXISTS by_id ON docs")
    explained = tw.dataset(twins.paths[0]).explain_cleanup_old_versions(timedelta(0))
    assert {row["path"] for row in twins.run("VACUUM docs RETAIN 0 HOURS DRY RUN")} == {
        each.path for each in explained.candidate_files
    }
    (removed,) = twins.run("VACUUM docs RETAIN 0 HOURS")
    assert removed["old_versions"] == explained.stats.old_versions > 0
    history = twins.run("DESCRIBE HISTORY docs")
    assert [row["version"] for row in history] == [tw.dataset(twins.paths[0]).version]
    (detail,) = twins.run("DESCRIBE DETAIL PATH")
    assert (detail["num_rows"], detail["num_fragments"], detail["columns"]) == (6, 1, ["id", "v", "s"])
    assert detail["stable_row_ids"] and detail["location"] == tw.dataset(twins.paths[0]).uri


def test_queries(twins: Twins) -> None:
    assert twins.run("SELECT sum(id) AS n FROM docs VERSION AS OF 1 WHERE s = 'f'") == [{"n": 6}]
    assert twins.run("SELECT sum(docs.id) AS n FROM docs WHERE docs.s = 'f'") == [{"n": None}]
    assert twins.run("SELECT count(*) AS n FROM PATH TIMESTAMP AS OF '2999-01-01' t JOIN news USING (id)") == [{"n": 2}]
    twins.run("DELETE FROM docs WHERE id = 1")
    feed = twins.run("SELECT id, _change_type AS what FROM table_changes('docs', 2, 3) ORDER BY _commit_version, what")
    assert feed == [
        {"id": 6, "what": "update_postimage"},
        {"id": 6, "what": "update_preimage"},
        {"id": 1, "what": "delete"},
    ]
    tw.dataset(twins.paths[0]).delete("id = 2")  # by another writer: tw.sql sees it
    assert twins.run("SELECT count(*) AS n FROM docs") == [{"n": 4}]
    assert twins.run("SELECT '{}' AS braces, max(id) AS n FROM docs") == [{"braces": "{}", "n": 6}]
    assert twins.run("SELECT 1 AS one") == [{"one": 1}]
    assert [row["operation"] for row in twins.run("DESCRIBE HISTORY docs")][-1] == "Overwrite"


def test_tables_that_are_made(spark: Any, tmp_path: Path, twins: Twins) -> None:
    path = tmp_path / "made.lance"
    tw.sql(spark, f"CREATE TABLE made (id BIGINT NOT NULL, s STRING) USING tablewright LOCATION '{path}'")
    assert tw.dataset(path).schema == pa.schema([pa.field("id", pa.int64(), False), ("s", pa.string())])
    tw.sql(spark, "INSERT INTO made VALUES (1, 'x')")
    assert spark.sql("SELECT * FROM made").collect()[0].asDict() == {"id": 1, "s": "x"}
    tw.sql(spark, f"CREATE TABLE IF NOT EXISTS tablewright.`{path}` AS SELECT 1 AS one")
    assert tw.dataset(path).version == 2
    (row,) = tw.sql(spark, f"CREATE OR REPLACE TABLE tablewright.`{path}` AS SELECT id, s FROM docs").collect()
    assert (row["num_inserted_rows"], row["version"]) == (6, 3)
    other = tmp_path / "stable.lance"
    tw.sql(spark, f"CREATE TABLE tablewright.`{other}` (a INT) TBLPROPERTIES ('stable_row_ids' = 'true')")
    assert tw.dataset(other).has_stable_row_ids
    spark.catalog.dropTempView("made")


BAD = [
    ("DELETE FROM docs WHERE nope = 1", InvalidRequest, "No field named nope"),
    ("UPDATE docs SET id = foo(id)", InvalidStatement, "FOO"),
    ("INSERT INTO docs SELECT 1", InvalidRequest, "takes 3 columns"),
    ("INSERT INTO docs (nope) VALUES (1)", InvalidRequest, "does not exist"),
    ("INSERT INTO docs VALUES ('7', 1, 'y')", InvalidRequest, "`id` should have type int64 but string"),
    ("INSERT INTO docs VALUES (1, 1.5, 'y')", InvalidRequest, "the value 1.5 does not fit"),
    ("INSERT OVERWRITE docs (id) VALUES (1)", InvalidRequest, "all columns"),
    ("MERGE INTO docs t USING news s ON t.id = s.nope WHEN MATCHED THEN DELETE", InvalidRequest, "no column nope"),
    ("MERGE INTO docs t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *", InvalidRequest, "has no s"),
    (
        "MERGE INTO docs t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.op",
        InvalidRequest,
        "can't safely take",
    ),
    ("MERGE INTO docs t USING news n ON t.s = n.op WHEN MATCHED THEN UPDATE SET v = id", InvalidRequest, "both|and of"),
    ("CREATE TABLE tablewright.`/x` (a INT) TBLPROPERTIES ('nope' = '1')", InvalidRequest, "nope"),
    ("SELECT * FROM tablewright.`/nowhere/t.lance`", TableNotFound, "nowhere"),
]


@pytest.mark.parametrize(("statement", "error", "message"), BAD, ids=[statement for statement, _, _ in BAD])
def test_what_is_refused_changes_nothing(twins: Twins, statement: str, error: type[Exception], message: str) -> None:
    before = tw.dataset(twins.paths[0]).version
    with pytest.raises(error, match=message):
        twins.run(statement)
    assert tw.dataset(twins.paths[0]).version == before


def test_names(spark: Any, twins: Twins, tmp_path: Path) -> None:
    assert registered(spark)["docs"] == twins.paths[0] and registered(None) == {}
    with pytest.raises(TableNotFound):
        tw.register(spark, "nothing", tmp_path / "nothing.lance")
    with pytest.raises(InvalidRequest, match="letters, digits"):
        tw.register(spark, "a b", twins.paths[0])
    with pytest.raises(InvalidRequest, match="session"):
        tw.register(None, "docs", twins.paths[0])
    with pytest.raises(InvalidRequest, match="computed by Spark"):
        tw.sql(None, f"SELECT * FROM tablewright.`{twins.paths[0]}`")
