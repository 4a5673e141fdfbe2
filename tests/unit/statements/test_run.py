"""Statements that need no Spark, without a session: done through the API, and answered by Arrow tables."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import IndexNotFound, InvalidRequest, TableExists, TableNotFound
from tablewright.statements.place import InvalidStatement


@pytest.fixture
def uri() -> str:
    made = f"memory://statements-{uuid.uuid4()}"
    tw.write_dataset({"id": [1, 2, 3, 4], "v": [1.0, 2.0, 3.0, 4.0]}, made, max_rows_per_file=2)
    return made


def run(uri: str, statement: str) -> list[dict[str, Any]]:
    found = tw.sql(None, statement.replace("T!", f"tablewright.`{uri}`"))
    assert isinstance(found, pa.Table)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_changes(uri: str) -> None:
    assert run(uri, "UPDATE T! SET v = -v WHERE id > 2") == [{"num_updated_rows": 2, "version": 2}]
    assert run(uri, "DELETE FROM T! AS t WHERE t.v = -3") == [{"num_deleted_rows": 1, "version": 3}]
    assert tw.dataset(uri).to_table(order_by=["id"]).to_pydict() == {"id": [1, 2, 4], "v": [1.0, 2.0, -4.0]}
    assert run(uri, "RESTORE TABLE T! TO VERSION AS OF 1") == [{"version": 4}]
    assert tw.dataset(uri).to_table(order_by=["id"])["v"].to_pylist() == [1.0, 2.0, 3.0, 4.0]


def test_columns(uri: str) -> None:
    run(uri, "ALTER TABLE T! ADD COLUMN n INT")
    run(uri, "ALTER TABLE T! RENAME COLUMN v TO w")
    run(uri, "ALTER TABLE T! ALTER COLUMN w TYPE FLOAT")
    run(uri, "ALTER TABLE T! ALTER COLUMN id SET NOT NULL")
    run(uri, "ALTER TABLE T! DROP COLUMN IF EXISTS nope")
    (last,) = run(uri, "ALTER TABLE T! DROP COLUMN n")
    schema = tw.dataset(uri).schema
    assert schema == pa.schema([pa.field("id", pa.int64(), False), ("w", pa.float32())])
    assert last["version"] == tw.dataset(uri).version == 6


def test_new_tables() -> None:
    uri = f"memory://statements-{uuid.uuid4()}"
    assert run(uri, "CREATE TABLE T! (id BIGINT)") == [{"num_inserted_rows": 0, "version": 1}]
    assert run(uri, "CREATE TABLE IF NOT EXISTS T! (other INT)") == [{"num_inserted_rows": 0, "version": 1}]
    with pytest.raises((TableExists, OSError)):
        run(uri, "CREATE TABLE T! (other INT)")
    run(uri, "CREATE OR REPLACE TABLE T! (other INT)")
    assert tw.dataset(uri).schema.names == ["other"] and tw.dataset(uri).version == 2


def test_indices(uri: str) -> None:
    run(uri, "CREATE INDEX by_id ON T! USING BTREE (id)")
    assert run(uri, "CREATE INDEX IF NOT EXISTS by_id ON T! (id)") == [{"version": 2}]
    assert run(uri, "DESCRIBE DETAIL T!")[0]["indices"] == ["by_id"]
    run(uri, "DROP INDEX by_id ON T!")
    assert run(uri, "DROP INDEX IF EXISTS by_id ON T!") == [{"version": 3}]
    with pytest.raises(IndexNotFound):
        run(uri, "DROP INDEX by_id ON T!")


def test_upkeep(uri: str) -> None:
    (done,) = run(uri, "OPTIMIZE T!")
    assert (done["fragments_removed"], done["fragments_added"]) == (2, 1)
    files = run(uri, "VACUUM T! RETAIN 0 HOURS DRY RUN")
    assert {"_versions", "data"} <= {each["path"].split("/")[0] for each in files}
    (removed,) = run(uri, "VACUUM T! RETAIN 0 HOURS")
    assert removed["old_versions"] >= 1 and run(uri, "VACUUM T! RETAIN 0 HOURS DRY RUN") == []
    (version,) = run(uri, "DESCRIBE HISTORY T!")
    assert (version["version"], version["num_rows"], version["operation"]) == (done["version"], 4, "Rewrite")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("DELETE FROM T!\nWHERE id > 1 AND Nope = 1", (2, 18)),
        ("UPDATE T! SET\n  nope = 1", (2, 3)),
        ("UPDATE T!\nSET v = v + nope", (2, 13)),
        ("ALTER TABLE T!\nRENAME COLUMN nope TO x", (2, 15)),
    ],
)
def test_a_name_that_is_not_there_is_marked(uri: str, statement: str, place: tuple[int, int]) -> None:
    with pytest.raises(InvalidStatement, match=r"(?i)nope") as caught:
        run(uri, statement)
    assert (caught.value.line, caught.value.column) == place
    assert tw.dataset(uri).version == 1


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("SELECT * FROM T!", InvalidRequest, "computed by Spark"),
        ("INSERT INTO T! VALUES (1, 2)", InvalidRequest, "computed by Spark"),
        ("SELECT 1", InvalidRequest, "computed by Spark"),
        ("DELETE FROM tablewright.`memory://nothing-here`", TableNotFound, "nothing-here"),
        ("UPDATE T! SET nope = 1", InvalidRequest, "does not exist"),
        ("CREATE TABLE tablewright.`memory://new-one` (a INT) TBLPROPERTIES ('x' = '1')", InvalidRequest, "x are not"),
    ],
)
def test_what_is_refused_changes_nothing(uri: str, statement: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(uri, statement)
    assert tw.dataset(uri).version == 1


def test_a_property_that_is_neither_true_nor_false_is_refused() -> None:
    path = f"memory://statements-{uuid.uuid4()}"
    with pytest.raises(InvalidRequest, match="stable_row_ids must be 'true' or 'false', got 'yes'"):
        tw.sql(None, f"CREATE TABLE tablewright.`{path}` (a INT) TBLPROPERTIES ('stable_row_ids' = 'yes')")
    with pytest.raises(TableNotFound):
        tw.dataset(path)
