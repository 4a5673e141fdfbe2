"""The parts of a manifest add up to its size."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pyarrow as pa

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.format.index import IndexMetadata, encode_index_section
from tablewright.format.manifest_sizes import ManifestSizes, sizes_of_manifest
from tablewright.snapshot.snapshot import Snapshot


def _sizes(ds: tw.LanceDataset) -> tuple[Snapshot, ManifestSizes]:
    snapshot = table_of(ds).snapshot
    return snapshot, sizes_of_manifest(snapshot.file, snapshot.entry.size)


def test_parts_add_up() -> None:
    ds = tw.write_dataset({"id": range(100)}, "memory://manifest-sizes", mode="overwrite", max_rows_per_file=10)
    ds.delete("id % 3 = 0")
    snapshot, sizes = _sizes(ds)
    assert sizes.total == snapshot.entry.size
    assert sizes.data_files > 10 * len("x.lance")
    assert sizes.deletion_files > 0
    assert sizes.row_ids == sizes.version_sequences == sizes.indices == 0
    assert sizes.transaction == len(snapshot.file.transaction_bytes or b"")
    assert 0 < sizes.other < 500


def test_row_ids_and_versions_have_their_own_parts() -> None:
    ds = tw.write_dataset(
        {"id": np.arange(1000)}, "memory://manifest-sizes-ids", mode="overwrite", enable_stable_row_ids=True
    )
    ds.update({"id": "id + 1"}, where="id % 7 = 0")
    snapshot, sizes = _sizes(ds)
    fragments = list(snapshot.fragments)
    assert sizes.row_ids == sum(len(fragment.row_ids or b"") for fragment in fragments)
    versions = sum(len(fragment.created_at or b"") + len(fragment.last_updated_at or b"") for fragment in fragments)
    assert sizes.version_sequences == versions
    assert sizes.fragments == sizes.data_files + sizes.deletion_files + sizes.row_ids + sizes.version_sequences
    assert sizes.total == snapshot.entry.size


def test_the_schema_counts_its_metadata() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"k": "v" * 50})], metadata={"note": "x" * 1000})
    ds = tw.write_dataset(pa.table({"id": [1]}, schema=schema), "memory://manifest-sizes-schema", mode="overwrite")
    assert 1050 < _sizes(ds)[1].schema < 1200


def test_indices_are_a_section() -> None:
    ds = tw.write_dataset({"id": [1, 2]}, "memory://manifest-sizes-index", mode="overwrite")
    snapshot = table_of(ds).snapshot
    index = IndexMetadata(uuid=UUID(int=7), fields=(0,), name="id_idx", dataset_version=1).with_coverage([0])
    file = replace(snapshot.file, manifest=replace(snapshot.manifest, indices=(index,)))
    assert sizes_of_manifest(file, snapshot.entry.size).indices == len(encode_index_section((index,)))
