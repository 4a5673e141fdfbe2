"""Names of types in manifests. Every type: tests/property/test_schema_codecs.py."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.logical_types import (
    arrow_type_of,
    default_encoding,
    fixed_list_of_structs,
    is_list,
    logical_type_of,
)

LEAVES = {
    "null": pa.null(),
    "halffloat": pa.float16(),
    "double": pa.float64(),
    "date64:ms": pa.date64(),
    "time32:ms": pa.time32("ms"),
    "duration:ns": pa.duration("ns"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:s:+08:00": pa.timestamp("s", "+08:00"),
    "decimal:128:10:-2": pa.decimal128(10, -2),
    "decimal:256:50:3": pa.decimal256(50, 3),
    "fixed_size_binary:0": pa.binary(0),
    "dict:large_binary:uint64:false": pa.dictionary(pa.uint64(), pa.large_binary()),
    "fixed_size_list:float:128": pa.list_(pa.float32(), 128),
    "fixed_size_list:fixed_size_list:halffloat:2:3": pa.list_(pa.list_(pa.float16(), 2), 3),
}


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_both_ways(name: str) -> None:
    assert logical_type_of(LEAVES[name], "c") == name
    assert arrow_type_of(name, "c") == LEAVES[name]


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.struct({"a": pa.int8()}), "struct"),
        (pa.list_(pa.int8()), "list"),
        (pa.large_list(pa.struct({"a": pa.int8()})), "large_list.struct"),
        (pa.map_(pa.string(), pa.int8()), "map"),
        (pa.list_(pa.struct({"a": pa.int8()}), 2), "fixed_size_list:struct:2"),
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.dictionary(pa.int8(), pa.string_view(), ordered=True), "dict:string:int8:false"),
    ],
    ids=str,
)
def test_names_of_nested_types_and_views(arrow: pa.DataType, name: str) -> None:
    assert logical_type_of(arrow, "c") == name


@pytest.mark.parametrize(
    "arrow",
    [
        pa.month_day_nano_interval(),
        pa.list_view(pa.int8()),
        pa.decimal32(5, 2),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.list_(pa.struct({"a": pa.int8()}), 2), 2),
        pa.dictionary(pa.int8(), pa.timestamp("us")),
        pa.run_end_encoded(pa.int32(), pa.int8()),
    ],
    ids=str,
)
def test_types_without_a_name(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match="Unsupported data type: column `c` has type"):
        logical_type_of(arrow, "c")


def test_values_of_extension_types_in_fixed_size_lists() -> None:
    marked = pa.field("item", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    assert logical_type_of(pa.list_(marked, 3), "c") == "fixed_size_list:lance.bfloat16:3"
    with pytest.raises(InvalidRequest, match=r"can't hold values of the extension type arrow\.uuid"):
        logical_type_of(pa.list_(pa.uuid(), 2), "c")


@pytest.mark.parametrize(
    "name", ["", "int128", "decimal:128:99:2", "timestamp:us", "fixed_size_list:float:0", "struct"]
)
def test_names_of_no_leaf(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"logical type '{name}'"):
        arrow_type_of(name, "c")


def test_questions() -> None:
    assert [is_list(name) for name in ("list", "large_list.struct", "struct", "fixed_size_list:float:2")] == [
        True,
        True,
        False,
        False,
    ]
    assert [fixed_list_of_structs(f"fixed_size_list:{rest}") for rest in ("struct:7", "float:7", "struct:x")] == [
        7,
        None,
        None,
    ]
    names = ("null", "struct", "string", "json", "dict:string:int8:false", "int8", "list")
    assert [default_encoding(name) for name in names] == [0, 0, 2, 2, 3, 1, 1]
