"""The reader of streams, without a session: offsets, batches, and what is an error."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import tablewright as tw
from tablewright.errors import InvalidRequest, TablewrightError, VersionNotFound
from tablewright.spark.options import read_options
from tablewright.spark.source import TablewrightSource
from tablewright.spark.stream_reader import TableStreamReader, stream_type


@pytest.fixture
def table(tmp_path: Path) -> str:
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([0, 0], pa.int64())})
    ds = tw.write_dataset(data, tmp_path / "t.lance", enable_stable_row_ids=True)
    ds.insert([{"id": 3, "n": 0}])
    return ds.uri


def made(table: str, **options: str) -> TableStreamReader:
    given = read_options({"path": table, **options}, streams=True)
    return TableStreamReader(given, stream_type(given))


def rows(reader: TableStreamReader, start: dict[str, int], end: dict[str, int], *names: str) -> list[Any]:
    worker = pickle.loads(pickle.dumps(reader))
    parts = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    found = [row for part in parts for batch in worker.read(part) for row in batch.to_pylist()]
    return [tuple(row[name] for name in names) for row in found]


def at(version: int) -> dict[str, int]:
    return {"version": version}


def test_a_stream_begins_with_the_whole_table(table: str) -> None:
    reader = made(table)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxFiles(1))
    assert (start, end) == (at(-1), at(2))
    assert rows(reader, start, end, "id") == [(1,), (2,), (3,)]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.partitions(end, end) == []
    tw.dataset(table).insert([{"id": 4, "n": 0}])
    assert rows(reader, end, reader.latestOffset(end, ReadAllAvailable()), "id") == [(4,)]
    assert rows(reader, start, end, "id") == [(1,), (2,), (3,)]  # a batch that is read again is the same


def test_a_table_with_a_history_of_changes_can_be_begun(table: str) -> None:
    tw.dataset(table).delete("id = 1")
    reader = made(table)
    assert rows(reader, reader.initialOffset(), at(3), "id") == [(2,), (3,)]


def test_where_to_begin_and_how_much_at_a_time(table: str) -> None:
    assert made(table, start_version="latest").initialOffset() == at(2)
    reader = made(table, start_version="1", max_versions_per_trigger="1")
    assert reader.getDefaultReadLimit() == ReadMaxFiles(1)
    assert made(table).getDefaultReadLimit() == ReadAllAvailable()
    assert reader.initialOffset() == at(0)
    assert reader.latestOffset(at(0), ReadMaxFiles(1)) == at(1)
    assert reader.latestOffset(at(0), ReadAllAvailable()) == at(2)
    assert rows(reader, at(0), at(1), "id") == [(1,), (2,)]
    assert rows(reader, at(0), at(2), "id") == [(1,), (2,), (3,)]


def test_available_now_ends_at_what_is_there(table: str) -> None:
    reader = made(table, start_version="1")
    reader.prepareForTriggerAvailableNow()
    tw.dataset(table).insert([{"id": 4, "n": 0}])
    assert reader.latestOffset(at(0), ReadMaxFiles(1)) == at(1)
    assert reader.latestOffset(at(1), ReadMaxFiles(9)) == at(2)
    assert reader.latestOffset(at(2), ReadMaxFiles(9)) == at(2)
    assert reader.latestOffset(at(3), ReadAllAvailable()) == at(3)  # read by an earlier run


def test_changes(table: str) -> None:
    ds = tw.dataset(table)
    ds.update({"n": "7"}, where="id = 2")
    ds.delete("id = 3")
    reader = made(table, changes="true", columns="id,n")
    names = ("id", "n", "_change_type", "_commit_version")
    assert sorted(rows(reader, reader.initialOffset(), at(3), *names)) == [
        (1, 0, "insert", 3),
        (2, 7, "insert", 3),
        (3, 0, "insert", 3),
    ]
    assert rows(reader, at(2), at(4), *names) == [
        (2, 0, "update_preimage", 3),
        (2, 7, "update_postimage", 3),
        (3, 0, "delete", 4),
    ]
    filtered = made(table, changes="true", filter="_change_type = 'delete'")
    assert rows(filtered, at(2), at(4), *names) == [(3, 0, "delete", 4)]


def test_columns_and_row_ids_of_appended_rows(table: str) -> None:
    reader = made(table, columns="n", with_row_id="true", filter="id > 1")
    assert rows(reader, at(0), at(2), "n", "_rowid") == [(0, 1), (0, 2)]


def test_columns_that_come_later_are_left_out(table: str) -> None:
    plain, changes = made(table), made(table, changes="true")
    tw.dataset(table).add_columns({"more": "id"})
    tw.dataset(table).insert([{"id": 4, "n": 0, "more": 4}])
    assert rows(plain, at(2), at(4), "id", "n") == [(4, 0)]
    assert (4, 0, "insert") in rows(changes, at(3), at(4), "id", "n", "_change_type")


def test_a_column_that_went_is_an_error(table: str) -> None:
    reader = made(table)
    tw.dataset(table).drop_columns(["n"])
    with pytest.raises(TablewrightError, match="`n` is no column of the table"):
        reader.partitions(at(2), at(3))


@pytest.mark.parametrize("changes", ["true", "false"])
def test_a_version_that_was_cleaned_up(table: str, changes: str) -> None:
    ds = tw.dataset(table)
    ds.insert([{"id": 4, "n": 0}])
    ds.cleanup_old_versions(versions=[2])
    with pytest.raises(VersionNotFound, match=r"The stream has to read versions 2 to 3 .*Version 2.*new checkpoint"):
        made(table, changes=changes).partitions(at(1), at(3))


def test_a_change_in_a_stream_of_appended_rows(table: str) -> None:
    tw.dataset(table).delete("id = 1")
    with pytest.raises(InvalidRequest, match=r"Version 3 .*\(Delete\) changed rows.*changes=true"):
        made(table).partitions(at(2), at(3))


def test_a_table_that_was_made_again(table: str) -> None:
    reader = made(table)
    tw.LanceDataset.drop(table)
    tw.write_dataset({"id": [1], "n": [1]}, table)
    with pytest.raises(InvalidRequest, match="was dropped and made again"):
        reader.latestOffset(at(2), ReadAllAvailable())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "1"}, "A stream follows a table, and version names one"),
        ({"changes": "true", "with_row_id": "true"}, "always a column _rowid"),
        ({"commit_message": "x"}, "'commit_message' does not belong to a stream"),
    ],
)
def test_options_that_do_not_fit(table: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        made(table, **options)


def test_changes_need_stable_row_ids(tmp_path: Path) -> None:
    tw.write_dataset({"id": [1]}, tmp_path / "t.lance")
    with pytest.raises(InvalidRequest, match="enable_stable_row_ids"):
        made(str(tmp_path / "t.lance"), changes="true")


def test_the_source_knows_streams_by_their_options(table: str) -> None:
    source = TablewrightSource({"path": table, "Changes": "true"})
    assert "_change_type" in source.schema().fieldNames()
    assert isinstance(source.streamReader(source.schema()), TableStreamReader)
    assert isinstance(TablewrightSource({"path": table}).streamReader(source.schema()), TableStreamReader)
