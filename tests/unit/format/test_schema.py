"""The tree of fields by itself: nodes, ids, paths, projections. Against Lance as the referee: tests/differential."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.proto import schema_pb2
from tablewright.format.schema import (
    Field,
    Schema,
    problems_of_schema,
    schema_from_proto,
    schema_to_proto,
)

KEY, PLACE = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-primary-key:position"


def test_what_lance_accepts_although_it_can_not_keep_it_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="time zone '-'"):
        Schema.from_arrow(pa.schema({"x": pa.timestamp("us", "-")}))
    with pytest.raises(InvalidRequest, match='Duplicate field name "x" in struct `s`'):
        Schema.from_arrow(pa.schema({"s": pa.struct([("x", pa.int8()), ("x", pa.int8())])}))
    deep = pa.int8()
    for _ in range(70):
        deep = pa.list_(deep)
    with pytest.raises(InvalidRequest, match="nested deeper than 64"):
        Schema.from_arrow(pa.schema({"deep": deep}))


@pytest.mark.parametrize(
    "logical_type",
    [
        *("int128", "", "decimal:64:5:2", "decimal:128:x:2", "decimal:128:99:2", "timestamp:us", "timestamp:week:-"),
        *("dict:list:int8:false", "dict:string:string:false", "fixed_size_binary:-1", "fixed_size_list:float:0"),
        *("fixed_size_list:float:x", "fixed_size_list:", "fixed_size_list:" * 100, "variant", "list_view"),
        f"fixed_size_binary:{10**30}",
    ],
)
def test_an_unknown_type_is_unsupported_and_names_the_column(logical_type: str) -> None:
    messages = [
        schema_pb2.Field(name="s", id=0, parent_id=-1, logical_type="struct"),
        schema_pb2.Field(name="new", id=1, parent_id=0, logical_type=logical_type),
        schema_pb2.Field(name="id", id=2, parent_id=-1, logical_type="int64"),
    ]
    schema = schema_from_proto(messages, {}, "m")
    with pytest.raises(UnsupportedFeature, match=r"`s\.new`"):
        schema.to_arrow()
    assert schema.project_ids([2]).to_arrow() == pa.schema([pa.field("id", pa.int64(), nullable=False)])


def test_unknown_fields_and_old_facts_of_a_node_survive() -> None:
    message = schema_pb2.Field(
        kind=schema_pb2.Field.LEAF,
        name="x",
        parent_id=-1,
        logical_type="dict:string:int8:false",
        encoding=schema_pb2.Field.RLE,
        extension_name="ours.old",
        dictionary=schema_pb2.Field.DictionaryPlace(offset=7, length=9),
        unenforced_clustering_key=True,
    )
    message.MergeFromString(bytes.fromhex("ba0603616263") + bytes.fromhex("c00605"))  # fields 103 and 104
    schema = schema_from_proto([message], {"k": b"v"}, "m")
    assert schema.fields[0].unknown.hex() == "ba0603616263c00605"
    assert schema_to_proto(pickle.loads(pickle.dumps(schema))) == [message]
    assert schema.to_arrow().field("x").metadata == {b"ARROW:extension:name": b"ours.old"}
    assert schema.to_arrow().metadata == {b"k": b"v"}


def node(field_id: int, parent_id: int, name: str, logical_type: str = "int8") -> Field:
    return Field(id=field_id, parent_id=parent_id, name=name, logical_type=logical_type)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([node(0, -1, "a"), node(0, -1, "b")], "id 0 is used twice"),
        ([node(-3, -1, "a")], "has the id -3"),
        ([node(0, 5, "a")], "comes before its parent 5"),
        ([node(0, 0, "a")], "comes before its parent 0"),
        ([node(1, 0, "b"), node(0, -1, "a", "struct")], "comes before its parent 0"),
        ([node(0, -1, "a", "list")], "0 children instead of one"),
        ([node(0, -1, "a", "list"), node(1, 0, "x"), node(2, 0, "y")], "2 children instead of one"),
        ([node(0, -1, "a", "fixed_size_list:struct:3")], "0 children instead of one"),
        ([node(0, -1, "a", "map"), node(1, 0, "entries", "struct"), node(2, 1, "key")], "no entries"),
        ([node(0, -1, "a"), node(1, -1, "a")], "two columns have the same name"),
        ([node(at, at - 1, "a", "struct") for at in range(70)], "nested deeper"),
    ],
)
def test_a_broken_tree_is_corrupt(fields: list[Field], problem: str) -> None:
    schema = Schema(fields=tuple(fields))
    assert any(problem in text for text in problems_of_schema(schema))
    with pytest.raises(CorruptTable, match=r"_versions/1\.manifest.*" + problem):
        schema_from_proto(schema_to_proto(schema), {}, "_versions/1.manifest")


def test_nodes_out_of_order_are_put_in_order() -> None:
    mixed = Schema(fields=(node(4, -1, "s", "struct"), node(7, -1, "z"), node(9, 4, "x")))
    assert [field.id for field in schema_from_proto(schema_to_proto(mixed), {}, "m").fields] == [4, 9, 7]


@pytest.fixture
def tree() -> Schema:
    """0 id · 1 s{2 a, 3 b[4 item{5 x, 6 y}]} · 7 z"""
    return Schema.from_arrow(
        pa.schema(
            {
                "id": pa.int64(),
                "s": pa.struct({"a": pa.int8(), "b": pa.list_(pa.struct({"x": pa.int8(), "y.y": pa.int8()}))}),
                "z": pa.string(),
            }
        )
    )


def test_tree(tree: Schema) -> None:
    assert tree.names == ("id", "s", "z")
    assert [field.id for field in tree.top_level] == [0, 1, 7]
    assert [field.id for field in tree.children(1)] == [2, 3]
    assert tree.children(0) == ()
    assert tree.descendants(1) == (1, 2, 3, 4, 5, 6)
    assert tree.ancestors(6) == (1, 3, 4)
    assert tree.ancestors(0) == ()
    assert tree.has(7) and not tree.has(8)
    assert tree.max_field_id == 7
    assert Schema().max_field_id == -1
    with pytest.raises(KeyError):
        tree.by_id(8)
    assert tree.arrow_field(4) == pa.field("item", pa.struct({"x": pa.int8(), "y.y": pa.int8()}))
    assert [field.id for field in Schema.from_arrow(tree.to_arrow(), first_id=10).fields] == list(range(10, 18))


def test_ids_by_name(tree: Schema) -> None:
    assert tree.ids == {node.id for node in tree.fields}
    assert tree.column_ids(reversed(tree.names)) == tuple(node.id for node in tree.top_level)
    assert tree.node_ids(tree.names) == tree.descendants(*tree.column_ids(tree.names))
    assert [tree.node_ids([node.name]) for node in tree.top_level] == [tree.descendants(n.id) for n in tree.top_level]
    assert tree.column_ids(["none such"]) == tree.node_ids([]) == tree.descendants() == ()


def test_paths(tree: Schema) -> None:
    for field in tree.fields:
        assert tree.resolve(tree.path(field.id)) == field
    assert tree.path(6) == "s.b.item.`y.y`"
    assert tree.resolve("`s`.`b`").id == 3
    with pytest.raises(InvalidRequest, match=r"No field named s\.q\. Columns are: id, s, z\."):
        tree.resolve("s.q")
    with pytest.raises(InvalidRequest, match="No field named Z"):
        tree.resolve("Z")
    for path in ("", ".", "s.", ".s", "s..a", "`s", "s`", "`s`a", "s.`"):
        with pytest.raises(InvalidRequest, match="Invalid field path"):
            tree.resolve(path)
    names = pa.schema({"": pa.int8(), "a`b": pa.int8(), "s": pa.struct({"x.y": pa.int8(), "": pa.int8()})})
    odd = Schema.from_arrow(names)
    assert odd.resolve("a`b").name == "a`b"
    assert odd.resolve("").name == ""
    assert [odd.resolve(odd.path(field.id)).id for field in odd.fields] == [0, 1, 2, 3, 4]


def test_projection(tree: Schema) -> None:
    def kept(*ids: int) -> list[int]:
        return [field.id for field in tree.project_ids(ids).fields]

    assert kept(7, 0) == [0, 7]
    assert kept(5) == [1, 3, 4, 5]
    assert kept(1) == [1, 2, 3, 4, 5, 6]
    assert kept(1, 2) == [1, 2]
    assert kept(3, 2) == [1, 2, 3, 4, 5, 6]
    assert kept(99, -2) == []
    lookup = Schema.from_arrow(pa.schema({"m": pa.map_(pa.string(), pa.struct({"a": pa.int8(), "b": pa.int8()}))}))
    assert [field.name for field in lookup.project_ids([5]).fields] == ["m", "entries", "key", "value", "b"]
    assert lookup.project_ids([2]) == lookup
    assert tree.project_ids([5]).to_arrow() == pa.schema({"s": pa.struct({"b": pa.list_(pa.struct({"x": pa.int8()}))})})


def test_other_metadata_bring_other_facts() -> None:
    field = node(0, -1, "x").with_metadata({KEY: b"true", PLACE: b"2", "ARROW:extension:name": b"a.b"})
    assert (field.unenforced_primary_key, field.unenforced_primary_key_position, field.extension_name) == (
        True,
        2,
        "a.b",
    )
    assert field.with_metadata({}) == node(0, -1, "x")


def test_equal_bytes_give_one_schema_and_others_another() -> None:
    def read(name: str, metadata: dict[str, bytes]) -> Schema:
        made = Schema.from_arrow(pa.schema({name: pa.int64()}))
        return schema_from_proto(schema_to_proto(made), metadata, "here")

    first = read("kept", {"a": b"1"})
    assert read("kept", {"a": b"1"}) is first
    for other in (read("kept", {"a": b"2"}), read("kept", {}), read("other", {"a": b"1"})):
        assert other is not first and other != first
    assert read("kept", {"a": b"x" * (1 << 17)}) is not read("kept", {"a": b"x" * (1 << 17)}), "too large to be kept"
