"""Schemas against Lance as the referee: nodes, ids, Arrow types, messages."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import lance
import lance.arrow
import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.proto import table_pb2
from tablewright.format.schema import (
    Schema,
    schema_from_proto,
    schema_to_proto,
)


def manifest_of(table: Path) -> Any:
    """The newest manifest that Lance wrote, as a message."""
    data = min((table / "_versions").glob("*.manifest")).read_bytes()
    (at,) = struct.unpack("<q", data[-16:-8])
    return table_pb2.Manifest.FromString(data[at + 4 : len(data) - 16])


def member(name: str, arrow: pa.DataType, nullable: bool = True, **metadata: str) -> pa.Field:
    return pa.field(name, arrow, nullable, metadata or None)


KEY, PLACE = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-primary-key:position"
CLUSTER = "lance-schema:unenforced-clustering-key"
MARKED = {"ARROW:extension:name": "ours.money", "ARROW:extension:metadata": '{"currency":"EUR"}', "unit": "cents"}

SCHEMAS: dict[str, pa.Schema] = {
    "numbers": pa.schema(
        {
            f"c{number}": arrow
            for number, arrow in enumerate(
                [
                    *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
                    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
                    *(pa.decimal128(10, -2), pa.decimal128(38, 38), pa.decimal256(50, 3)),
                ]
            )
        }
    ),
    "text": pa.schema(
        {
            "string": pa.string(),
            "large_string": pa.large_string(),
            "binary": pa.binary(),
            "large_binary": pa.large_binary(),
            "five": pa.binary(5),
        }
    ),
    "time": pa.schema(
        [
            ("date32", pa.date32()),
            ("date64", pa.date64()),
            *((f"time32{unit}", pa.time32(unit)) for unit in ("s", "ms")),
            *((f"time64{unit}", pa.time64(unit)) for unit in ("us", "ns")),
            *((f"duration{unit}", pa.duration(unit)) for unit in ("s", "ms", "us", "ns")),
            *((f"timestamp{unit}", pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
            ("utc", pa.timestamp("us", "UTC")),
            ("offset", pa.timestamp("ns", "+08:00")),
            ("zone", pa.timestamp("ms", "America/New_York")),
        ]
    ),
    "dictionaries": pa.schema(
        {
            "a": pa.dictionary(pa.int8(), pa.string()),
            "b": pa.dictionary(pa.uint64(), pa.large_binary()),
            "c": pa.dictionary(pa.int32(), pa.float64()),
            "ordered": pa.dictionary(pa.int16(), pa.int64(), ordered=True),
            "view": pa.dictionary(pa.int16(), pa.string_view()),
        }
    ),
    "views": pa.schema(
        {
            "text": pa.string_view(),
            "bytes": pa.binary_view(),
            "list": pa.list_(pa.string_view()),
            "struct": pa.struct({"a": pa.binary_view()}),
        }
    ),
    "nested": pa.schema(
        [
            member(
                "s",
                pa.struct(
                    [
                        member("a", pa.int32(), nullable=False),
                        member("b", pa.list_(pa.struct({"x": pa.int8(), "y": pa.string()}))),
                    ]
                ),
                nullable=False,
            ),
            ("ll", pa.large_list(pa.list_(pa.int32()))),
            ("lls", pa.large_list(pa.struct({"q": pa.int8()}))),
            ("named", pa.list_(pa.field("element", pa.int32(), nullable=False, metadata={"a": "b"}))),
            ("m", pa.map_(pa.string(), pa.struct({"a": pa.int8(), "b": pa.list_(pa.int8())}))),
            ("lm", pa.list_(pa.map_(pa.int8(), pa.int32()))),
            ("empty", pa.struct([])),
        ]
    ),
    "odd map names": pa.schema(
        {"m": pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int32(), nullable=False))}
    ),
    "fixed lists": pa.schema(
        {
            "vector": pa.list_(pa.float32(), 128),
            "nested": pa.list_(pa.list_(pa.float16(), 2), 3),
            "in list": pa.list_(pa.list_(pa.float32(), 2)),
            "stamp": pa.list_(pa.timestamp("us", "+01:00"), 2),
            "decimal": pa.list_(pa.decimal128(9, 2), 2),
            "bytes": pa.list_(pa.binary(3), 2),
            "not null": pa.list_(pa.field("x", pa.float32(), nullable=False, metadata={"k": "v"}), 2),
            "struct": pa.list_(pa.struct({"a": pa.int8()}), 2),
            "bfloat16": pa.list_(lance.arrow.BFloat16Type(), 4),
        }
    ),
    "extensions": pa.schema(
        [
            member("uuid", pa.uuid(), unit="none"),
            ("bool8", pa.bool8()),
            ("tensor", pa.fixed_shape_tensor(pa.float32(), [2, 2])),
            ("opaque", pa.opaque(pa.string(), "type", "vendor")),
            ("bfloat16", lance.arrow.BFloat16Type()),
            member("unregistered", pa.int64(), **MARKED),
            ("in list", pa.list_(pa.uuid())),
            ("in struct", pa.struct({"u": pa.uuid()})),
        ]
    ),
    "json": pa.schema(
        [
            ("json", pa.json_()),
            ("large", pa.json_(pa.large_string())),
            ("in list", pa.list_(pa.json_())),
            ("in struct", pa.struct({"j": pa.json_()})),
            member("marked", pa.string(), **{"ARROW:extension:name": "arrow.json", "k": "v"}),
            member("stored", pa.large_binary(), **{"ARROW:extension:name": "lance.json"}),
            member("no json", pa.int64(), **{"ARROW:extension:name": "lance.json"}),
        ]
    ),
    "keys": pa.schema(
        [
            member("a", pa.int8(), False, **{KEY: "true"}),
            member("b", pa.int8(), False, **{KEY: "YES", PLACE: "2"}),
            member("c", pa.int8(), False, **{KEY: "false", PLACE: "3"}),
            member("d", pa.int8(), False, **{KEY: "no"}),
            member("e", pa.int8(), False, **{KEY: "1", PLACE: "x"}),
            member("f", pa.int8(), False, **{CLUSTER: "true"}),
            member("g", pa.int8(), False, **{CLUSTER: "true", f"{CLUSTER}:position": "4"}),
            member("s", pa.struct([member("x", pa.int8(), False, **{KEY: "1"})]), nullable=False),
        ]
    ),
    "metadata": pa.schema(
        [member("packed", pa.struct({"a": pa.int8()}), packed="true"), member("ü 😀", pa.int8(), k="ü")],
        metadata={"schema": "wide", "ä": "ö"},
    ),
    "odd names": pa.schema({"": pa.int8(), "a`b": pa.int8(), "s": pa.struct({"x.y": pa.int8(), "": pa.int8()})}),
    "nothing": pa.schema([]),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_nodes_are_those_that_lance_writes(name: str, tmp_path: Path) -> None:
    arrow = SCHEMAS[name]
    theirs = lance.write_dataset([], tmp_path / "t", schema=arrow)
    manifest = manifest_of(tmp_path / "t")
    ours = Schema.from_arrow(arrow)

    assert schema_to_proto(ours) == list(manifest.fields)
    decoded = schema_from_proto(manifest.fields, manifest.schema_metadata, "m")
    assert decoded == ours
    for schema in (ours, decoded):
        assert schema.to_arrow().equals(theirs.schema, check_metadata=True)
        assert [f.type for f in schema.to_arrow()] == [f.type for f in theirs.schema]


@pytest.mark.parametrize("name", SCHEMAS)
def test_lance_opens_our_nodes_again_after_a_round_trip_through_arrow(name: str) -> None:
    once = Schema.from_arrow(SCHEMAS[name])
    again = Schema.from_arrow(once.to_arrow())
    assert again.to_arrow().equals(once.to_arrow(), check_metadata=True)
    assert pickle.loads(pickle.dumps(once)) == once


IMPOSSIBLE: dict[str, tuple[pa.Schema, str]] = {
    "interval": (pa.schema({"x": pa.month_day_nano_interval()}), "column `x`"),
    "list_view": (pa.schema({"x": pa.list_view(pa.int8())}), "column `x`"),
    "run ends": (pa.schema({"x": pa.run_end_encoded(pa.int32(), pa.int8())}), "column `x`"),
    "union in struct": (pa.schema({"s": pa.struct({"x": pa.dense_union([])})}), "column `s.x`"),
    "decimal32": (pa.schema({"x": pa.decimal32(5, 2)}), r"decimal128\(5, 2\)"),
    "dictionary of timestamps": (pa.schema({"x": pa.dictionary(pa.int8(), pa.timestamp("us"))}), "column `x`"),
    "dictionary of lists": (pa.schema({"x": pa.dictionary(pa.int8(), pa.list_(pa.int8()))}), "column `x`"),
    "dictionary of uuids": (pa.schema({"x": pa.dictionary(pa.int8(), pa.uuid())}), "column `x`"),
    "fixed list of lists": (pa.schema({"x": pa.list_(pa.list_(pa.int8()), 2)}), "column `x`"),
    "fixed list of maps": (pa.schema({"x": pa.list_(pa.map_(pa.int8(), pa.int8()), 2)}), "column `x`"),
    "fixed list of uuids": (pa.schema({"x": pa.list_(pa.uuid(), 2)}), "arrow.uuid"),
    "fixed list of none": (pa.schema({"x": pa.list_(pa.int8(), 0)}), "positive dimension"),
    "fixed lists of fixed lists of structs": (pa.schema({"x": pa.list_(pa.list_(pa.struct([]), 2), 2)}), "column `x`"),
    "sorted map": (pa.schema({"x": pa.map_(pa.int8(), pa.int8(), keys_sorted=True)}), "keys_sorted"),
    "dot": (pa.schema({"a.b": pa.int8()}), "Top level field a.b cannot contain `.`"),
    "twice": (pa.schema([("a", pa.int8()), ("a", pa.int8())]), 'Duplicate field name "a"'),
    "nullable key": (pa.schema([member("x", pa.int8(), **{KEY: "true"})]), "must not be nullable"),
    "key in a list": (
        pa.schema([member("x", pa.list_(member("item", pa.int8(), False, **{KEY: "true"})), False)]),
        "must not be in a list",
    ),
    "metadata value": (pa.schema([("x", pa.int8())], metadata={b"k": b"\xff"}), "not valid utf8"),
    "metadata key": (pa.schema([("x", pa.int8())], metadata={b"\xff": b"k"}), "not valid utf8"),
    "member's metadata": (
        pa.schema({"s": pa.struct([pa.field("x", pa.int8(), metadata={b"\xff": b"k"})])}),
        "Column `s.x`.*not valid utf8",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_lance_refuses_we_refuse_and_name_the_column(name: str, tmp_path: Path) -> None:
    arrow, words = IMPOSSIBLE[name]
    with pytest.raises(InvalidRequest, match=words):
        Schema.from_arrow(arrow)
    if name == "fixed list of uuids":
        return  # Lance makes the empty table, and refuses the first row
    with pytest.raises((OSError, ValueError, NotImplementedError)):
        lance.write_dataset([], tmp_path / "t", schema=arrow)
