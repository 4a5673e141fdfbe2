"""Which way each index segment goes past a compaction, and what a plan says about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.index import IndexMetadata
from tablewright.operations.compact.indices import Way, index_ways, remap_index, remap_task
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import plan_compaction
from tablewright.snapshot import open_snapshot
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.world import World


def snapshot_of(name: str, *, stable: bool = False) -> Snapshot:
    dataset = tw.write_dataset(
        {"id": range(40), "z": range(40)},
        f"memory://{name}",
        mode="overwrite",
        max_rows_per_file=10,
        enable_stable_row_ids=stable,
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("z", "ZONEMAP")
    return open_snapshot(World(open_store(f"memory://{name}")))


def with_indices(snapshot: Snapshot, *indices: IndexMetadata) -> Snapshot:
    manifest = replace(snapshot.manifest, indices=indices)
    return Snapshot(world=snapshot.world, entry=snapshot.entry, file=replace(snapshot.file, manifest=manifest))


def ways(snapshot: Snapshot, groups: list[list[int]], *, defer: bool = False) -> dict[str, Way]:
    return {each.index.name: each.way for each in index_ways(snapshot, groups, defer=defer)}


def test_the_ways_on_addresses() -> None:
    snapshot = snapshot_of("ways-addresses")
    assert ways(snapshot, [[0, 1]]) == {"id_idx": Way.REMAPPED, "z_idx": Way.REMAPPED}
    assert ways(snapshot, [[0, 1]], defer=True) == {"id_idx": Way.DEFERRED, "z_idx": Way.DEFERRED}
    assert ways(snapshot, [[7, 8]]) == {}
    index = snapshot.manifest.indices[0]
    unknown = replace(index, details_type_url="/lance.table.SomethingNew")
    newer = replace(index, index_version=9)
    for each in (unknown, newer):
        assert ways(with_indices(snapshot, each), [[0, 1]]) == {"id_idx": Way.LEAVES}


def test_the_ways_on_stable_row_ids() -> None:
    snapshot = snapshot_of("ways-stable", stable=True)
    assert ways(snapshot, [[0, 1]]) == {"id_idx": Way.STAYS, "z_idx": Way.REMAPPED}
    addresses = replace(snapshot.manifest.indices[0], index_version=1)
    assert ways(with_indices(snapshot, addresses), [[0, 1]]) == {"id_idx": Way.REMAPPED}


def test_a_group_that_is_covered_in_part_is_counted_apart() -> None:
    snapshot = snapshot_of("ways-split")
    index = snapshot.manifest.indices[0].with_coverage([0, 1, 2])
    (way,) = index_ways(with_indices(snapshot, index), [[0, 1], [2, 3]], defer=False)
    assert (way.fragments, way.split) == (2, 1)
    assert "2 fragments; 1 fragments leave its coverage" in str(way)


def test_a_plan_says_which_way_each_index_goes_and_what_it_costs() -> None:
    snapshot = snapshot_of("ways-plan")
    size = sum(file.size_bytes for file in snapshot.manifest.indices[0].files)
    lines = str(plan_compaction(snapshot, CompactionOptions())).splitlines()
    assert f"  Index id_idx: is written again for the new addresses of 4 fragments, index_bytes={size}" in lines
    deferred = str(plan_compaction(snapshot, CompactionOptions(defer_index_remap=True)))
    assert "Index id_idx: stays; the new addresses of 4 fragments are recorded" in deferred
    assert deferred.count("index_bytes=0") == 2
    stable = str(plan_compaction(snapshot_of("ways-plan-stable", stable=True), CompactionOptions()))
    assert (
        "Index id_idx: covers the new fragments; its files stay, for it names rows by row id, index_bytes=0" in stable
    )


def test_deferral_is_refused_on_stable_row_ids() -> None:
    with pytest.raises(InvalidRequest, match="Cannot compact with defer_index_remap: the dataset uses stable row IDs"):
        plan_compaction(snapshot_of("ways-refused", stable=True), CompactionOptions(defer_index_remap=True))


def test_an_index_that_names_rows_its_fragments_never_had_is_corrupt_and_leaves_no_file() -> None:
    snapshot = snapshot_of("ways-corrupt")
    group = AddressMap((OldRows(0, 5), OldRows(1, 10)), (NewRows(9, 15),))  # fragment 0 has ten rows
    before = set(snapshot.world.store.list("_indices"))
    task = remap_task(snapshot, snapshot.manifest.indices[0], [group])
    with pytest.raises(CorruptTable, match="has 5 rows, and none at"):
        remap_index(task, snapshot.world)
    assert set(snapshot.world.store.list("_indices")) == before
