"""The handle in delta-spark's words, without a session: what it hands over, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature, WrongType
from tablewright.spark.table import SparkTable, detail_of, history_of


@pytest.fixture
def table(tmp_path: Path) -> SparkTable:
    data = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([10, 20, 30], pa.int64())})
    return SparkTable(None, tw.write_dataset(data, tmp_path / "t.lance", commit_message="first"))


def rows(table: SparkTable) -> dict[int, int]:
    found = tw.dataset(detail_of(newest(table))[1]).to_table()
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def newest(table: SparkTable) -> tw.LanceDataset:
    return tw.dataset(repr(table).split()[1].rstrip(">"))


def test_update_and_delete_take_conditions_first(table: SparkTable) -> None:
    assert table.update("id > 1", {"n": "n + 1"})["num_rows_updated"] == 2
    assert rows(table) == {1: 10, 2: 21, 3: 31}
    table.update(set={"n": "0"})
    table.delete("id = 3")
    assert rows(table) == {1: 0, 2: 0}
    table.delete()
    assert rows(table) == {}


def test_every_call_works_on_the_newest_version(table: SparkTable) -> None:
    newest(table).insert([{"id": 4, "n": 40}])
    table.delete("id = 4")
    assert rows(table) == {1: 10, 2: 20, 3: 30}


def test_merge(table: SparkTable) -> None:
    source = {"id": [2, 4], "n": [200, 400]}
    merge = table.alias("t").merge(source, "t.id = s.id")
    counts = merge.whenMatchedUpdateAll("s.n > t.n").whenNotMatchedInsertAll().execute()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (1, 1)
    assert rows(table) == {1: 10, 2: 200, 3: 30, 4: 400}
    table.merge(source, "target.id = source.id").whenNotMatchedBySourceDelete("n = 30").execute()
    assert rows(table) == {1: 10, 2: 200, 4: 400}


def test_merge_clauses_in_order(table: SparkTable) -> None:
    """As in Delta's own example: the first clause whose condition is true takes the row."""
    source = {"id": [1, 2, 5, 6], "n": [None, 7, 50, 60]}
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete("s.n IS NULL")
    merge = merge.whenMatchedUpdate(set={"t.n": "s.n + t.n"}, condition="s.n < t.n")
    merge = merge.whenNotMatchedInsert(condition="s.n = 50", values={"id": "s.id", "n": "s.n + 1"})
    merge = merge.whenNotMatchedInsertAll()
    merge = merge.whenNotMatchedBySourceUpdate("t.n = 30", {"n": "t.n * 2"}).whenNotMatchedBySourceDelete()
    merge.execute()
    assert rows(table) == {2: 27, 5: 51, 6: 60, 3: 60}
    assert newest(table).version == 2


def test_restore(table: SparkTable) -> None:
    table.delete("id = 1")
    assert table.restoreToVersion(1) == 3
    assert rows(table) == {1: 10, 2: 20, 3: 30}
    table.delete()
    assert table.restoreToTimestamp(datetime.now() + timedelta(days=1)) == 5
    assert rows(table) == {}


def test_history_is_newest_first_with_messages(table: SparkTable) -> None:
    table.delete("id = 1")
    history = history_of(newest(table), None)
    assert [(row[0], row[2], row[3], row[4]) for row in history] == [
        (2, "Delete", 1, None),
        (1, "Overwrite", 0, "first"),
    ]
    assert history[0][5]["total_rows"] == "2"
    assert history[0][1] >= history[1][1]
    assert history_of(newest(table), 1) == history[:1]


def test_detail(table: SparkTable) -> None:
    newest(table).update_config({"owner": "me"})
    detail = detail_of(newest(table))
    assert detail[0] == "lance"
    assert (detail[2], detail[6:9], detail[10]) == (2, (1, 1, 3), {"owner": "me"})


def test_vacuum(table: SparkTable) -> None:
    table.delete("id = 1")
    assert table.vacuum()["old_versions"] == 0
    assert table.vacuum(0)["old_versions"] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.delete(3), "condition must be SQL text, got 3"),
        (lambda table: table.update("id = 1"), "set must be a dict"),
        (lambda table: table.update(set={"n": 3}), r"set\['n'\] must be SQL text"),
        (lambda table: table.vacuum(-1), "retentionHours must be a number"),
        (lambda table: table.merge({}, "target.id > source.id"), "The condition of a merge"),
        (lambda table: table.merge({"key": [1]}, "target.id = source.key"), "rename them first"),
        (lambda table: table.merge({}, "target.id = source.id").whenMatchedUpdate("true"), "set must be a dict"),
    ],
)
def test_what_is_refused(table: SparkTable, call: Callable[[SparkTable], Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        call(table)
    assert newest(table).version == 1


def test_what_lance_tables_have_not(table: SparkTable) -> None:
    with pytest.raises(UnsupportedFeature, match="no partitions"):
        table.optimize().where("day = 1")
    with pytest.raises(UnsupportedFeature, match="create_scalar_index"):
        table.optimize().executeZOrderBy("id")
    with pytest.raises(WrongType, match="SparkSession"):
        tw.table("local", "/t")
