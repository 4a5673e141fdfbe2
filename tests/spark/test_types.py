"""Every Arrow type that a table holds goes through Spark and comes back as it was; what can't is refused by name.

The table of types: COLUMNS, value by value, through a DataFrame that our tasks made and through one that Spark made of
local rows, into a table, which pylance reads, and back into a DataFrame.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyspark.sql.types
import pytest
from tests.spark.helpers import frame_of, written_by_executors

import tablewright as tw
from tablewright.data.conform import conform
from tablewright.data.fit_types import adopt
from tablewright.engine.spark.frames import read_frame
from tablewright.engine.spark.inputs import incoming_schema
from tablewright.engine.spark.types import frame_schema, spark_schema, struct_type
from tablewright.errors import InvalidRequest, SchemaMismatch, UnsupportedFeature
from tablewright.storage import open_store
from tablewright.world import World

NOON = dt.time(12, 30, 15, 123_456)
DAY = dt.date(2024, 2, 29)

COLUMNS: dict[str, pa.Array] = {
    "bool": pa.array([True, None, False]),
    "int8": pa.array([-128, None, 127], pa.int8()),
    "int16": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
    "int32": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
    "int64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
    "uint8": pa.array([0, None, 255], pa.uint8()),
    "uint16": pa.array([0, None, 2**16 - 1], pa.uint16()),
    "uint32": pa.array([0, None, 2**32 - 1], pa.uint32()),
    "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "float16": pa.array(np.array([1.5, -0.0, 65504], np.float16)),
    "float32": pa.array([1.5, None, float("inf")], pa.float32()),
    "float64": pa.array([1.5, None, -1e300], pa.float64()),
    "string": pa.array(["ä", None, ""]),
    "large_string": pa.array(["ä", None, ""], pa.large_string()),
    "string_view": pa.array(["ä", None, "more than twelve bytes"], pa.string_view()),
    "binary": pa.array([b"\0", None, b""]),
    "large_binary": pa.array([b"\0", None, b""], pa.large_binary()),
    "binary_view": pa.array([b"\0", None, b"more than twelve bytes"], pa.binary_view()),
    "fixed_size_binary": pa.array([b"abcd", None, b"\0\0\0\0"], pa.binary(4)),
    "date32": pa.array([DAY, None, dt.date(1900, 1, 1)], pa.date32()),
    "date64": pa.array([DAY, None, dt.date(1900, 1, 1)], pa.date64()),
    "time32_s": pa.array([NOON.replace(microsecond=0), None, dt.time()], pa.time32("s")),
    "time32_ms": pa.array([NOON.replace(microsecond=123_000), None, dt.time()], pa.time32("ms")),
    "time64_us": pa.array([NOON, None, dt.time()], pa.time64("us")),
    "time64_ns": pa.array([NOON, None, dt.time()], pa.time64("ns")),
    "timestamp_s": pa.array([1, None, -1], pa.timestamp("s")),
    "timestamp_ms_utc": pa.array([1, None, -1], pa.timestamp("ms", "UTC")),
    "timestamp_us": pa.array([1, None, -1], pa.timestamp("us")),
    "timestamp_us_tokyo": pa.array([1, None, -1], pa.timestamp("us", "Asia/Tokyo")),
    "timestamp_ns_utc": pa.array([1_000, None, -1_000], pa.timestamp("ns", "UTC")),
    "duration_s": pa.array([1, None, -1], pa.duration("s")),
    "duration_us": pa.array([1, None, -1], pa.duration("us")),
    "duration_ns": pa.array([1_000, None, -1_000], pa.duration("ns")),
    "decimal128": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(38, 2)),
    "decimal32": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal32(6, 2)),
    "decimal256": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal256(38, 2)),
    "null": pa.nulls(3),
    "dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
    "dictionary_int8": pa.array(["a", None, "b"]).cast(pa.dictionary(pa.int8(), pa.string())),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "large_list": pa.array([["x"], None, []], pa.large_list(pa.string())),
    "list_of_text": pa.array([["x"], None, []]),
    "map_of_text": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
    "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "half_vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float16(), 2)),
    "uint8_vector": pa.array([[1, 255], None, [0, 4]], pa.list_(pa.uint8(), 2)),
    "vectors": pa.array([[[1.0, 2.0]], None, []], pa.list_(pa.list_(pa.float32(), 2))),
    "struct": pa.array(
        [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}],
        pa.struct({"a": pa.uint16(), "b": pa.struct({"c": pa.large_string()})}),
    ),
    "list_of_struct": pa.array(
        [[{"t": 1_000, "v": [1.0, 2.0]}], None, []],
        pa.list_(pa.struct({"t": pa.timestamp("ns", "UTC"), "v": pa.list_(pa.float32(), 2)})),
    ),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.uint8())),
    "uuid": pa.array([b"0123456789abcdef", None, b"\0" * 16], pa.uuid()),
    "json": pa.array(['{"a":1}', None, "[]"]).cast(pa.json_()),
}
HAS_TIMES = hasattr(pyspark.sql.types, "TimeType")
"""PySpark 4.0 has no type for times of the day."""

TABLE = pa.table({name: array for name, array in COLUMNS.items() if HAS_TIMES or not pa.types.is_time(array.type)})
NOT_STORED = {"binary_view", "decimal32", "string_view"}
"""What Lance has no type for, or stores as another one."""


def read(columns: pa.Table, world: World) -> Iterator[pa.RecordBatch]:
    yield from columns.to_batches()


def collect(batches: Iterator[pa.RecordBatch], world: World) -> pa.Table:
    return pa.Table.from_batches(batches)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world that workers reach; nothing is in it."""
    return World(open_store(tmp_path))


def test_every_type_there_and_back(spark: Any, world: World) -> None:
    frame = read_frame(spark, read, [TABLE], world, TABLE.schema)
    back = pa.concat_tables(written_by_executors(frame, collect, world, TABLE.schema))
    assert back.schema == TABLE.schema
    assert back.num_rows == 3
    different = [name for name in TABLE.column_names if not back[name].equals(TABLE[name])]
    assert not different


def test_every_type_has_its_values_in_spark(spark: Any, world: World) -> None:
    frame = read_frame(spark, read, [TABLE], world, TABLE.schema)
    assert frame.schema == struct_type(spark_schema(TABLE.schema))
    seen = frame.toArrow()
    expected = TABLE.cast(spark_schema(TABLE.schema))
    different = [name for name in seen.column_names if seen[name].to_pylist() != expected[name].to_pylist()]
    assert not different


def test_a_frames_schema_is_the_safe_one(spark: Any, world: World) -> None:
    frame = read_frame(spark, read, [TABLE], world, TABLE.schema)
    schema = frame_schema(frame)
    small = {"large_string": pa.string(), "large_binary": pa.binary()}
    for field in spark_schema(TABLE.schema):
        if field.name != "struct":  # it has a large_string inside
            assert schema.field(field.name).type == small.get(field.name, field.type)
    assert adopt(incoming_schema(frame), TABLE.schema) == TABLE.schema
    assert incoming_schema(frame, TABLE.schema) == TABLE.schema


def test_local_rows_become_a_frame_and_come_back(spark: Any, world: World) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Lima")
        frame = frame_of(TABLE, spark)
        back = pa.concat_tables(written_by_executors(frame, collect, world, TABLE.schema))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    different = [name for name in TABLE.column_names if back[name].to_pylist() != TABLE[name].to_pylist()]
    assert back.schema == TABLE.schema
    assert not different


def test_below_microseconds_is_refused(spark: Any, world: World) -> None:
    table = pa.table({"t": pa.array([1_000, 1_999], pa.timestamp("ns"))})
    frame = read_frame(spark, read, [table], world, table.schema)
    with pytest.raises(Exception, match=r'Cannot cast column "t".*1970-01-01 00:00:00.000001999 does not fit'):
        frame.toArrow()


@pytest.mark.parametrize("zone", ["UTC", "America/Lima"])
def test_every_type_into_a_table_and_back(spark: Any, tmp_path: Path, zone: str) -> None:
    stored = TABLE.select([name for name in TABLE.column_names if name not in NOT_STORED])
    uri, before = str(tmp_path / "t.lance"), spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        empty = tw.write_dataset(stored.schema.empty_table(), uri)
        tw.write_dataset(frame_of(stored, spark), empty, mode="append", engine="spark")  # DataFrame → table
        ds = tw.dataset(uri)
        once_more = ds.to_spark(spark)  # table → DataFrame
        tw.write_dataset(once_more, uri, mode="append", engine="spark")  # and again
        seen = ds.to_spark(spark).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    found = lance.dataset(uri).to_table()
    assert found.schema.types == stored.schema.types
    both = pa.concat_tables([stored, stored])
    assert [name for name in both.column_names if found[name].to_pylist() != both[name].to_pylist()] == []
    safe = stored.cast(spark_schema(stored.schema))
    assert [name for name in safe.column_names if seen[name].to_pylist() != safe[name].to_pylist()] == []


@pytest.mark.skipif(HAS_TIMES, reason="this PySpark has times of the day")
def test_times_of_the_day_are_refused_where_spark_has_none(spark: Any, world: World) -> None:
    table = pa.table({"t": COLUMNS["time64_us"]})
    with pytest.raises(UnsupportedFeature, match=r"Column 't' of type time64.*no TimeType"):
        read_frame(spark, read, [table], world, table.schema)


def test_the_remedy_for_nanoseconds_works(spark: Any, tmp_path: Path) -> None:
    ds = tw.write_dataset({"t": pa.array([1_999, None], pa.timestamp("ns"))}, str(tmp_path / "t.lance"))
    columns = {"n": "arrow_cast(t, 'Int64')", "t": "date_trunc('microsecond', t)"}
    seen = ds.to_spark(spark, columns=columns).toArrow()
    assert seen["n"].to_pylist() == [1_999, None]
    assert seen["t"].to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 0, 1), None]


def test_field_metadata_are_the_tables(spark: Any, tmp_path: Path) -> None:
    """Spark's columns bring none, and an append changes none; those of a schema that was given are kept."""
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"unit": "m"})], metadata={"made": "here"})
    frame = spark.sql("select 1 as x")
    ds = tw.write_dataset(frame, str(tmp_path / "t.lance"), schema=schema)
    tw.write_dataset(frame.withMetadata("x", {"unit": "km"}), ds, mode="append")
    found = lance.dataset(ds.uri).schema
    assert found.field("x").metadata == {b"unit": b"m"} and found.metadata == {b"made": b"here"}
    assert ds.to_spark(spark).schema["x"].metadata == {}


def test_naive_timestamps_do_not_shift_with_the_session_zone(spark: Any, world: World) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    table = pa.table({"n": pa.array([5], pa.timestamp("us")), "z": pa.array([5], pa.timestamp("us", "UTC"))})
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Lima")
        frame = read_frame(spark, read, [table], world, table.schema)
        assert pa.concat_tables(written_by_executors(frame, collect, world, table.schema)).equals(table)
        assert frame_schema(frame) == table.schema
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize(
    ("sql", "advice"),
    [
        ("parse_json('1')", "to_json"),
        ("make_ym_interval(1, 2)", "cast it or leave it out"),
        ("make_interval(1)", "cast it or leave it out"),
    ],
)
def test_what_a_table_cannot_hold_is_named(spark: Any, sql: str, advice: str) -> None:
    frame = spark.sql(f"select 1 as fine, {sql} as odd")
    with pytest.raises(InvalidRequest, match=f"Column 'odd' of type .* can't be written: .*{advice}"):
        frame_schema(frame)
    nested = spark.sql(f"select array(named_struct('in', {sql})) as odd")
    with pytest.raises(InvalidRequest, match=rf"Column 'odd\.item\.in' of type .* can't be written: .*{advice}"):
        frame_schema(nested)


def test_two_columns_of_one_name_are_refused(spark: Any) -> None:
    with pytest.raises(InvalidRequest, match="several columns named 'a'"):
        frame_schema(spark.sql("select 1 as a, 2 as b, 3 as a"))


def test_a_schema_that_is_asked_for_is_cast_to(spark: Any, world: World) -> None:
    frame = spark.sql("select 1L as n, array(1.5d, 2.5d) as v, 'x' as s")
    wanted = pa.schema({"s": pa.large_string(), "v": pa.list_(pa.float32(), 2), "n": pa.uint8()})
    assert incoming_schema(frame, wanted) == wanted
    back = pa.concat_tables(written_by_executors(frame, collect, world, wanted))
    assert back.to_pylist() == [{"s": "x", "v": [1.5, 2.5], "n": 1}]
    with pytest.raises(SchemaMismatch, match=r"missing=\['m'\], unexpected=\['n', 's', 'v'\]"):
        incoming_schema(frame, pa.schema({"m": pa.int8()}))
    with pytest.raises(SchemaMismatch, match=r"`v` should have type int8 but .* can't be cast"):
        incoming_schema(frame, pa.schema({"s": pa.string(), "v": pa.int8(), "n": pa.int64()}))


@pytest.mark.parametrize("kind", ["top", "struct", "list"])
def test_vectors_that_are_all_null(kind: str) -> None:
    """From Spark they come without any memory for their values, on which pyarrow's own cast crashes."""
    vector, target = pa.list_(pa.float32()), pa.list_(pa.float32(), 2)
    values, own, wanted = {
        "top": ([None], vector, target),
        "struct": ([{"v": None}], pa.struct({"v": vector}), pa.struct({"v": target})),
        "list": ([[None]], pa.list_(vector), pa.list_(target)),
    }[kind]
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, pa.schema({"v": own})) as writer:
        writer.write_batch(pa.record_batch([pa.array(values, own)], ["v"]))
    batch = pa.ipc.open_stream(stream.getvalue()).read_next_batch()
    assert conform(batch, pa.schema({"v": wanted})).column("v").to_pylist() == values
