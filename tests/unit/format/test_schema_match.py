"""What may be appended to a table. Our answer beside Lance's: tests/differential."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablewright.format.schema import Schema, schema_differences


def value_of(arrow: pa.DataType) -> Any:
    if pa.types.is_struct(arrow):
        return {field.name: value_of(field.type) for field in arrow}
    if pa.types.is_map(arrow):
        return [(value_of(arrow.key_type), value_of(arrow.item_type))]
    if pa.types.is_fixed_size_list(arrow):
        return [value_of(arrow.value_type)] * arrow.list_size
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return [value_of(arrow.value_type)]
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_fixed_size_binary(arrow) or isinstance(arrow, pa.UuidType):
        return b"0123456789abcdef"
    is_text = pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    return "1" if is_text or pa.types.is_dictionary(arrow) or isinstance(arrow, pa.JsonType) else 1


def rows_of(schema: pa.Schema) -> pa.Table:
    return pa.table([pa.array([value_of(field.type)], field.type) for field in schema], schema=schema)


def columns(*fields: pa.Field, **metadata: str) -> pa.Schema:
    return pa.schema(fields, metadata=metadata or None)


def required(name: str, arrow: pa.DataType) -> pa.Field:
    return pa.field(name, arrow, nullable=False)


ID, NAME, X, Y = (
    pa.field("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("x", pa.int32()),
    pa.field("y", pa.int32()),
)


def one(arrow: pa.DataType, **metadata: str) -> pa.Schema:
    return pa.schema([pa.field("c", arrow, metadata=metadata or None)])


FITS: dict[str, tuple[pa.Schema, pa.Schema]] = {
    "same": (columns(ID, NAME), columns(ID, NAME)),
    "other order": (columns(ID, NAME), columns(NAME, ID)),
    "nullable column left out": (columns(ID, NAME), columns(NAME)),
    "looser": (columns(required("id", pa.int64())), columns(ID)),
    "stricter": (columns(ID), columns(required("id", pa.int64()))),
    "view": (columns(NAME), columns(pa.field("name", pa.string_view()))),
    "schema metadata": (columns(ID, a="b"), columns(ID, c="d")),
    "field metadata": (one(pa.int8(), a="b"), one(pa.int8(), c="d")),
    "packed not repeated": (one(pa.struct([X, Y]), packed="true"), one(pa.struct([X, Y]))),
    "struct in other order": (one(pa.struct([X, Y])), one(pa.struct([Y, X]))),
    "member left out": (one(pa.struct([X, Y])), one(pa.struct([Y]))),
    "member left out in list": (one(pa.list_(pa.struct([X, Y]))), one(pa.list_(pa.struct([X])))),
    "stricter item": (one(pa.list_(pa.int8())), one(pa.list_(required("item", pa.int8())))),
    "looser item": (one(pa.list_(required("item", pa.int8()))), one(pa.list_(pa.int8()))),
    "other vector item": (one(pa.list_(pa.float32(), 2)), one(pa.list_(required("x", pa.float32()), 2))),
    "stricter map": (
        one(pa.map_(pa.string(), pa.int8())),
        one(pa.map_(required("key", pa.string()), required("value", pa.int8()))),
    ),
}

DIFFERS: dict[str, tuple[pa.Schema, pa.Schema]] = {
    "required column left out": (columns(ID, required("name", pa.string())), columns(ID)),
    "unknown column": (columns(ID), columns(ID, NAME)),
    "both": (columns(ID, NAME), columns(ID, X)),
    "case": (columns(ID), columns(pa.field("ID", pa.int64()))),
    "narrower": (one(pa.int64()), one(pa.int32())),
    "wider": (one(pa.int32()), one(pa.int64())),
    "large text": (one(pa.string()), one(pa.large_string())),
    "small text": (one(pa.large_string()), one(pa.string())),
    "dictionary": (one(pa.string()), one(pa.dictionary(pa.int8(), pa.string()))),
    "no dictionary": (one(pa.dictionary(pa.int8(), pa.string())), one(pa.string())),
    "other index": (one(pa.dictionary(pa.int8(), pa.string())), one(pa.dictionary(pa.int16(), pa.string()))),
    "other unit": (one(pa.timestamp("us")), one(pa.timestamp("ns"))),
    "other zone": (one(pa.timestamp("us", "UTC")), one(pa.timestamp("us", "+00:00"))),
    "other decimal": (one(pa.decimal128(10, 2)), one(pa.decimal128(12, 2))),
    "null": (one(pa.string()), one(pa.null())),
    "large list": (one(pa.list_(pa.int8())), one(pa.large_list(pa.int8()))),
    "vector for list": (one(pa.list_(pa.int8())), one(pa.list_(pa.int8(), 2))),
    "other vector": (one(pa.list_(pa.float32(), 2)), one(pa.list_(pa.float32(), 3))),
    "required member left out": (one(pa.struct([X, required("y", pa.int32())])), one(pa.struct([X]))),
    "unknown member": (one(pa.struct([X])), one(pa.struct([X, Y]))),
    "other member": (one(pa.struct([X])), one(pa.struct([pa.field("x", pa.int64())]))),
    "other value in map": (one(pa.map_(pa.string(), pa.int32())), one(pa.map_(pa.string(), pa.int64()))),
    "several": (
        columns(ID, NAME, pa.field("s", pa.struct([X, Y]))),
        columns(
            pa.field("id", pa.int32()),
            pa.field("name", pa.int8()),
            pa.field("s", pa.struct({"x": pa.int64(), "zz": pa.int8()})),
        ),
    ),
    "json": (one(pa.string()), one(pa.json_())),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits(name: str) -> None:
    table, data = FITS[name]
    assert schema_differences(table, data) == ()
    assert schema_differences(Schema.from_arrow(table), data) == ()


@pytest.mark.parametrize("name", DIFFERS)
def test_every_difference_is_named(name: str) -> None:
    """Schemas as Arrow and as the table has them give the same words; pylance's are those of tests/differential."""
    table, data = DIFFERS[name]
    differences = schema_differences(table, data)
    assert differences and all("`" in words or "fields" in words for words in differences)
    assert schema_differences(Schema.from_arrow(table), data) == differences


def test_names_inside_lists_and_maps_mean_nothing_here() -> None:
    element = pa.field("element", pa.struct([X]))
    assert schema_differences(one(pa.list_(pa.struct([X, Y]))), one(pa.list_(element))) == ()
    keyed = pa.map_(required("k", pa.string()), pa.field("v", pa.int8()))
    assert schema_differences(one(pa.map_(pa.string(), pa.int8())), one(keyed)) == ()
    assert schema_differences(one(pa.list_(pa.int8())), one(pa.list_(pa.field("element", pa.int16())))) == (
        "`c` had mismatched children: `c.item` should have type int8 but type was int16",
    )
    assert schema_differences(one(pa.list_(pa.int8())), one(pa.int8())) == (
        "`c` should have type list but type was int8",
    )
