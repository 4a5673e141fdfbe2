"""Small sound values that the tests of this room start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import Manifest
from tablewright.format.row_ids import RowIdSequence, VersionSequence, encode_row_ids, encode_versions
from tablewright.format.schema import Schema

PATH = "_versions/18446744073709551610.manifest"
VERSION = 5
FILE = DataFile(path="f.lance", fields=(0, 1), column_indices=(0, 1), file_major_version=2, file_minor_version=2)
DELETION = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=3, id=1 << 63, num_deleted_rows=4)
SCHEMA = Schema.from_arrow(pa.schema({"id": pa.int64(), "text": pa.string()}))


def fragment(fragment_id: int = 0, **changes: Any) -> Fragment:
    return replace(Fragment(id=fragment_id, files=(FILE,), physical_rows=10), **changes)


def stable_fragment(fragment_id: int = 0, **changes: Any) -> Fragment:
    versions = encode_versions(VersionSequence.constant(10, 1))
    row_ids = encode_row_ids(RowIdSequence.from_range(fragment_id * 10, fragment_id * 10 + 10))
    return fragment(
        fragment_id, **({"row_ids": row_ids, "created_at": versions, "last_updated_at": versions} | changes)
    )


def index(**changes: Any) -> IndexMetadata:
    entry = IndexMetadata(uuid=UUID(int=7), fields=(0,), name="id_idx", dataset_version=4)
    return replace(entry.with_coverage([0, 1]), **changes)


def manifest(*fragments: Fragment, **changes: Any) -> Manifest:
    found = fragments or (fragment(0), fragment(1))
    return replace(
        Manifest(
            schema=SCHEMA,
            fragments=FragmentList.of(found),
            version=VERSION,
            max_fragment_id=max(one.id for one in found),
        ),
        **changes,
    )
