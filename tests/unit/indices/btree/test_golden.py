"""BTREEs that pylance 14.0.2 wrote: we read them, and write the same bytes for the same rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import built, entries_of, plan_of, same

from tablewright.format.index import IndexMetadata
from tablewright.indices import btree
from tablewright.indices.files import read_index_file
from tablewright.indices.query import Between, IsIn, IsNull
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[3] / "golden" / "lance"
TABLES = pytest.mark.parametrize("name", ["btree", "btree_stable", "btree_two_segments"])


def opened(name: str, tmp_path: Path) -> Snapshot:
    shutil.copytree(GOLDEN / name / "table", tmp_path / "table")
    return open_snapshot(World(open_store(str(tmp_path / "table"))))


def rebuilt(snapshot: Snapshot, theirs: IndexMetadata) -> IndexMetadata:
    """Our index on the same fragments, with addresses, which is what pylance stores."""
    covered = theirs.coverage or frozenset()
    fragments = tuple(fragment for fragment in snapshot.fragments if fragment.id in covered)
    return built(snapshot, plan_of(snapshot, column="f", fragments=fragments, stable=False))


@TABLES
def test_the_same_rows_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    snapshot = opened(name, tmp_path)
    for theirs in snapshot.manifest.indices:
        ours = rebuilt(snapshot, theirs)
        store, directory = snapshot.index_place(theirs)
        own = snapshot.index_place(ours)[1]
        assert store.get(f"{own}/page_data.lance") == store.get(f"{directory}/page_data.lance")
        # The metadata of the lookup comes in any order.
        one, other = (read_index_file(store, place, "page_lookup.lance") for place in (own, directory))
        assert str(one.rows.to_pydict()) == str(other.rows.to_pydict())
        assert one.metadata == other.metadata
        assert one.rows.schema.remove_metadata() == other.rows.schema.remove_metadata()


@TABLES
def test_their_files_are_searched(name: str, tmp_path: Path) -> None:
    snapshot = opened(name, tmp_path)
    for theirs in snapshot.manifest.indices:
        entries = entries_of(snapshot, theirs)
        numbers = [value for value, _ in entries if value is not None]
        assert len(entries) >= 20
        for query, holds in (
            (IsNull(), lambda value: value is None),
            (IsIn(pa.array(numbers[:1])), lambda value, key=numbers[0]: value is not None and same(value) == same(key)),
            (Between(low=pa.scalar(8.0)), lambda value: value is not None and not value < 8.0),
        ):
            found = btree.search(snapshot, theirs, query, with_nulls=True)
            assert sorted(found.ids.tolist()) == sorted(id for value, id in entries if holds(value))


@TABLES
def test_their_files_are_remapped(name: str, tmp_path: Path) -> None:
    snapshot = opened(name, tmp_path)
    theirs = snapshot.manifest.indices[0]
    btree.remap(snapshot, theirs, lambda ids: (ids, np.ones(len(ids), np.bool_)), snapshot.world, "_indices/remapped")
    store, directory = snapshot.index_place(theirs)
    assert store.get("_indices/remapped/page_data.lance") == store.get(f"{directory}/page_data.lance")
