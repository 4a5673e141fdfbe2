"""The forms of blob columns in a schema, the names of their objects, and their thresholds."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from tablewright.format.blobs import (
    Thresholds,
    as_bytes,
    as_descriptions,
    as_rows,
    prepared_blobs,
    sidecar_path,
    thresholds_of,
)
from tablewright.format.field import BLOB, Field
from tablewright.format.schema import Schema, file_columns

V1 = Field(id=1, name="v1", logical_type="large_binary", metadata={BLOB: b"false"})
V2 = Field(id=2, name="v2", logical_type="struct").with_metadata(
    {"ARROW:extension:name": b"lance.blob.v2", f"{BLOB}-inline-size-threshold": b"10"}
)
MEMBERS = (
    Field(id=3, name="data", logical_type="large_binary", parent_id=2),
    Field(id=4, name="uri", logical_type="string", parent_id=2),
)
TABLE = Schema(
    fields=(
        Field(id=0, name="id", logical_type="int64"),
        V1,
        V2,
        *MEMBERS,
        Field(id=5, name="last", logical_type="string"),
    )
)


def test_a_schema_without_blobs_stays_itself() -> None:
    plain = Schema.from_arrow(pa.schema({"id": pa.int64(), "b": pa.large_binary()}))
    assert as_descriptions(plain) is as_bytes(plain) is as_rows(plain) is plain


def test_descriptions() -> None:
    shown = as_descriptions(TABLE).to_arrow()
    assert shown.field("v1").type == pa.struct({"position": pa.uint64(), "size": pa.uint64()})
    assert [(field.name, field.nullable) for field in shown.field("v2").type] == [
        ("kind", False),
        ("position", False),
        ("size", False),
        ("blob_id", False),
        ("blob_uri", False),
    ]
    assert shown.field("v2").metadata == {BLOB.encode(): b"true", b"lance-encoding:packed": b"true"}
    assert as_descriptions(TABLE) is as_descriptions(TABLE)


def test_bytes_and_rows() -> None:
    shown = as_bytes(TABLE).to_arrow()
    assert shown.field("v1").type == shown.field("v2").type == pa.large_binary()
    assert shown.field("v2").metadata == {f"{BLOB}-inline-size-threshold".encode(): b"10"}
    rows = as_rows(TABLE)
    assert [node.name for node in prepared_blobs(rows)] == ["v2"]
    assert prepared_blobs(as_descriptions(TABLE)) == ()
    assert rows.to_arrow().field("v1").type == pa.large_binary()


def test_every_form_is_one_column_and_keeps_its_id() -> None:
    for schema in (TABLE, as_descriptions(TABLE), as_rows(TABLE)):
        for version in ("2.0", "2.2"):
            assert file_columns(schema, version)[0] == (0, 1, 2, 5)
        assert pickle.loads(pickle.dumps(schema)) == schema
        assert len({node.id for node in schema.fields}) == len(schema.fields)
    assert as_descriptions(TABLE).resolve("v1.size").id % 8 == as_descriptions(TABLE).resolve("v2.size").id % 8


def test_thresholds() -> None:
    assert thresholds_of(V2) == Thresholds(inline=10, dedicated=4 << 20, pack=1 << 30)
    assert thresholds_of(as_rows(TABLE).by_id(2)) == Thresholds(inline=10)
    assert thresholds_of(V1) == Thresholds()


@pytest.mark.parametrize(
    ("number", "name"), [(1, "1" + 31 * "0"), (2, "01" + 30 * "0"), (3, "11" + 30 * "0"), (2**32 - 1, 32 * "1")]
)
def test_sidecar_path(number: int, name: str) -> None:
    assert sidecar_path("data/ab.lance", number) == f"data/ab/{name}.blob"
