"""Spark's types as Arrow's and back, the same on every PySpark from 4.0 on.

PySpark has such functions of its own, but not for others to call: their arguments and defaults change between minor
versions, and with 4.0's defaults a timestamp without a zone becomes one with the session's. Here the Arrow types are
those that Spark itself sends and takes (:func:`tablewright.engine.spark.types.spark_type`), and a type that one side
does not have is refused by name, wherever it is nested.

Tests: tests/spark/test_types.py, tests/spark/test_versions.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest, UnsupportedFeature

__all__ = ["arrow_of", "spark_of"]

_LEAVES: dict[str, pa.DataType] = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "CharType": pa.string(),
    "VarcharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "DayTimeIntervalType": pa.duration("us"),
    "TimeType": pa.time64("ns"),
    "NullType": pa.null(),
}
"""Spark's classes, and the type that a column of them has in Arrow."""

_CLASSES: dict[pa.DataType, str] = {
    **{kind: name for name, kind in reversed(_LEAVES.items())},
    pa.large_string(): "StringType",
    pa.large_binary(): "BinaryType",
}
"""The other way round; of several classes with one type, the first."""

_ADVICE = {"VariantType": "cast it, for example to string with to_json"}


def arrow_of(kind: Any, column: str) -> pa.DataType:
    """The Arrow type of a Spark type; :class:`InvalidRequest` names the ``column`` of one that a table can't hold."""
    name = type(kind).__name__
    if name == "DecimalType":
        return pa.decimal128(kind.precision, kind.scale)
    if name == "ArrayType":
        return pa.list_(pa.field("item", arrow_of(kind.elementType, f"{column}.item"), kind.containsNull))
    if name == "MapType":
        value = pa.field("value", arrow_of(kind.valueType, f"{column}.value"), kind.valueContainsNull)
        return pa.map_(arrow_of(kind.keyType, f"{column}.key"), value)
    if name == "StructType":
        return pa.struct(
            [pa.field(each.name, arrow_of(each.dataType, f"{column}.{each.name}"), each.nullable) for each in kind]
        )
    if name in _LEAVES:
        return _LEAVES[name]
    if hasattr(kind, "sqlType"):  # a type of the user's
        return arrow_of(kind.sqlType(), column)
    advice = _ADVICE.get(name, "cast it or leave it out")
    raise InvalidRequest(f"Column {column!r} of type {kind.simpleString()} can't be written: {advice}.")


def spark_of(kind: pa.DataType, column: str) -> Any:
    """The Spark type of a Spark-safe Arrow type; :class:`UnsupportedFeature` if this PySpark has none."""
    from pyspark.sql import types

    if at.is_decimal(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if at.is_list(kind):
        return types.ArrayType(spark_of(kind.value_type, f"{column}.item"), kind.value_field.nullable)
    if at.is_map(kind):
        key, value = spark_of(kind.key_type, f"{column}.key"), spark_of(kind.item_type, f"{column}.value")
        return types.MapType(key, value, kind.item_field.nullable)
    if at.is_struct(kind):
        return types.StructType(
            [types.StructField(each.name, spark_of(each.type, f"{column}.{each.name}"), each.nullable) for each in kind]
        )
    name = _CLASSES[kind]
    if not hasattr(types, name):
        raise UnsupportedFeature(
            f"Column {column!r} of type {kind} can't go to Spark: this PySpark has no {name}, later ones do. Leave it "
            f"out with columns=[…], or convert it on the way with columns={{{column!r}: 'CAST(… AS …)'}}."
        )
    return getattr(types, name)()
