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
timestamp[s, ms, ns] with a zone      timestamp (microseconds, UTC)               below microseconds; the zone
timestamp[s, ms, ns] without          timestamp_ntz (microseconds)                below microseconds
date64                                date                                        nothing: dates are whole days
time32, time64                        time                                        nothing
duration                              interval day to second (microseconds)       below microseconds
decimal32, decimal64, decimal256      decimal, if at most 38 digits               nothing
extension types (json …)              their storage                               the name
struct, list, map                     struct, array, map of such                  —
====================================  ==========================================  =============================

All else (decimals of more than 38 digits, calendar intervals, unions …) can't go to Spark; the error names the column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest

__all__ = ["cast_batch", "frame_schema", "spark_schema", "spark_type", "struct_type"]

DECIMAL_DIGITS_MAX = 38

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
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def frame_schema(frame: Any) -> pa.Schema:
    """The Arrow schema of a Spark DataFrame, as a table would be made from it."""
    return arrow_schema(frame.schema)


def arrow_schema(struct: Any) -> pa.Schema:
    """The Arrow schema of Spark's ``StructType``."""
    from pyspark.sql.types import VariantType

    names = struct.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidRequest(f"The DataFrame has several columns named {', '.join(map(repr, twice))}: rename them.")
    fields = []
    for field in struct.fields:
        if isinstance(field.dataType, VariantType):
            raise _cannot_write(field, "cast it, for example to string with to_json")
        fields.append(pa.field(field.name, _arrow_type(field), field.nullable))
    return pa.schema(fields)


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema, *, exact: bool) -> pa.RecordBatch:
    """The columns that ``schema`` names, in its order and types.

    ``exact`` refuses values that do not fit (rows on their way into a table); otherwise digits below Spark's
    microseconds are cut off (rows on their way into Spark).

    >>> batch = pa.record_batch({"b": [1, 2], "a": ["x", "y"]})
    >>> cast_batch(batch, pa.schema({"a": pa.string(), "b": pa.uint8()}), exact=True).to_pydict()
    {'a': ['x', 'y'], 'b': [1, 2]}
    """
    if batch.schema.equals(schema):
        return batch
    arrays = [_cast(batch.column(field.name), field, exact) for field in schema]
    # A batch without columns keeps its number of rows only through a struct.
    if not arrays:
        return batch.select([])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, field: pa.Field, exact: bool) -> pa.Array:
    if array.type.equals(field.type):
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if _has_fixed_size_lists(field.type) and not _has_all_values(array, field.type):
        return _cast(_padded(array, field.type), field, exact).slice(0, len(array))
    try:
        if isinstance(field.type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(field.type, array.cast(field.type.storage_type, safe=exact))
        return array.cast(field.type, safe=exact)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            f"Column {field.name!r} can't be written as {field.type}: {error}. Cast or clean the column first."
        ) from error


def _has_all_values(array: pa.Array, kind: pa.DataType) -> bool:
    """Whether no list is missing, as in most columns of vectors, or there is one at the end that is complete."""
    is_vector = at.is_fixed_size_list(kind) and not kind.value_type.num_fields
    if is_vector and not array.null_count:
        return True
    return bool(len(array)) and array[-1].as_py() == _sample(kind)


def _padded(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array with one complete row more: casting null lists, pyarrow looks at values after the last one."""
    return pa.concat_arrays([array, pa.array([_sample(kind)], array.type)])


def _sample(kind: pa.DataType) -> Any:
    """A value of a type with something in every list of it."""
    if isinstance(kind, pa.BaseExtensionType):
        return _sample(kind.storage_type)
    if at.is_fixed_size_list(kind):
        return [_sample(kind.value_type)] * kind.list_size
    if at.is_list(kind) or at.is_large_list(kind):
        return [_sample(kind.value_type)]
    if at.is_struct(kind):
        return {field.name: _sample(field.type) for field in kind}
    return None


def _has_fixed_size_lists(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_fixed_size_lists(kind.storage_type)
    return at.is_fixed_size_list(kind) or any(
        _has_fixed_size_lists(kind.field(index).type) for index in range(kind.num_fields)
    )


def _child(field: pa.Field, column: str, name: str) -> pa.Field:
    return pa.field(name, spark_type(field.type, f"{column}.{name}"), field.nullable)


def _arrow_type(field: Any) -> pa.DataType:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        # What Spark gives is Spark-safe already; this only gives the children of lists the name that Lance gives.
        return spark_type(to_arrow_type(field.dataType, timezone="UTC"), field.name)
    except PySparkException as error:
        raise _cannot_write(field, "cast it or leave it out") from error


def _cannot(column: str, type: pa.DataType, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"Column {column!r} of type {type} can't go to Spark: {why}. Leave it out with columns=[…], "
        f"or convert it on the way with columns={{{column!r}: 'CAST(… AS …)'}}."
    )


def _cannot_write(field: Any, advice: str) -> InvalidRequest:
    return InvalidRequest(f"Column {field.name!r} of type {field.dataType.simpleString()} can't be written: {advice}.")
