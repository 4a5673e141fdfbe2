"""Versions, tags and branches in an object store: pylance and we on one table in S3 (a server on loopback)."""

from __future__ import annotations

import lance
import pyarrow as pa

from tablewright.jobs.branch import create_branch, delete_branch
from tablewright.snapshot import (
    create_tag,
    list_branches,
    list_tags,
    list_versions,
    open_reference,
    open_snapshot,
    probe_latest,
    write_hint,
)
from tablewright.storage import open_store
from tablewright.testing import seeded_world
from tablewright.world import World


def test_versions_tags_and_branches(s3_bucket: str, s3_options: dict[str, str]) -> None:
    uri = f"s3://{s3_bucket}/some where/t.lance"
    for mode in ("create", "append", "append"):
        ds = lance.write_dataset(pa.table({"a": range(10)}), uri, mode=mode, storage_options=s3_options)
    ds.delete("a = 3")
    world = World(open_store(uri, s3_options))
    assert [entry.version for entry in list_versions(world.store)] == [1, 2, 3, 4]
    assert probe_latest(world.store, 2).version == 4
    snapshot = open_snapshot(world)
    assert snapshot.manifest.live_rows == 27
    vector = snapshot.deletion_vector(snapshot.fragments[0])
    assert vector is not None and list(vector.to_numpy()) == [3]

    create_tag(world, "ours", 2)
    ds.tags.create("theirs", 3)
    assert set(list_tags(world.store)) == set(ds.tags.list()) == {"ours", "theirs"}

    create_branch(snapshot, "team/ours")
    ds.create_branch("theirs")
    assert set(list_branches(world.store)) == set(ds.branches.list()) == {"team/ours", "theirs"}
    ours = ds.checkout_version(("team/ours", None))
    assert ours.count_rows() == ours.to_table().num_rows == 27
    lance.write_dataset(pa.table({"a": [1]}), ours, mode="append", storage_options=s3_options)
    theirs = open_reference(snapshot, ("theirs", None))
    store, path = theirs.data_place(theirs.fragments[0].files[0])
    assert store.head(path).size == theirs.fragments[0].files[0].file_size_bytes
    assert open_reference(theirs, ("team/ours", None)).manifest.live_rows == 28
    delete_branch(world, "theirs")
    assert set(ds.branches.list()) == {"team/ours"}


def test_neither_of_us_writes_hints_there(s3_bucket: str, s3_options: dict[str, str]) -> None:
    uri = f"s3://{s3_bucket}/t"
    lance.write_dataset(pa.table({"a": [1]}), uri, storage_options=s3_options)
    world = seeded_world(open_store(uri, s3_options))
    write_hint(world.store, 1)
    assert [info.path for info in world.store.list("_versions")] == [list_versions(world.store)[0].path]
