"""The version of new data files in an existing table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.format.samples import manifest

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.flags import MIXED_FILE_VERSIONS
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.file_version import new_file_version

MIXED = {"reader_flags": MIXED_FILE_VERSIONS, "writer_flags": MIXED_FILE_VERSIONS}
BLOB_V2 = pa.field(
    "b",
    pa.struct(
        {
            "kind": pa.uint8(),
            "position": pa.uint64(),
            "size": pa.uint64(),
            "blob_id": pa.uint32(),
            "blob_uri": pa.string(),
        }
    ),
    metadata={"ARROW:extension:name": "lance.blob.v2"},
)


@pytest.mark.parametrize(
    ("stored", "asked", "flags", "expected"),
    [
        ("2.1", None, {}, "2.1"),
        ("2.1", "2.1", {}, "2.1"),
        ("2.1", "2.2", MIXED, "2.2"),
        ("2.1", None, MIXED, "2.1"),
    ],
)
def test_the_version_of_the_table_unless_it_mixes(
    stored: str, asked: str | None, flags: dict[str, Any], expected: str
) -> None:
    assert new_file_version(manifest(data_storage_version=stored, **flags), asked) == expected


def test_versions_are_not_mixed_for_the_first_time() -> None:
    with pytest.raises(UnsupportedFeature, match=r"data_storage_version='2\.2': the table's files are of version 2\.1"):
        new_file_version(manifest(data_storage_version="2.1"), "2.2")


def test_columns_that_the_version_can_not_hold() -> None:
    schema = Schema.from_arrow(pa.schema({"m": pa.map_(pa.string(), pa.int8())}))
    with pytest.raises(InvalidRequest, match=r"File version 2\.1 can't store these columns"):
        new_file_version(manifest(data_storage_version="2.1", schema=schema), None)


def test_blobs_need_newer_files() -> None:
    schema = Schema.from_arrow(pa.schema([BLOB_V2]))
    assert new_file_version(manifest(data_storage_version="2.1", schema=schema, **MIXED), None) == "2.2"
