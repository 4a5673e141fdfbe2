"""Statements as values: every kind, whose they are, and where in the text something is wrong."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.operations.merge_insert.ordered import DeleteClause, InsertClause, UpdateClause
from tablewright.statements.parse import parse
from tablewright.statements.place import InvalidStatement
from tablewright.statements.values import (
    AddColumns,
    AlterColumn,
    ChangesRead,
    CreateIndex,
    CreateTable,
    DeleteFrom,
    DescribeDetail,
    DescribeHistory,
    DropColumns,
    DropIndex,
    InsertInto,
    MergeInto,
    Optimize,
    Query,
    Restore,
    TableName,
    TableRead,
    UpdateTable,
    Vacuum,
)

DOCS, PATH = TableName(name="docs"), TableName(path="/data/t.lance")

STATEMENTS: list[tuple[str, Any]] = [
    ("DELETE FROM docs", DeleteFrom(DOCS, None)),
    ("delete from DOCS d where d.id > 3", DeleteFrom(DOCS, "(id > 3)")),
    ("DELETE FROM tablewright.`/data/t.lance` WHERE s = 'x';", DeleteFrom(PATH, "(s = 'x')")),
    ("UPDATE docs SET v = v + 1, docs.s = 'x'", UpdateTable(DOCS, (("v", "(v + 1)"), ("s", "'x'")), None)),
    ("UPDATE docs SET st.a = 1 WHERE v", UpdateTable(DOCS, (("st.a", "1"),), "v")),
    ("INSERT INTO docs SELECT 1", InsertInto(table=DOCS, query=Query(("SELECT 1",)))),
    ("INSERT INTO TABLE docs VALUES (1)", InsertInto(table=DOCS, query=Query(("VALUES (1)",)))),
    ("INSERT INTO docs (a, b) SELECT 1, 2", InsertInto(table=DOCS, query=Query(("SELECT 1, 2",)), columns=("a", "b"))),
    ("INSERT INTO docs BY NAME SELECT 1 a", InsertInto(table=DOCS, query=Query(("SELECT 1 a",)), by_name=True)),
    ("INSERT OVERWRITE docs SELECT 1", InsertInto(table=DOCS, query=Query(("SELECT 1",)), overwrite=True)),
    (
        "INSERT INTO docs WITH x AS (SELECT 1) SELECT * FROM x",
        InsertInto(table=DOCS, query=Query(("WITH x AS (SELECT 1) SELECT * FROM x",))),
    ),
    (
        "CREATE TABLE tablewright.`/data/t.lance` (id BIGINT NOT NULL, v ARRAY<FLOAT>)",
        CreateTable(table=PATH, schema=pa.schema([pa.field("id", pa.int64(), False), ("v", pa.list_(pa.float32()))])),
    ),
    (
        "CREATE TABLE IF NOT EXISTS New (d DECIMAL(9, 2), st STRUCT<a: INT>) USING tablewright LOCATION '/x' "
        "TBLPROPERTIES ('stable_row_ids'='true')",
        CreateTable(
            table=TableName(path="/x", name="new"),
            schema=pa.schema({"d": pa.decimal128(9, 2), "st": pa.struct({"a": pa.int32()})}),
            if_not_exists=True,
            options=(("stable_row_ids", "true"),),
        ),
    ),
    (
        "CREATE OR REPLACE TABLE tablewright.`/data/t.lance` AS SELECT 1 AS a",
        CreateTable(table=PATH, query=Query((" SELECT 1 AS a",)), replace=True),
    ),
    ("ALTER TABLE docs ADD COLUMN a INT", AddColumns(DOCS, pa.schema({"a": pa.int32()}))),
    (
        "ALTER TABLE docs ADD COLUMNS (a DATE, m MAP<STRING, BIGINT>)",
        AddColumns(DOCS, pa.schema({"a": pa.date32(), "m": pa.map_(pa.string(), pa.int64())})),
    ),
    ("ALTER TABLE docs DROP COLUMN a", DropColumns(DOCS, ("a",))),
    ("ALTER TABLE docs DROP COLUMNS (a, b)", DropColumns(DOCS, ("a", "b"))),
    ("ALTER TABLE docs RENAME COLUMN a TO b", AlterColumn(table=DOCS, column="a", name="b")),
    ("ALTER TABLE docs ALTER COLUMN a TYPE BIGINT", AlterColumn(table=DOCS, column="a", data_type=pa.int64())),
    ("ALTER TABLE docs ALTER COLUMN a SET NOT NULL", AlterColumn(table=DOCS, column="a", nullable=False)),
    ("ALTER TABLE docs ALTER COLUMN a DROP NOT NULL", AlterColumn(table=DOCS, column="a", nullable=True)),
    ("CREATE INDEX i ON docs (id)", CreateIndex(table=DOCS, name="i", column="id", kind="BTREE")),
    (
        "CREATE INDEX IF NOT EXISTS i ON docs USING bitmap (st.a)",
        CreateIndex(table=DOCS, name="i", column="st.a", kind="BITMAP", if_not_exists=True),
    ),
    ("DROP INDEX IF EXISTS i ON docs", DropIndex(table=DOCS, name="i", if_exists=True)),
    ("OPTIMIZE docs", Optimize(DOCS)),
    ("optimize tablewright.`/data/t.lance` ;", Optimize(PATH)),
    ("VACUUM docs", Vacuum(DOCS)),
    ("VACUUM docs RETAIN 1.5 HOURS DRY RUN", Vacuum(DOCS, 1.5, True)),
    ("DESCRIBE HISTORY docs", DescribeHistory(DOCS)),
    ("DESC DETAIL tablewright.`/data/t.lance`", DescribeDetail(PATH)),
    ("RESTORE TABLE docs TO VERSION AS OF 3", Restore(DOCS, version=3)),
    ("RESTORE docs TO VERSION AS OF 'tag'", Restore(DOCS, version="tag")),
    ("RESTORE docs TO TIMESTAMP AS OF '2024-01-01'", Restore(DOCS, timestamp="2024-01-01")),
]


@pytest.mark.parametrize(("text", "value"), STATEMENTS, ids=[text for text, _ in STATEMENTS])
def test_statements(text: str, value: Any) -> None:
    assert parse(text, {"docs"}) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_merge() -> None:
    text = """MERGE INTO docs AS t
        USING (SELECT * FROM news WHERE x = 'ON') s ON t.id = s.key AND (t.k = s.k)
        WHEN MATCHED AND s.op = 'd' THEN DELETE
        WHEN MATCHED AND s.v > t.v THEN UPDATE SET t.v = s.v + t.v, w = 1
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND s.v > 3 THEN INSERT (id, v) VALUES (s.key, upper(s.op))
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = t.w * 2"""
    found = parse(text, {"docs"})
    assert isinstance(found, MergeInto) and found.takes_all
    assert found.on == (("id", "key"), ("k", "k"))
    assert found.source.parts == ("SELECT * FROM  (SELECT * FROM news WHERE x = 'ON') s",)
    assert found.matched == (
        DeleteClause("(source.op = 'd')"),
        UpdateClause((("v", "(source.v + target.v)"), ("w", "1")), "(source.v > target.v)"),
        UpdateClause(),
    )
    assert found.not_matched == (
        InsertClause((("id", "source.key"), ("v", "upper(source.op)")), "(source.v > 3)"),
        InsertClause(),
    )
    assert found.by_source == (DeleteClause("(target.v IS null)"), UpdateClause((("w", "(target.w * 2)"),)))
    assert {"op", "key", "v"} <= found.mentions


READ = TableRead(DOCS)
QUERIES: list[tuple[str, tuple[Any, ...]]] = [
    ("SELECT * FROM docs", ("SELECT * FROM ", READ, " AS `docs`", "")),
    ("SELECT * FROM docs d WHERE x = 'docs'", ("SELECT * FROM ", READ, " d WHERE x = 'docs'")),
    (
        "SELECT * FROM docs VERSION AS OF 3 WHERE a",
        ("SELECT * FROM ", TableRead(DOCS, version=3), " AS `docs`", " WHERE a"),
    ),
    (
        "SELECT * FROM tablewright.`/data/t.lance` FOR TIMESTAMP AS OF '2024-01-01' AS t",
        ("SELECT * FROM ", TableRead(PATH, timestamp="2024-01-01"), " AS t"),
    ),
    ("SELECT * FROM docs VERSION AS OF 'tag' d", ("SELECT * FROM ", TableRead(DOCS, version="tag"), " d")),
    (
        "SELECT * FROM table_changes('docs', 2, 5) WHERE a",
        ("SELECT * FROM ", ChangesRead(DOCS, 2, 5), " WHERE a"),
    ),
    ("SELECT * FROM table_changes('/data/t.lance', 2)", ("SELECT * FROM ", ChangesRead(PATH, 2), "")),
    ("SELECT 1", ("SELECT 1",)),
    ("SHOW TABLES", ("SHOW TABLES",)),
    ("DELETE FROM others", ("DELETE FROM others",)),
    ("CREATE TABLE x (a INT) USING parquet", ("CREATE TABLE x (a INT) USING parquet",)),
    ("DESCRIBE docs", ("DESCRIBE docs",)),
    ("WITH docs AS (SELECT 1) SELECT * FROM docs", ("WITH docs AS (SELECT 1) SELECT * FROM docs",)),
    ("SELECT docs FROM x", ("SELECT docs FROM x",)),
    ("INSERT INTO x SELECT * FROM docs d", ("INSERT INTO x SELECT * FROM ", READ, " d")),
]


@pytest.mark.parametrize(("text", "parts"), QUERIES, ids=[text for text, _ in QUERIES])
def test_queries_stay_text_with_places(text: str, parts: tuple[Any, ...]) -> None:
    found = parse(text, {"docs"})
    assert isinstance(found, Query) and found.parts == parts


def test_columns_that_a_query_mentions() -> None:
    found = parse("SELECT a, count(*) FROM docs WHERE B > 1 GROUP BY a", {"docs"})
    assert isinstance(found, Query) and found.columns == {"a", "b", "docs"}
    for text in ("SELECT d.* FROM docs d", "SELECT x FROM docs NATURAL JOIN y", "INSERT INTO x SELECT a FROM docs"):
        any_column = parse(text, {"docs"})
        assert isinstance(any_column, Query) and any_column.columns is None


WRONG: list[tuple[str, str, tuple[int, int]]] = [
    ("", "empty", (1, 1)),
    ("SELECT 1; SELECT 2", "One statement", (1, 11)),
    ("SELECT 'x", "can't be read", (1, 10)),
    ("DELETE FROM docs\nWHERE id IN (SELECT id FROM s)", "subquery", (2, 7)),
    ("UPDATE docs SET v = foo(v)", "FOO", (1, 21)),
    ("UPDATE docs SET v = 1 WERE x", "Invalid expression", (1, 23)),
    ("MERGE INTO docs t USING s ON t.id > s.id WHEN MATCHED THEN DELETE", "ON compares", (1, 30)),
    ("MERGE INTO docs t USING s ON t.id = 3 WHEN MATCHED THEN DELETE", "ON compares", (1, 30)),
    ("MERGE INTO docs USING s AS docs ON docs.id = docs.id WHEN MATCHED THEN DELETE", "same name", (1, 23)),
    (
        "MERGE INTO docs t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET v = 1",
        "without a condition",
        (1, 96),
    ),
    (
        "MERGE INTO docs t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a)",
        "as many values",
        (1, 72),
    ),
    ("CREATE TABLE docs (a INT)", "LOCATION", (1, 14)),
    ("CREATE TABLE tablewright.`/x` (a INTERVAL)", "can't be a column's", (1, 32)),
    ("CREATE TABLE tablewright.`/x` (a INT) PARTITIONED BY (a)", "not offered", (1, 55)),
    ("ALTER TABLE docs ADD COLUMN a INT AFTER b", "FIRST and AFTER", (1, 29)),
    ("ALTER TABLE docs RENAME TO x", "ADD, DROP, RENAME", (1, 13)),
    ("CREATE INDEX i ON docs (a, b)", "one column", (1, 14)),
    ("OPTIMIZE docs ZORDER BY (a)", "nothing else", (1, 15)),
    ("VACUUM docs RETAIN many HOURS", "number of hours", (1, 20)),
    ("RESTORE docs TO 3", "VERSION AS OF", (1, 17)),
    ("SELECT * FROM table_changes('docs')", "table_changes takes", (1, 15)),
    ("SELECT * FROM table_changes('nope', 1)", "neither a path", (1, 29)),
]


@pytest.mark.parametrize(("text", "reason", "place"), WRONG, ids=[text for text, _, _ in WRONG])
def test_what_is_wrong_is_marked(text: str, reason: str, place: tuple[int, int]) -> None:
    with pytest.raises(InvalidStatement, match=reason) as caught:
        parse(text, {"docs"})
    assert (caught.value.line, caught.value.column) == place
    assert str(caught.value).splitlines()[-1] == " " * (place[1] - 1) + "^"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.line, again.column, str(again)) == (*place, str(caught.value))


def test_a_statement_is_text() -> None:
    with pytest.raises((InvalidRequest, TypeError), match="the statement"):
        parse(3)  # type: ignore[arg-type]
