"""The writer of streams, without a session: a version for each batch, once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import tablewright as tw
from tablewright.engine.spark import marks
from tablewright.errors import InvalidRequest, SchemaMismatch
from tablewright.spark import stream_writer
from tablewright.spark.source import TablewrightSource
from tablewright.spark.stream_writer import StreamPart, TableStreamWriter

FRAME = StructType().add("id", LongType())


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "QUIET_SECONDS", 0.0)


@pytest.fixture
def table(tmp_path: Path) -> str:
    tw.write_dataset(pa.table({"id": pa.array([0], pa.int64())}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def made(table: str) -> TableStreamWriter:
    """A writer as Spark makes it for every process."""
    return TablewrightSource({"path": table, "checkpointLocation": "/c"}).streamWriter(FRAME, overwrite=False)


def written(
    monkeypatch: pytest.MonkeyPatch, table: str, batch: int, *ids: int, query: str = "query-1"
) -> list[StreamPart]:
    """What the tasks of a batch answer, one for each id."""
    monkeypatch.setattr(stream_writer, "_running", lambda: (query, str(batch)))
    tasks = pickle.loads(pickle.dumps(made(table)))
    return [tasks.write(iter([pa.record_batch({"c": pa.array([id], pa.int64())})])) for id in ids]


def data_files(table: str) -> int:
    return len(list(Path(table, "data").glob("*")))


def ids(table: str) -> list[int]:
    return tw.dataset(table).to_table()["id"].to_pylist()


def test_each_batch_is_a_version_with_its_number(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in range(3):
        made(table).commit(
            pickle.loads(pickle.dumps(written(monkeypatch, table, batch, 10 + batch, 20 + batch))), batch
        )
    ds = tw.dataset(table)
    assert (ds.version, ids(table)) == (4, [0, 10, 20, 11, 21, 12, 22])
    assert ds.config() == {"tablewright.stream.query-1": "2"}
    assert data_files(table) == 4  # small files are joined


def test_a_batch_that_comes_again_leaves_nothing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(table).commit(written(monkeypatch, table, 0, 1), 0)
    made(table).commit(written(monkeypatch, table, 1, 2), 1)
    tw.dataset(table).insert([{"id": 9}])
    again = written(monkeypatch, table, 1, 2)
    assert data_files(table) == 5
    made(table).commit(again, 1)
    assert (ids(table), tw.dataset(table).version, data_files(table)) == ([0, 1, 2, 9], 4, 4)
    made(table).commit(written(monkeypatch, table, 0, 2, query="query-2"), 0)  # another query counts for itself
    assert ids(table) == [0, 1, 2, 9, 2]


def test_answers_that_are_committed_twice_keep_their_files(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = written(monkeypatch, table, 0, 1)
    made(table).commit(parts, 0)
    made(table).commit(parts, 0)
    assert ids(table) == [0, 1]
    tw.dataset(table).validate()


def test_a_batch_without_rows_makes_no_version(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch, table, 0)
    tasks = pickle.loads(pickle.dumps(made(table)))
    made(table).commit([tasks.write(iter([]))], 0)
    made(table).commit([], 1)
    assert tw.dataset(table).version == 1


def test_an_abort_removes_what_the_tasks_of_the_batch_wrote(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(table).commit(written(monkeypatch, table, 0, 1), 0)
    parts = written(monkeypatch, table, 1, 2, 3)
    made(table).abort([parts[0], None], 1)  # the answer of the other task is lost, too
    assert data_files(table) == 2
    made(table).abort([None], 1)
    assert ids(table) == [0, 1]


def test_marks_of_batches_differ(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One writer may serve several batches: an abort must not find files of one that is committed."""
    tasks = pickle.loads(pickle.dumps(made(table)))
    parts = []
    for batch in range(2):
        monkeypatch.setattr(stream_writer, "_running", lambda batch=batch: ("query", str(batch)))
        parts.append(tasks.write(iter([pa.record_batch({"c": pa.array([batch], pa.int64())})])))
    made(table).commit([parts[0]], 0)
    made(table).abort([parts[1], None], 1)
    assert ids(table) == [0, 0]
    tw.dataset(table).validate()


def test_a_stream_makes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "new.lance")
    made(path).commit(written(monkeypatch, path, 0, 1), 0)
    made(path).commit(written(monkeypatch, path, 0, 1), 0)
    assert (ids(path), tw.dataset(path).config()) == ([1], {"tablewright.stream.query-1": "0"})


def test_what_can_not_be_written(table: str) -> None:
    with pytest.raises(InvalidRequest, match="output mode append"):
        TablewrightSource({"path": table}).streamWriter(FRAME, overwrite=True)
    other = TablewrightSource({"path": table}).streamWriter(StructType().add("other", LongType()), overwrite=False)
    with pytest.raises(SchemaMismatch):
        pickle.dumps(other)
