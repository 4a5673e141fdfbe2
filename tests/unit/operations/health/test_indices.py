"""What indices cover. The differential tests have indices that pylance made."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.operations.health.indices import indices_of
from tablewright.snapshot.snapshot import Snapshot


def _snapshot(*indices: IndexMetadata) -> Snapshot:
    ds = tw.write_dataset({"id": range(40)}, "memory://health-indices", mode="overwrite", max_rows_per_file=10)
    ds.delete("id < 3")
    snapshot = table_of(ds).snapshot
    file = replace(snapshot.file, manifest=replace(snapshot.manifest, indices=indices))
    return Snapshot(world=snapshot.world, entry=snapshot.entry, file=file)


def _index(number: int, covers: list[int] | None, **given: object) -> IndexMetadata:
    index = IndexMetadata(
        uuid=UUID(int=number),
        fields=(0,),
        name="id_idx",
        dataset_version=1,
        details_type_url="/lance.table.BTreeIndexDetails",
        **given,  # type: ignore[arg-type]
    )
    return index if covers is None else index.with_coverage(covers)


def test_segments_of_one_name_are_one_index() -> None:
    first = _index(1, [0, 1, 9], files=(IndexFile(path="a", size_bytes=100), IndexFile(path="b", size_bytes=11)))
    second = _index(2, [2])
    snapshot = _snapshot(first, second)
    ids, live = snapshot.fragments.ids.astype(np.int64), snapshot.fragments.live_rows
    (found,) = indices_of(snapshot, ids, live, {f"_indices/{UUID(int=2)}": 9})
    assert (found.name, found.kind, found.columns, found.segments, found.bytes) == ("id_idx", "BTree", ("id",), 2, 120)
    assert (found.indexed_rows, found.unindexed_rows, found.unindexed_fragments) == (27, 10, 1)
    assert found.stale_fragments == 1
    assert found.unindexed_share == 10 / 37
    assert found.bytes_per_row == 120 / 27


def test_an_index_without_coverage_covers_nothing() -> None:
    snapshot = _snapshot(_index(1, None), replace(_index(2, []), name="other", fields=(99,)))
    first, second = indices_of(snapshot, snapshot.fragments.ids.astype(np.int64), snapshot.fragments.live_rows, {})
    assert (first.indexed_rows, first.unindexed_rows, first.bytes) == (0, 37, 0)
    assert second.columns == ("(dropped field 99)",)
