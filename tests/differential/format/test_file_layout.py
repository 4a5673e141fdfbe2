"""Columns of data files: those that lance lists, and what it can't read back is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.unit.format.test_file_layout import BESIDE, FITS, table_with

from tablewright.format.file_layout import FILE_VERSIONS
from tablewright.format.proto import table_pb2
from tablewright.format.schema import Schema, check_file_version, file_columns, schema_from_proto, schema_to_proto


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
