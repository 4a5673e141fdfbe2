"""One node of a schema: facts that follow from its metadata, blobs and packed structs, messages."""

from __future__ import annotations

import pytest

from tablewright.format.field import (
    BLOB,
    EXTENSION_NAME,
    PRIMARY_KEY,
    Field,
    children_by_parent,
    field_from_proto,
    field_to_proto,
    is_blob,
    is_blob_v1,
    is_blob_v2,
    is_one_column,
    is_packed,
)


def node(logical_type: str = "int64", id: int = 0, parent_id: int = -1, **metadata: str) -> Field:
    spelled = {key.replace("__", ":"): value.encode() for key, value in metadata.items()}
    return Field(id=id, name="x", logical_type=logical_type, parent_id=parent_id).with_metadata(spelled)


@pytest.mark.parametrize(
    ("value", "position", "expected"),
    [
        (b"true", b"", (True, 0)),
        (b"YES", b"", (True, 0)),
        (b"no", b"", (False, 0)),
        (b"", b"3", (True, 3)),
        (b"", b"-1", (False, 0)),
        (b"", b"4294967296", (False, 0)),
        (b"", "٣".encode(), (False, 0)),
    ],
)
def test_keys_follow_from_metadata(value: bytes, position: bytes, expected: tuple[bool, int]) -> None:
    marked = node().with_metadata({PRIMARY_KEY: value, f"{PRIMARY_KEY}:position": position})
    assert (marked.unenforced_primary_key, marked.unenforced_primary_key_position) == expected
    assert marked.with_metadata({}) == node()


def test_an_extension_name_beside_the_metadata_counts() -> None:
    old = Field(id=0, name="x", logical_type="string", extension_name="a.b")
    assert old.arrow_metadata == {EXTENSION_NAME: b"a.b"}
    assert node().arrow_metadata == {}


@pytest.mark.parametrize(
    ("logical_type", "metadata", "packed", "first", "second"),
    [
        ("struct", {}, False, False, False),
        ("struct", {"packed": b"true"}, True, False, False),
        ("struct", {"lance-encoding:packed": b"ON"}, True, False, False),
        ("int64", {"packed": b"true"}, False, False, False),
        ("large_binary", {BLOB: b"anything"}, False, True, False),
        ("binary", {BLOB: b"true"}, False, False, False),
        ("struct", {EXTENSION_NAME: b"lance.blob.v2"}, False, False, True),
    ],
)
def test_structs_that_are_one_column(
    logical_type: str, metadata: dict[str, bytes], packed: bool, first: bool, second: bool
) -> None:
    marked = node(logical_type).with_metadata(metadata)
    assert (is_packed(marked), is_blob_v1(marked), is_blob_v2(marked)) == (packed, first, second)
    assert is_blob(marked) == (first or second)
    assert is_one_column(marked) == (packed or second)


def test_the_tree() -> None:
    top, child, other = node("struct", 0), node("int8", 1, 0), node("int8", 2)
    assert children_by_parent([top, child, other]) == {-1: (top, other), 0: (child,)}
    assert children_by_parent([]) == {-1: ()}


def test_messages_both_ways() -> None:
    full = Field(
        id=3,
        name="x",
        logical_type="dict:string:int8:false",
        parent_id=1,
        nullable=False,
        encoding=3,
        dictionary=(7, 9),
        unknown=bytes.fromhex("ba0603616263"),
    )
    assert field_from_proto(field_to_proto(full)) == full
    assert field_to_proto(node("string")).encoding == 2  # what Lance writes for the type
