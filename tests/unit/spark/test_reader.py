"""Reading for the data source, without a session: partitions travel, batches have the types that Spark derives."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

import tablewright as tw
from tablewright.engine.spark.types import exchanged_schema
from tablewright.errors import SchemaMismatch
from tablewright.operations.scan import ScanOptions
from tablewright.spark import reader
from tablewright.spark.options import read_options
from tablewright.spark.reader import (
    TablePartition,
    TableReader,
    frame_type,
    rows_per_batch,
    scan_options,
    selected,
)

ROWS = 5000


@pytest.fixture
def table(tmp_path: Path) -> str:
    data = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "vector": pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2)),
            "text": pa.array([str(n) for n in range(ROWS)], pa.large_string()),
        }
    )
    tw.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=1000)
    return str(tmp_path / "t.lance")


def read(table: str, struct: StructType | None = None, **options: str) -> pa.Table:
    """What workers hand over to Spark."""
    given = read_options({"path": table, **options})
    pin, own = frame_type(given, None)
    wanted = own if struct is None else struct
    made = pickle.loads(pickle.dumps(TableReader(given, pin, wanted)))
    parts: list[TablePartition] = pickle.loads(pickle.dumps(made.partitions()))
    batches = [batch for part in parts for batch in made.read(part)]
    assert all(batch.schema.equals(exchanged_schema(wanted)) for batch in batches)
    return pa.Table.from_batches(batches, exchanged_schema(wanted))


def test_rows_in_types_that_spark_derives(table: str) -> None:
    rows = read(table)
    assert rows.num_rows == ROWS
    assert rows["id"].to_pylist() == list(range(ROWS))
    assert rows.schema.field("vector").type == pa.list_(pa.field("element", pa.float32()))
    assert rows.schema.field("text").type == pa.string()


def test_columns_filter_and_row_ids(table: str) -> None:
    rows = read(table, columns="text,id", filter="id >= 4998", with_row_id="true", with_row_address="true")
    assert rows.schema.names == ["text", "id", "_rowid", "_rowaddr"]
    assert rows["id"].to_pylist() == [4998, 4999]
    assert read(table, columns='{"double": "id * 2"}', filter="id = 7").to_pydict() == {"double": [14]}


def test_a_given_schema_chooses_columns_and_widens_numbers(table: str) -> None:
    struct = StructType().add("text", StringType()).add("id", LongType())
    rows = read(table, struct, filter="id < 2")
    assert rows.to_pydict() == {"text": ["0", "1"], "id": [0, 1]}
    assert rows.schema.field("id").type == pa.int64()
    assert read(table, struct, columns='{"id": "id + 1", "text": "text"}', filter="id < 1").to_pydict() == {
        "text": ["0"],
        "id": [1],
    }


def test_a_given_schema_that_does_not_fit_is_refused_with_all_problems(table: str) -> None:
    struct = StructType().add("id", StringType()).add("none", StringType()).add("text", StringType(), nullable=False)
    with pytest.raises(SchemaMismatch) as raised:
        read(table, struct)
    for problem in ("`id` can't be read as string", "`none` is no column", "`text` may be null"):
        assert problem in str(raised.value)


def test_numbers_are_not_narrowed() -> None:
    have = pa.schema({"id": pa.int64(), "x": pa.float64()})
    for wanted in ({"id": pa.int32()}, {"id": pa.float64()}, {"x": pa.float32()}, {"x": pa.int64()}):
        with pytest.raises(SchemaMismatch):
            selected(have, pa.schema(wanted))
    small = pa.schema({"id": pa.int16(), "x": pa.float32(), "u": pa.uint16()})
    assert selected(small, pa.schema({"id": pa.float64(), "x": pa.float64(), "u": pa.int64()})) == ["id", "x", "u"]


def test_partitions_follow_bytes_and_processors(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        given = read_options({"path": table})
        pin, struct = frame_type(given, None)
        return len(TableReader(given, pin, struct).partitions())

    assert count() == 1  # a small table is one
    monkeypatch.setattr(reader, "PARTITION_BYTES_MIN", 1)
    monkeypatch.setattr(reader, "default_threads", lambda: 2)
    assert count() == 2
    monkeypatch.setattr(reader, "PARTITION_BYTES", 1)
    assert count() == 5  # no fragment is cut


def test_a_table_without_rows(tmp_path: Path) -> None:
    tw.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "t.lance")
    assert read(str(tmp_path / "t.lance")).num_rows == 0


def test_batches_are_smaller_where_rows_are_wide(table: str) -> None:
    assert rows_per_batch(8 * ROWS, ROWS) == 65536
    assert rows_per_batch(10**6 * ROWS, ROWS) == 1024
    given = read_options({"path": table, "batch_size": "300"})
    pin, struct = frame_type(given, None)
    made = TableReader(given, pin, struct)
    sizes = [batch.num_rows for part in made.partitions() for batch in made.read(part)]
    assert max(sizes) == 300
    assert sum(sizes) == ROWS


def test_int_columns_have_sparks_int_type(table: str) -> None:
    assert frame_type(read_options({"path": table}), None)[1]["id"].dataType == IntegerType()


def test_an_index_leaves_out_what_it_knows(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table as small as this one a scan is cheaper, so the index is asked for."""

    def by_index(*arguments: Any) -> ScanOptions:
        return replace(scan_options(*arguments), use_scalar_index=True)

    monkeypatch.setattr(reader, "scan_options", by_index)
    tw.dataset(table).create_scalar_index("id", "BTREE")
    given = read_options({"path": table, "filter": "id = 4500"})
    pin, struct = frame_type(given, None)
    (part,) = TableReader(given, pin, struct).partitions()
    assert part.task.fragment_ids == [4]
    assert len(part.task.chosen[4].rows) == 1
    assert read(table, filter="id = 4500")["text"].to_pylist() == ["4500"]
