"""DataFrames on their way into a table: which Arrow schema they bring.

Spark has no fixed-size lists, unsigned numbers or nanoseconds. So where a column's type in the table (or in the schema
that the caller gives) is one that Spark would hold as the column's own type, the table's type is meant.
Spark's "not null" says how a column was computed, not what a table should refuse, so a table made from a
DataFrame is nullable in all its columns and their children, as Spark's own file writers do it.
A schema that the caller gives is more than a hint: columns are cast to it, if their names are the same.

Tests: tests/spark/test_types.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tablewright.engine.spark.types import frame_schema, spark_type
from tablewright.errors import InvalidRequest, SchemaMismatch

__all__ = ["adopted_schema", "requested_schema"]


def adopted_schema(frame: Any, wanted: pa.Schema | None) -> pa.Schema:
    """The schema of ``frame`` with the types of ``wanted`` where Spark can't tell them apart."""
    own = frame_schema(frame)
    if wanted is None:
        return pa.schema([_nullable(field) for field in own])
    return pa.schema([_adopted(field, wanted) for field in own], metadata=wanted.metadata)


def requested_schema(frame: Any, wanted: pa.Schema) -> pa.Schema:
    """``wanted``, if every column of ``frame`` can be cast to it; otherwise an error that lists what can't."""
    own = frame_schema(frame)
    missing, unexpected = sorted(set(wanted.names) - set(own.names)), sorted(set(own.names) - set(wanted.names))
    if missing or unexpected:
        raise SchemaMismatch((f"fields did not match, missing={missing}, unexpected={unexpected}",))
    differences = tuple(
        f"`{field.name}` should have type {field.type} but {own.field(field.name).type} can't be cast to it"
        for field in wanted
        if not _castable(own.field(field.name).type, field.type)
    )
    if differences:
        raise SchemaMismatch(differences)
    return wanted


def _castable(own: pa.DataType, wanted: pa.DataType) -> bool:
    if isinstance(wanted, pa.BaseExtensionType):
        wanted = wanted.storage_type
    try:
        pa.nulls(0, own).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


def _adopted(field: pa.Field, wanted: pa.Schema) -> pa.Field:
    if field.name not in wanted.names:
        return _nullable(field)
    target = wanted.field(field.name)
    try:
        same = _loose(spark_type(target.type, field.name)).equals(_loose(spark_type(field.type, field.name)))
    except InvalidRequest:
        same = False
    return target if same else _nullable(field)


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
