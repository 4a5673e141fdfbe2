"""Any schema survives: Arrow, nodes, messages, bytes and back. Arbitrary bytes raise only our errors."""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable, TablewrightError
from tablewright.format.file_layout import FILE_VERSIONS
from tablewright.format.proto import table_pb2
from tablewright.format.schema import (
    Schema,
    check_file_version,
    file_columns,
    problems_of_schema,
    schema_differences,
    schema_from_proto,
    schema_to_proto,
)
from tablewright.format.wire import decode_message

UNITS = st.sampled_from(["s", "ms", "us", "ns"])
PLAIN = st.sampled_from(
    [
        *(pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s")),
        *(pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    ]
)
TEXT = st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
FIXED = st.one_of(
    PLAIN,
    st.builds(pa.duration, UNITS),
    st.builds(pa.timestamp, UNITS, st.sampled_from([None, "UTC", "+08:00", "America/New_York"])),
    st.integers(1, 38).flatmap(lambda p: st.builds(pa.decimal128, st.just(p), st.integers(-5, p))),
    st.integers(1, 76).flatmap(lambda p: st.builds(pa.decimal256, st.just(p), st.integers(0, p))),
    st.builds(pa.binary, st.integers(0, 40)),
)
DICTIONARY = st.builds(
    pa.dictionary,
    st.sampled_from([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()]),
    st.one_of(TEXT, st.sampled_from([pa.int64(), pa.float64(), pa.bool_()])),
)
FIXED_LIST = st.recursive(FIXED, lambda inner: st.builds(pa.list_, inner, st.integers(1, 2000)), max_leaves=3)
EXTENSION = st.sampled_from([pa.uuid(), pa.bool8(), pa.json_(), pa.opaque(pa.int64(), "type", "vendor")])
LEAF = st.one_of(FIXED, TEXT, DICTIONARY, FIXED_LIST, EXTENSION)

# Names may be nearly anything; Arrow passes them as C strings, and columns have no dots.
NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)
TAGS = st.dictionaries(NAMES.filter(lambda key: not key.startswith(("ARROW:", "lance", "packed"))), NAMES, max_size=2)


def field_of(name: str, arrow: pa.DataType, nullable: bool, metadata: dict[str, str] | None = None) -> pa.Field:
    return pa.field(name, arrow, nullable or arrow == pa.null(), metadata)


def members(types: st.SearchStrategy[pa.DataType], names: st.SearchStrategy[str]) -> st.SearchStrategy[list[pa.Field]]:
    field = st.builds(field_of, names, types, st.booleans(), st.one_of(st.none(), TAGS))
    return st.lists(field, max_size=4, unique_by=lambda member: member.name)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    item = st.builds(field_of, NAMES, inner, st.booleans())
    return st.one_of(
        st.builds(pa.struct, members(inner, NAMES)),
        st.builds(pa.list_, item),
        st.builds(pa.large_list, item),
        st.builds(pa.map_, TEXT, inner),
    )


TYPES = st.recursive(LEAF, nested, max_leaves=6)
SCHEMAS = st.builds(
    pa.schema,
    members(TYPES, NAMES.filter(lambda name: "." not in name)),
    metadata=st.one_of(st.none(), TAGS),
)


@given(SCHEMAS, st.integers(0, 1000))
def test_arrow_to_bytes_and_back(arrow: pa.Schema, first_id: int) -> None:
    schema = Schema.from_arrow(arrow, first_id)
    assert problems_of_schema(schema) == ()
    assert [node.id for node in schema.fields] == list(range(first_id, first_id + len(schema.fields)))

    manifest = table_pb2.Manifest(fields=schema_to_proto(schema), schema_metadata=dict(schema.metadata))
    parsed = table_pb2.Manifest.FromString(manifest.SerializeToString())
    decoded = schema_from_proto(parsed.fields, parsed.schema_metadata, "m")
    assert decoded == schema == pickle.loads(pickle.dumps(schema))
    assert schema_to_proto(decoded) == list(parsed.fields)

    shown = decoded.to_arrow()
    assert Schema.from_arrow(shown, first_id).to_arrow().equals(shown, check_metadata=True)
    assert shown.names == arrow.names
    assert schema_differences(schema, arrow) == ()


@given(SCHEMAS, st.data())
def test_the_tree_is_consistent(arrow: pa.Schema, data: st.DataObject) -> None:
    schema = Schema.from_arrow(arrow)
    for node in schema.fields:
        assert node.id in schema.descendants(node.id)
        assert all(node.id in schema.descendants(above) for above in schema.ancestors(node.id))
        assert schema.resolve(schema.path(node.id)) == node
        assert schema.arrow_field(node.id).name == node.name or node.name in ("key", "value", "entries")
    wanted = data.draw(st.sets(st.integers(-2, len(schema.fields) + 2)))
    projected = schema.project_ids(wanted)
    assert problems_of_schema(projected) == ()
    kept = {node.id for node in projected.fields}
    assert wanted & {node.id for node in schema.fields} <= kept
    assert projected.project_ids(kept) == projected
    projected.to_arrow()


@given(SCHEMAS, st.sampled_from(FILE_VERSIONS))
def test_file_columns_are_known_leaves(arrow: pa.Schema, version: str) -> None:
    schema = Schema.from_arrow(arrow)
    fields, indices = file_columns(schema, version)
    assert list(indices) == list(range(len(fields)))
    assert list(fields) == sorted(set(fields))
    assert all(schema.has(field_id) for field_id in fields)
    assert schema.project_ids(fields) == schema
    if version == "2.0":
        assert fields == tuple(node.id for node in schema.fields)
    else:
        assert fields == tuple(node.id for node in schema.fields if not schema.children(node.id))
    assert isinstance(check_file_version(schema, version), tuple)


@given(SCHEMAS, SCHEMAS)
def test_differences_are_about_all_columns(table: pa.Schema, data: pa.Schema) -> None:
    differences = schema_differences(table, data)
    unknown = [name for name in data.names if name not in table.names]
    if unknown:
        assert differences[0].startswith("fields did not match, missing=[")
    if not differences:
        assert set(data.names) <= set(table.names)


def try_schema(message: Any) -> None:
    try:
        schema = schema_from_proto(message.fields, message.schema_metadata, "m")
    except CorruptTable:
        return
    assert schema_to_proto(schema_from_proto(schema_to_proto(schema), schema.metadata, "m")) == schema_to_proto(schema)
    with contextlib.suppress(TablewrightError):
        schema.to_arrow()
    for version in FILE_VERSIONS:
        file_columns(schema, version)
        check_file_version(schema, version)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_our_errors(data: bytes) -> None:
    try:
        message = decode_message(table_pb2.Manifest, data, "m", "a manifest")
    except CorruptTable:
        return
    try_schema(message)


@given(SCHEMAS, st.data())
def test_damaged_bytes_raise_only_our_errors(arrow: pa.Schema, data: st.DataObject) -> None:
    stored = bytearray(table_pb2.Manifest(fields=schema_to_proto(Schema.from_arrow(arrow))).SerializeToString())
    for _ in range(data.draw(st.integers(1, 5))):
        if stored:
            stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = decode_message(table_pb2.Manifest, bytes(stored), "m", "a manifest")
    except CorruptTable:
        return
    try_schema(message)


LOGICAL = st.one_of(
    st.text(max_size=12),
    st.lists(
        st.sampled_from(
            [
                *("fixed_size_list", "fixed_size_binary", "decimal", "timestamp", "dict", "float", "struct", "list"),
                *("128", "256", "-1", "0", "2", "99999999999999999999", "us", "-", "int8", "false", "lance.bfloat16"),
            ]
        ),
        max_size=6,
    ).map(":".join),
)


@given(st.lists(st.tuples(LOGICAL, st.integers(-2, 4)), max_size=6))
def test_any_type_name_and_any_parent_raise_only_our_errors(nodes: list[tuple[str, int]]) -> None:
    message = table_pb2.Manifest()
    for number, (logical_type, parent) in enumerate(nodes):
        message.fields.add(id=number, parent_id=parent, name=f"c{number}", logical_type=logical_type)
    try_schema(message)
