"""Arrow types that Spark takes, and the way there and back.

Spark knows fewer types than a Lance table, and gives back others than it got. So a table keeps its own Arrow schema;
rows are cast to the *Spark-safe* schema where they enter Spark, and to the table's where they leave it.

====================================  ==========================================  =============================
in the table                          in Spark                                    what is lost
====================================  ==========================================  =============================
fixed_size_list, large_list           array                                       the fixed size, until written
uint8, uint16, uint32                 smallint, int, bigint                       nothing
uint64                                decimal(20, 0)                              nothing
float16                               float                                       nothing
dictionary<values>                    its values                                  the encoding
string_view, binary_view              string, binary                              nothing
large_string, large_binary            string, binary                              nothing
fixed_size_binary                     binary                                      the width, until written
timestamp[s, ms, ns] with a zone      timestamp (microseconds, UTC)               the zone, until written
timestamp[s, ms, ns] without          timestamp_ntz (microseconds)                nothing
date64                                date                                        nothing: dates are whole days
time32, time64                        time                                        nothing
duration                              interval day to second (microseconds)       nothing
decimal32, decimal64, decimal256      decimal, if at most 38 digits               nothing
extension types (json …)              their storage                               the name
struct, list, map                     struct, array, map of such                  —
====================================  ==========================================  =============================

All else (decimals of more than 38 digits, calendar intervals, unions …) can't go to Spark; the error names the column.
So does the error for a value with digits below the microsecond, which Spark has not: nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.conform import conform
from tablewright.engine.spark.spark_types import arrow_of, spark_of
from tablewright.errors import InvalidRequest

__all__ = [
    "arrow_schema",
    "exchanged_schema",
    "frame_schema",
    "spark_schema",
    "spark_type",
    "struct_type",
    "to_spark",
]

DECIMAL_DIGITS_MAX = 38
_LEAVE_OUT = (
    "Spark holds times as 64 bits of whole microseconds, and dates as whole days. Leave the column out with "
    "columns=[…], or convert it on the way: columns={'t': \"arrow_cast(t, 'Int64')\"}, or "
    "columns={'t': \"date_trunc('microsecond', t)\"}."
)

# The leaves: a test, and the type that Spark takes instead.
_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (at.is_uint8, lambda _: pa.int16()),
    (at.is_uint16, lambda _: pa.int32()),
    (at.is_uint32, lambda _: pa.int64()),
    (at.is_uint64, lambda _: pa.decimal128(20, 0)),
    (at.is_float16, lambda _: pa.float32()),
    (at.is_string_view, lambda _: pa.string()),
    (at.is_binary_view, lambda _: pa.binary()),
    (at.is_fixed_size_binary, lambda _: pa.binary()),
    (at.is_timestamp, lambda type: pa.timestamp("us", "UTC" if at.is_timestamp(type) and type.tz else None)),
    (at.is_date64, lambda _: pa.date32()),
    (at.is_time, lambda _: pa.time64("ns")),
    (at.is_duration, lambda _: pa.duration("us")),
    (at.is_decimal, lambda type: pa.decimal128(type.precision, type.scale) if at.is_decimal(type) else type),
)
_AS_IT_IS = (
    at.is_boolean,
    at.is_signed_integer,
    at.is_float32,
    at.is_float64,
    at.is_string,
    at.is_large_string,
    at.is_binary,
    at.is_large_binary,
    at.is_date32,
    at.is_null,
)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The Spark-safe schema of a table's schema; nullability stays, metadata goes.

    >>> spark_schema(pa.schema({"id": pa.uint32(), "vector": pa.list_(pa.float16(), 2)}))
    id: int64
    vector: list<item: float>
      child 0, item: float
    """
    return pa.schema([pa.field(field.name, spark_type(field.type, field.name), field.nullable) for field in schema])


def spark_type(type: pa.DataType, column: str) -> pa.DataType:
    """The type that Spark takes for ``type``; ``column`` is named where there is none."""
    if isinstance(type, pa.BaseExtensionType):
        return spark_type(type.storage_type, column)
    if at.is_dictionary(type):
        return spark_type(type.value_type, column)
    if at.is_list(type) or at.is_large_list(type) or at.is_fixed_size_list(type):
        return pa.list_(_child(type.value_field, column, "item"))
    if at.is_map(type):
        return pa.map_(_child(type.key_field, column, "key"), _child(type.item_field, column, "value"))
    if at.is_struct(type):
        return pa.struct([_child(field, column, field.name) for field in type])
    if at.is_decimal(type) and type.precision > DECIMAL_DIGITS_MAX:
        raise _cannot(column, type, f"Spark's decimals have at most {DECIMAL_DIGITS_MAX} digits")
    for matches, safe in _LEAVES:
        if matches(type):
            return safe(type)
    if any(matches(type) for matches in _AS_IT_IS):
        return type
    raise _cannot(column, type, "Spark has no such type")


def struct_type(schema: pa.Schema) -> Any:
    """Spark's ``StructType`` for a Spark-safe Arrow schema."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(each.name, spark_of(each.type, each.name), each.nullable) for each in schema])


def exchanged_schema(struct: Any) -> pa.Schema:
    """The Arrow schema that Spark expects from a data source for a ``StructType``: the same names, order and types."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        schema: pa.Schema = to_arrow_schema(struct, timezone="UTC")
    except TypeError:  # in 4.0 and 4.1 there is no other zone
        schema = to_arrow_schema(struct)
    return schema


def frame_schema(frame: Any) -> pa.Schema:
    """The Arrow schema of a Spark DataFrame, as a table would be made from it."""
    return arrow_schema(frame.schema)


def arrow_schema(struct: Any) -> pa.Schema:
    """The Arrow schema of Spark's ``StructType``."""
    names = struct.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidRequest(f"The DataFrame has several columns named {', '.join(map(repr, twice))}: rename them.")
    return pa.schema(
        [pa.field(field.name, arrow_of(field.dataType, field.name), field.nullable) for field in struct.fields]
    )


def to_spark(batch: pa.RecordBatch, safe: pa.Schema) -> pa.RecordBatch:
    """The columns that the Spark-safe schema ``safe`` names, in its types; a value that Spark can't hold is refused.

    >>> batch = pa.record_batch({"b": pa.array([1, 2], pa.uint8()), "a": ["x", "y"]})
    >>> to_spark(batch, spark_schema(batch.schema)).schema.types
    [DataType(int16), DataType(string)]
    """
    if batch.schema.equals(safe):
        return batch
    # A batch without columns keeps its number of rows only through a struct.
    return conform(batch.select(safe.names), safe, _LEAVE_OUT) if len(safe) else batch.select([])


def _child(field: pa.Field, column: str, name: str) -> pa.Field:
    return pa.field(name, spark_type(field.type, f"{column}.{name}"), field.nullable)


def _cannot(column: str, type: pa.DataType, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"Column {column!r} of type {type} can't go to Spark: {why}. Leave it out with columns=[…], "
        f"or convert it on the way with columns={{{column!r}: 'CAST(… AS …)'}}."
    )
