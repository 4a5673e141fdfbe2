"""DataFrames on their way into a table: which Arrow schema they bring.

Spark has no fixed-size lists, unsigned numbers or nanoseconds: a DataFrame has them in types that hold their values,
and these fit into the table's (:mod:`tablewright.data.fit_types`). Spark's "not null" says how a column was computed,
not what a table should refuse, so a table made from a DataFrame is nullable in all its columns and their children, as
Spark's own file writers do it. Columns take the types of a schema that the caller gives, if their names are the same.

Tests: tests/spark/test_types.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tablewright.data.fit_types import check_fits
from tablewright.engine.spark.types import frame_schema, spark_type
from tablewright.errors import InvalidRequest, SchemaMismatch

__all__ = ["incoming_schema", "is_same_to_spark", "stored_schema"]


def incoming_schema(frame: Any, wanted: pa.Schema | None = None) -> pa.Schema:
    """The schema of ``frame``, all of it nullable; or ``wanted``, if every column fits into it."""
    own = pa.schema([_nullable(field) for field in frame_schema(frame)])
    if wanted is None:
        return own
    missing, unexpected = sorted(set(wanted.names) - set(own.names)), sorted(set(own.names) - set(wanted.names))
    if missing or unexpected:
        raise SchemaMismatch((f"fields did not match, missing={missing}, unexpected={unexpected}",))
    check_fits(own, wanted)
    return wanted


def stored_schema(own: pa.Schema, table: pa.Schema | None) -> pa.Schema:
    """The columns of a DataFrame as a table stores them that they are to replace or to go into.

    All of them are nullable, and of the table's own types where these are the same to Spark.
    """
    known = {} if table is None else {field.name: field for field in table}
    return pa.schema([_stored(field, known.get(field.name)) for field in own])


def _stored(own: pa.Field, known: pa.Field | None) -> pa.Field:
    return known if known is not None and is_same_to_spark(known.type, own.type) else _nullable(own)


def is_same_to_spark(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether Spark has one type for both: a fixed-size vector and a list, for example.

    >>> is_same_to_spark(pa.list_(pa.float32(), 2), pa.list_(pa.float32())), is_same_to_spark(pa.int32(), pa.int64())
    (True, False)
    """
    try:
        return bool(_loose(spark_type(one, "")).equals(_loose(spark_type(other, ""))))
    except InvalidRequest:
        return False


def _nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _loose(field.type))


def _loose(type: pa.DataType) -> pa.DataType:
    """The type without what Spark does not keep faithfully: the nullability of children, and large offsets."""
    if pa.types.is_list(type):
        return pa.list_(pa.field("item", _loose(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(_loose(type.key_type), _loose(type.item_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(child.name, _loose(child.type)) for child in type])
    if pa.types.is_large_string(type):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(type) else type
