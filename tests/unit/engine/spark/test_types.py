"""engine/spark/types.py: the casts, without Spark. tests/spark/test_types.py sends every type through it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.engine.spark.types import spark_schema, spark_type, to_spark
from tablewright.errors import InvalidRequest

ITEM = pa.field("item", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("type", "safe"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.list_(pa.float32(), 128), pa.list_(pa.float32())),
        (pa.list_(pa.field("element", pa.uint32(), nullable=False), 2), pa.list_(ITEM)),
        (pa.large_list(pa.list_(pa.uint8(), 3)), pa.list_(pa.list_(pa.int16()))),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.large_string()),
        (pa.dictionary(pa.int8(), pa.uint8()), pa.int16()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us", "UTC")),
        (pa.time32("ms"), pa.time64("ns")),
        (pa.duration("s"), pa.duration("us")),
        (pa.date64(), pa.date32()),
        (pa.decimal256(38, 4), pa.decimal128(38, 4)),
        (pa.binary(16), pa.binary()),
        (pa.json_(), pa.string()),
        (pa.map_(pa.uint8(), pa.float16()), pa.map_(pa.int16(), pa.float32())),
        (pa.struct({"a": pa.struct({"b": pa.uint8()})}), pa.struct({"a": pa.struct({"b": pa.int16()})})),
    ],
    ids=str,
)
def test_the_safe_type(type: pa.DataType, safe: pa.DataType) -> None:
    assert spark_type(type, "c") == safe
    assert spark_type(safe, "c") == safe, "what is safe stays"


@pytest.mark.parametrize(
    ("type", "place"),
    [
        (pa.decimal256(50, 2), "'c'"),
        (pa.month_day_nano_interval(), "'c'"),
        (pa.list_(pa.struct({"x": pa.decimal256(39, 0)})), r"'c\.item\.x'"),
        (pa.dense_union([pa.field("a", pa.int8())]), "'c'"),
    ],
    ids=str,
)
def test_what_cannot_go_is_named(type: pa.DataType, place: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"Column {place} of type .* can't go to Spark.*columns="):
        spark_schema(pa.schema({"c": type}))


def test_nullability_stays_and_metadata_goes() -> None:
    schema = pa.schema([pa.field("a", pa.uint8(), nullable=False, metadata={"k": "v"})], metadata={"m": "n"})
    assert spark_schema(schema).equals(pa.schema([pa.field("a", pa.int16(), nullable=False)]), check_metadata=True)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns")], ids=str)
def test_nothing_below_microseconds_is_cut(kind: pa.DataType) -> None:
    whole = pa.record_batch({"t": pa.array([1_000, None, -1_000], kind)})
    assert to_spark(whole, spark_schema(whole.schema)).column("t").cast(pa.int64()).to_pylist() == [1, None, -1]
    finer = pa.record_batch({"t": pa.array([1_000, 1_001], kind)})
    with pytest.raises(InvalidRequest, match=r'Cannot cast column "t" .*does not fit\. Spark holds times as'):
        to_spark(finer, spark_schema(finer.schema))


def test_columns_are_found_by_name() -> None:
    batch = pa.record_batch({"b": [1], "extra": [0], "a": ["x"]})
    cast = to_spark(batch, pa.schema({"a": pa.string(), "b": pa.int64()}))
    assert cast.to_pydict() == {"a": ["x"], "b": [1]}


def test_a_batch_that_fits_is_not_touched() -> None:
    batch = pa.record_batch({"a": [1]})
    assert to_spark(batch, batch.schema) is batch


def test_no_columns_still_have_rows() -> None:
    assert to_spark(pa.record_batch({"a": [1, 2]}), pa.schema([])).num_rows == 2
