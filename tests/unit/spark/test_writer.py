"""Writing for the data source, without a session."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, FloatType, LongType, StringType, StructType

import tablewright as tw
from tablewright.engine.spark import marks
from tablewright.errors import CommitUnknown, InvalidRequest, SchemaMismatch
from tablewright.spark import writer
from tablewright.spark.options import write_options
from tablewright.spark.writer import TableWriter, WrittenPart

FRAME = StructType().add("vector", ArrayType(FloatType())).add("id", LongType())


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "QUIET_SECONDS", 0.0)


@pytest.fixture
def table(tmp_path: Path) -> str:
    data = pa.table({"id": pa.array([0], pa.int64()), "vector": pa.array([[0.0, 0.0]], pa.list_(pa.float32(), 2))})
    tw.write_dataset(data, tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def rows(*ids: int) -> pa.RecordBatch:
    """Rows as Spark brings them: in its types, under its own names."""
    return pa.record_batch(
        {"c0": pa.array([[float(id), 1.0] for id in ids], pa.list_(pa.float32())), "c1": pa.array(ids, pa.int64())}
    )


def made(table: str, mode: str = "append", struct: StructType = FRAME, **options: str) -> TableWriter:
    return pickle.loads(pickle.dumps(TableWriter(write_options({"path": table, **options}), struct, mode)))


def data_files(table: str) -> set[str]:
    return {path.name for path in Path(table, "data").glob("*")}


def test_one_version_in_the_tables_types_and_the_order_of_partitions(table: str) -> None:
    write = made(table, commit_message="three parts")
    parts = [write.write(iter([rows(*ids)])) for ids in ((1, 2), (3,), ())]
    write.commit(pickle.loads(pickle.dumps(parts)))
    ds = tw.dataset(table)
    assert (ds.version, ds.to_table()["id"].to_pylist()) == (2, [0, 1, 2, 3])
    assert ds.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert len(ds.get_fragments()) == 2  # small files are joined
    assert len(data_files(table)) == 2
    assert ds.read_transaction(2).transaction_properties["__lance_commit_message"] == "three parts"


def test_overwriting_keeps_types_that_spark_has_no_word_for(table: str) -> None:
    write = made(table, "overwrite")
    write.commit([write.write(iter([rows(7)]))])
    ds = tw.dataset(table)
    assert (ds.version, ds.to_table().to_pydict()) == (2, {"vector": [[7.0, 1.0]], "id": [7]})
    assert ds.schema.field("vector").type == pa.list_(pa.float32(), 2)


def test_overwriting_with_other_types(table: str) -> None:
    write = made(table, "overwrite", StructType().add("id", StringType()))
    write.commit([write.write(iter([pa.record_batch({"c": ["a"]})]))])
    assert tw.dataset(table).to_table().to_pydict() == {"id": ["a"]}


def test_a_new_table_takes_the_options_of_a_new_one(tmp_path: Path) -> None:
    path = str(tmp_path / "new.lance")
    write = made(path, stable_row_ids="true", data_storage_version="2.1", max_rows_per_file="2")
    write.commit([write.write(iter([rows(1, 2, 3)]))])
    ds = tw.dataset(path)
    assert (ds.has_stable_row_ids, ds.data_storage_version, ds.count_rows()) == (True, "2.1", 3)
    assert [fragment.count_rows() for fragment in ds.get_fragments()] == [2, 1]


def test_no_rows_are_a_version_too(table: str) -> None:
    write = made(table, "overwrite")
    write.commit([])
    assert (tw.dataset(table).version, tw.dataset(table).count_rows()) == (2, 0)


def test_what_does_not_fit_is_refused_before_anything_is_written(table: str) -> None:
    with pytest.raises(SchemaMismatch, match="id"):
        made(table, struct=StructType().add("id", StringType()).add("vector", ArrayType(FloatType())))
    write = made(table)
    bad = pa.record_batch({"c0": pa.array([[1.0]], pa.list_(pa.float32())), "c1": pa.array([1], pa.int64())})
    with pytest.raises(InvalidRequest, match="vector"):
        write.write(iter([rows(1), bad]))
    assert len(data_files(table)) == 1


def test_an_abort_removes_the_files_of_all_attempts(table: str) -> None:
    write = made(table)
    done = write.write(iter([rows(1)]))
    write.write(iter([rows(2)]))  # an attempt that Spark gave up: its answer is lost
    assert len(data_files(table)) == 3
    write.abort([done, None])
    assert len(data_files(table)) == 1
    assert tw.dataset(table).version == 1


def test_a_repeated_attempt_leaves_nothing_either(table: str) -> None:
    write = made(table)
    write.write(iter([rows(1)]))
    again = write.write(iter([rows(1)]))
    write.commit([WrittenPart(again.fragments, retried=True)])
    ds = tw.dataset(table)
    assert ds.to_table()["id"].to_pylist() == [0, 1]
    assert len(data_files(table)) == 2
    ds.validate()


def test_a_commit_that_fails_removes_its_files(table: str) -> None:
    write = made(table)
    parts = [write.write(iter([rows(1)]))]
    tw.dataset(table).drop_columns(["vector"])
    with pytest.raises(SchemaMismatch):
        write.commit(parts)
    write.abort(parts)
    assert len(data_files(table)) == 1
    assert tw.dataset(table).version == 2


def test_an_abort_after_an_unknown_commit_keeps_the_files(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version may exist."""
    write = made(table)
    parts = [write.write(iter([rows(1)]))]
    commit: Callable[..., Any] = writer.commit_parts

    def lost(*arguments: Any) -> Any:
        commit(*arguments)
        raise CommitUnknown(table, 2, "uuid", "the reply was lost")

    monkeypatch.setattr(writer, "commit_parts", lost)
    with pytest.raises(CommitUnknown):
        write.commit(parts)
    write.abort(parts)
    ds = tw.dataset(table)
    assert ds.to_table()["id"].to_pylist() == [0, 1]
    ds.validate()


def test_other_writers_meanwhile(table: str) -> None:
    """Rows appended, and a column cast: both stand, and our rows come in the new type."""
    write = made(table)
    parts = [write.write(iter([rows(1)]))]
    ds = tw.dataset(table)
    ds.insert([{"id": 5, "vector": [5.0, 5.0]}])
    ds.alter_columns({"path": "vector", "data_type": pa.list_(pa.float64(), 2)})
    write.commit(parts)
    assert tw.dataset(table).to_table().to_pydict() == {"id": [0, 5, 1], "vector": [[0, 0], [5, 5], [1, 1]]}
