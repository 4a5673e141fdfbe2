"""What PySpark 4.0 lacks, made of what it has: the same answers as with Spark's own."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tablewright.engine.spark import payload
from tablewright.engine.spark.spark_types import arrow_of, spark_of
from tablewright.engine.spark.versions import repartition_by_id, with_arrow_column
from tablewright.errors import UnsupportedFeature


def doubled(columns: Sequence[pa.Array]) -> pa.Array:
    return pa.array([None if value is None else 2 * value for value in columns[0].to_pylist()], pa.int64())


def test_a_column_from_python_with_and_without_arrow_udf(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions

    frame = spark.sql("select 7L as `a.b`, timestamp_ntz '2024-05-06 07:08:09' as t union all select null, null")
    expected = [(14, dt.datetime(2024, 5, 6, 7, 8, 9)), (None, None)]
    made = with_arrow_column(frame, ["a.b"], doubled, pa.int64(), "twice", ["t"])
    assert sorted(map(tuple, made.collect()), key=str, reverse=True) == sorted(expected, key=str, reverse=True)
    monkeypatch.delattr(functions, "arrow_udf", raising=False)
    again = with_arrow_column(frame, ["a.b"], doubled, pa.int64(), "twice", ["t"])
    assert again.schema == made.schema
    assert sorted(map(tuple, again.collect()), key=str, reverse=True) == sorted(expected, key=str, reverse=True)


class Older:
    """A DataFrame of PySpark 4.0."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        if name == "repartitionById":
            raise AttributeError(name)
        return getattr(self._frame, name)

    def __getitem__(self, name: str) -> Any:
        return self._frame[name]


def test_rows_with_one_number_are_together_without_repartition_by_id(spark: Any) -> None:
    from pyspark.sql.functions import spark_partition_id

    rows = Older(spark.range(100).selectExpr("cast(id % 7 as int) as n"))
    placed = repartition_by_id(rows, 5, "n").select("n", spark_partition_id().alias("p")).distinct().collect()
    assert len(placed) == 7


def test_every_payload_has_a_partition_without_repartition_by_id(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.functions import spark_partition_id

    class OlderSession:
        def createDataFrame(self, table: pa.Table) -> Any:
            return Older(spark.createDataFrame(table))

    monkeypatch.setattr(payload, "CARRIED_BYTES_MAX", 0)
    frame, carried = payload.distribute(OlderSession(), [b"x"] * 5)
    assert carried == ()
    assert len(frame.select(spark_partition_id()).distinct().collect()) == 5


def test_a_class_that_this_pyspark_lacks_is_named(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import types

    monkeypatch.delattr(types, "TimeType", raising=False)
    with pytest.raises(UnsupportedFeature, match=r"Column 's\.t' of type time64\[ns\].*no TimeType"):
        spark_of(pa.struct({"t": pa.time64("ns")}), "s")


def test_types_are_those_of_pyspark(spark: Any) -> None:
    """PySpark's own functions say the same."""
    from pyspark.sql.pandas.types import to_arrow_type

    has_zone = "timezone" in inspect.signature(to_arrow_type).parameters  # before 4.2 it is UTC anyway
    values = {
        "true": pa.bool_(),
        "1Y": pa.int8(),
        "1S": pa.int16(),
        "1": pa.int32(),
        "1L": pa.int64(),
        "1f": pa.float32(),
        "1d": pa.float64(),
        "'x'": pa.string(),
        "X'00'": pa.binary(),
        "date '2024-01-01'": pa.date32(),
        "current_timestamp()": pa.timestamp("us", "UTC"),
        "timestamp_ntz '2024-01-01'": pa.timestamp("us"),
        "interval '1 2:3:4' day to second": pa.duration("us"),
        "1.50": pa.decimal128(3, 2),
        "null": pa.null(),
        "array(1, null)": pa.list_(pa.int32()),
        "map('k', 1)": pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
        "struct(1 as p)": pa.struct([pa.field("p", pa.int32(), nullable=False)]),
    }
    struct = spark.sql(f"select {', '.join(values)}").schema
    for field, expected in zip(struct.fields, values.values(), strict=True):
        assert arrow_of(field.dataType, field.name) == expected
        assert to_arrow_type(field.dataType, **({"timezone": "UTC"} if has_zone else {})) == expected
        assert spark_of(expected, field.name) == field.dataType
