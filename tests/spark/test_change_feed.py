"""The change feed on Spark: the same rows as here, read by workers."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("feed") / "t.lance")
    rows = pa.table({"id": range(40), "n": range(40), "s": [f"text {i}" for i in range(40)]})
    made = tw.write_dataset(rows, uri, max_rows_per_file=10, enable_stable_row_ids=True, engine="local")
    made.update({"n": "n + 1"}, where="id % 7 = 0")
    made.delete("id % 11 = 3")
    lance.dataset(uri).optimize.compact_files()
    made = tw.dataset(uri)
    made.add_columns({"m": "n * 2"})
    made.insert([{"id": 40, "n": 0, "s": "x", "m": None}])
    return uri


def _rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"net": True},
        {"columns": ["id", "m"], "filter": "_change_type <> 'update_preimage' and id < 20"},
        {"to_version": 2},
        {"from_version": 6},
    ],
    ids=["per version", "net", "filtered", "two versions", "nothing"],
)
def test_spark_reads_what_is_read_here(spark: Any, uri: str, asked: dict[str, Any]) -> None:
    dataset = tw.dataset(uri)
    feed = dataset.changes(**{"from_version": 1, **asked})
    here = feed.to_table()
    frame = feed.to_spark(spark)
    assert frame.columns == here.schema.names
    times = here.schema.get_field_index("_commit_timestamp")
    there = [[value for index, value in enumerate(row) if index != times] for row in frame.collect()]
    wanted = [list(row.values()) for row in here.drop_columns(["_commit_timestamp"]).to_pylist()]
    assert _rows(_plain(there)) == _rows(wanted)
    assert frame.select("_commit_timestamp").distinct().count() == len(here["_commit_timestamp"].unique())


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    """Spark has no unsigned numbers: ids come as decimals."""
    return [[int(value) if type(value).__name__ == "Decimal" else value for value in row] for row in rows]


def test_what_lives_in_this_process_does_not_travel(spark: Any) -> None:
    made = tw.write_dataset({"id": [1]}, "memory://feed-on-spark", enable_stable_row_ids=True)
    with pytest.raises(InvalidRequest):
        made.changes(0).to_spark(spark)
