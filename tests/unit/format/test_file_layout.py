"""Which ids Lance lists in a data file of each version, and what such a file can't hold: asked of Lance itself."""

from __future__ import annotations

import decimal
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.format.file_layout import FILE_VERSIONS
from tablewright.format.proto import table_pb2
from tablewright.format.schema import Schema, check_file_version, file_columns, schema_from_proto, schema_to_proto

STRUCT = pa.struct({"a": pa.int32(), "b": pa.int32()})
ROW = {"a": 1, "b": 2}


def packed(arrow: pa.DataType, spelling: str = "true", key: str = "packed") -> pa.Field:
    return pa.field("c", arrow, metadata={key: spelling})


FITS: dict[str, tuple[pa.Field | pa.DataType, Any, tuple[str, ...]]] = {
    # name: (type or field, value, versions that hold it)
    "int": (pa.int64(), 1, FILE_VERSIONS),
    "null": (pa.null(), None, FILE_VERSIONS),
    "text": (pa.large_string(), "x", FILE_VERSIONS),
    "decimal": (pa.decimal256(50, 2), decimal.Decimal("1.50"), FILE_VERSIONS),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "x", FILE_VERSIONS),
    "vector": (pa.list_(pa.float32(), 2), [1.0, 2.0], FILE_VERSIONS),
    "vector of vectors": (pa.list_(pa.list_(pa.float32(), 2), 1), [[1.0, 2.0]], FILE_VERSIONS),
    "vector of bool": (pa.list_(pa.bool_(), 2), [True, False], FILE_VERSIONS),
    "struct": (STRUCT, ROW, FILE_VERSIONS),
    "struct of structs": (pa.struct({"p": STRUCT, "q": pa.string()}), {"p": ROW, "q": "x"}, FILE_VERSIONS),
    "list": (pa.list_(pa.int32()), [1], FILE_VERSIONS),
    "list of structs": (pa.list_(STRUCT), [ROW], FILE_VERSIONS),
    "list of lists": (pa.large_list(pa.list_(pa.int8())), [[1]], FILE_VERSIONS),
    "list of vectors": (pa.list_(pa.list_(pa.float32(), 2)), [[1.0, 2.0]], FILE_VERSIONS),
    "map": (pa.map_(pa.string(), pa.list_(pa.int8())), [("a", [1])], ("2.2", "2.3")),
    "list of maps": (pa.list_(pa.map_(pa.string(), STRUCT)), [[("a", ROW)]], ("2.2", "2.3")),
    "packed": (packed(STRUCT), ROW, FILE_VERSIONS),
    "packed, new key": (packed(STRUCT, "TRUE", "lance-encoding:packed"), ROW, FILE_VERSIONS),
    "packed says no": (packed(STRUCT, "false"), ROW, FILE_VERSIONS),
    "packed on a number": (packed(pa.int64()), 1, FILE_VERSIONS),
    "packed says 1": (packed(STRUCT, "1"), ROW, ()),
    "packed says on": (packed(STRUCT, "on"), ROW, ()),
    "packed list": (packed(pa.list_(pa.int8())), [1], ()),
    "packed text": (packed(pa.struct({"a": pa.string()})), {"a": "x"}, ("2.2", "2.3")),
    "packed bool": (packed(pa.struct({"a": pa.bool_(), "b": pa.int8()})), {"a": True, "b": 1}, ()),
    "packed null": (packed(pa.struct({"a": pa.null(), "b": pa.int8()})), {"a": None, "b": 1}, ()),
    "packed list below": (packed(pa.struct({"a": pa.list_(pa.int8())})), {"a": [1]}, ()),
    "packed dictionary": (packed(pa.struct({"a": pa.dictionary(pa.int8(), pa.string())})), {"a": "x"}, ()),
    "packed vector": (packed(pa.struct({"a": pa.list_(pa.int8(), 2)})), {"a": [1, 2]}, ("2.0", "2.2", "2.3")),
    "packed bits": (packed(pa.struct({"a": pa.list_(pa.bool_(), 2)})), {"a": [True, False]}, ()),
    "packed struct below": (packed(pa.struct({"a": STRUCT, "b": pa.int8()})), {"a": ROW, "b": 1}, ("2.3",)),
    "packed empty": (packed(pa.struct([])), {}, ()),
    "packed in list": (pa.list_(pa.field("item", STRUCT, metadata={"packed": "true"})), [ROW], FILE_VERSIONS),
    "empty struct": (pa.struct([]), {}, ("2.0",)),
    "empty struct in list": (pa.list_(pa.struct([])), [{}], ("2.0",)),
    "empty struct in struct": (pa.struct({"e": pa.struct([]), "a": pa.int8()}), {"e": {}, "a": 1}, ("2.0",)),
    "fixed list of structs": (pa.list_(STRUCT, 2), [ROW, ROW], ()),
    "fixed list of text": (pa.list_(pa.string(), 2), ["a", "b"], ()),
    "fixed list of dictionary": (pa.list_(pa.dictionary(pa.int8(), pa.string()), 2), ["a", "b"], ()),
    "no bytes": (pa.binary(0), b"", ("2.2",)),
}
BESIDE = pa.field("z", pa.int64())


def table_with(kind: pa.Field | pa.DataType, value: Any) -> pa.Table:
    field = kind if isinstance(kind, pa.Field) else pa.field("c", kind)
    return pa.table([pa.array([value] * 3, field.type), pa.array([7, 8, 9])], schema=pa.schema([field, BESIDE]))


def manifest_of(table: Path) -> Any:
    data = min((table / "_versions").glob("*.manifest")).read_bytes()
    (at,) = struct.unpack("<q", data[-16:-8])
    return table_pb2.Manifest.FromString(data[at + 4 : len(data) - 16])


@pytest.mark.parametrize("version", FILE_VERSIONS)
@pytest.mark.parametrize("name", [name for name, (_, _, versions) in FITS.items() if versions])
def test_columns_are_those_that_lance_lists(name: str, version: str, tmp_path: Path) -> None:
    kind, value, versions = FITS[name]
    table = table_with(kind, value)
    schema = Schema.from_arrow(table.schema)
    assert (check_file_version(schema, version) == ()) == (version in versions)
    if version not in versions:
        return
    theirs = lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    manifest = manifest_of(tmp_path / "t")
    file = manifest.fragments[0].files[0]
    assert file_columns(schema, version) == (tuple(file.fields), tuple(file.column_indices))
    stored = schema_from_proto(manifest.fields, {}, "m")
    assert schema_to_proto(stored) == list(manifest.fields)
    assert [replace(node, dictionary=None) for node in stored.fields] == list(schema.fields)
    assert theirs.to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("packed says 1", "2.2"),
        ("packed list", "2.2"),
        ("packed bool", "2.2"),
        ("packed text", "2.1"),
        ("packed vector", "2.1"),
        ("packed struct below", "2.2"),
        ("empty struct", "2.1"),
        ("empty struct", "2.2"),
        ("empty struct in list", "2.2"),
        ("fixed list of structs", "2.2"),
        ("fixed list of structs", "2.3"),
        ("map", "2.1"),
        ("no bytes", "2.1"),
    ],
)
def test_what_we_refuse_lance_can_not_read_back(name: str, version: str, tmp_path: Path) -> None:
    table = table_with(*FITS[name][:2])
    problems = check_file_version(Schema.from_arrow(table.schema), version)
    assert len(problems) == 1
    assert "`c" in problems[0]
    try:
        read = lance.write_dataset(table, tmp_path / "t", data_storage_version=version).to_table().to_pylist()
    except BaseException as error:  # its panics are no exceptions
        read = [{"error": error}]
    assert read != table.to_pylist(), "Lance has learned this: drop the limit"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_an_empty_struct_may_come_last(version: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "s": pa.array([{}, {}], pa.struct([]))})
    assert check_file_version(Schema.from_arrow(table.schema), version) == ()
    assert file_columns(Schema.from_arrow(table.schema), version) == ((0, 1), (0, 1))
    theirs = lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    assert theirs.to_table().to_pylist() == table.to_pylist()


def test_blobs_are_read_but_written_only_in_the_old_layout(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    arrow = pa.schema([blob, BESIDE])
    schema = Schema.from_arrow(arrow)
    assert check_file_version(schema, "2.1") == ()
    assert len(check_file_version(schema, "2.2")) == 1

    rows = pa.table([pa.array([b"abc"], pa.large_binary()), [1]], schema=arrow)
    lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2")
    manifest = manifest_of(tmp_path / "t")
    stored = schema_from_proto(manifest.fields, {}, "m")
    file = manifest.fragments[0].files[0]
    assert file_columns(stored, "2.2") == (tuple(file.fields), tuple(file.column_indices))
    assert len(check_file_version(stored, "2.2")) == 1


def test_reserved_names_and_versions() -> None:
    arrow = pa.schema({"_rowid": pa.uint64(), "id": pa.int64(), "s": pa.struct({"_rowaddr": pa.int8()})})
    assert check_file_version(Schema.from_arrow(arrow), "2.2") == (
        "The column _rowid is a reserved name and cannot be used in a Lance dataset",
    )
    for version in ("1.0", "2", "3.0", ""):
        with pytest.raises(InvalidRequest, match="Unknown data storage version"):
            file_columns(Schema(), version)
    assert file_columns(Schema(), "2.2") == ((), ())
