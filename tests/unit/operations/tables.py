"""Versions of tables made of values alone: nothing is written, and nothing can be read."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.format.envelope import ManifestFile
from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import Manifest
from tablewright.format.roaring import encode_bitmap
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.hide import Hidden
from tablewright.snapshot.locate import VersionEntry
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.world import World

VERSION = 5
COLUMNS = pa.schema({"id": pa.int64(), "x": pa.int32(), "s": pa.string()})
DELETION = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=VERSION, id=1, num_deleted_rows=2)


def data_file(name: str, fields: Sequence[int], nbytes: int = 0) -> DataFile:
    """A file that holds some fields."""
    return DataFile(
        path=f"{name}.lance",
        fields=tuple(fields),
        column_indices=tuple(range(len(fields))),
        file_major_version=2,
        file_minor_version=2,
        file_size_bytes=nbytes,
    )


def fragment(id: int, rows: int, fields: Sequence[int] = (0, 1, 2), nbytes: int = 0) -> Fragment:
    """A fragment of one file."""
    return Fragment(id=id, files=(data_file(f"f{id}", fields, nbytes),), physical_rows=rows)


def snapshot(*fragments: Fragment, columns: pa.Schema = COLUMNS, indices: Sequence[IndexMetadata] = ()) -> Snapshot:
    """A version of a table with these fragments."""
    path = f"_versions/{VERSION}.manifest"
    manifest = Manifest(
        schema=Schema.from_arrow(columns),
        fragments=FragmentList.of(fragments),
        version=VERSION,
        max_fragment_id=max((each.id for each in fragments), default=None),
        indices=tuple(indices),
    )
    return Snapshot(
        world=World(store=open_store("memory://tables-of-values")),
        entry=VersionEntry(version=VERSION, path=path, v2=True, size=0, modified_ns=0),
        file=ManifestFile(manifest=manifest, transaction_bytes=None, path=path),
    )


def btree(field: int, covered: Sequence[int]) -> IndexMetadata:
    """A BTREE index on a field."""
    index = IndexMetadata(
        uuid=UUID(int=7),
        fields=(field,),
        name="id_idx",
        dataset_version=VERSION,
        details_type_url="/lance.table.BTreeIndexDetails",
    )
    return index.with_coverage(covered)


def rows(*offsets: int) -> bytes:
    """A serialised bitmap."""
    return encode_bitmap(FrozenBitMap(offsets))


def hidden(fragment_id: int, *offsets: int, all_gone: bool = False) -> Hidden:
    """Rows that were hidden."""
    return Hidden(fragment_id=fragment_id, offsets=rows(*offsets), deletion=None if all_gone else DELETION)
