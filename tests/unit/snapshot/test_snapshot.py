from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.errors import CorruptTable, TableNotFound, UnsupportedFeature, VersionNotFound
from tablewright.format.manifest import BasePath
from tablewright.format.naming import manifest_path
from tablewright.snapshot import Snapshot, latest_version, open_snapshot, read_manifest
from tablewright.storage import open_store
from tablewright.testing import FaultyStore, Pause, memory_world, on_call, seeded_world
from tablewright.world import World


@pytest.fixture(params=[True, False], ids=["V2", "V1"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> tw.LanceDataset:
    """Version 4: one fragment without deletions, one with an array of them, one with a bitmap."""
    data = pa.table({"a": range(30_000)})
    ds = tw.write_dataset(data, str(tmp_path / "t"), max_rows_per_file=10_000, enable_v2_manifest_paths=request.param)
    ds.delete("a >= 10000 and a % 1000 = 7")
    ds.delete("a >= 23000")
    ds.delete("a = 20000")
    return ds


@pytest.fixture
def world(ds: tw.LanceDataset) -> World:
    return World(open_store(ds.uri))


def test_vectors_are_loaded_once_by_any_number_of_threads(ds: tw.LanceDataset) -> None:
    process_cache().clear()
    store = FaultyStore(open_store(ds.uri))
    snapshot = open_snapshot(World(store))
    before = len(store.calls)
    fragment = snapshot.fragments[1]
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda _: snapshot.deletion_vector(fragment), range(50)))
    assert len(set(map(id, vectors))) == 1
    reads = len(store.calls) - before
    assert 1 <= reads <= 8
    snapshot.deletion_vector(fragment)
    assert len(store.calls) - before == reads


def test_a_version_is_not_yet_there_in_its_own_microsecond(world: World) -> None:
    moment_ns = open_snapshot(world, 3).manifest.timestamp_ns // 1000 * 1000
    assert open_snapshot(world, asof_ns=moment_ns).version == 2
    assert open_snapshot(world, asof_ns=moment_ns + 1000).version == 3


# ---------------------------------------------------------------------------------------------------------- missing
def test_no_table(tmp_path: Path) -> None:
    (tmp_path / "_versions").mkdir()
    for store in (open_store(tmp_path / "nothing"), open_store(tmp_path), memory_world().store):
        for options in ({}, {"version": 1}, {"asof_ns": 5}):
            with pytest.raises(TableNotFound, match="was not found"):
                open_snapshot(World(store), **options)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["_versions"]


def test_missing_versions_say_what_there_is(ds: tw.LanceDataset, world: World) -> None:
    with pytest.raises(VersionNotFound, match=r"Version 99 .* The latest version is 4"):
        open_snapshot(world, 99)
    ds.tags.create("keep", 2)
    for version in (1, 3):
        world.store.delete(open_snapshot(world, version).entry.path)
    with pytest.raises(VersionNotFound, match=r"Version 1 .* cleaned up: the oldest version is 2, the latest 4"):
        open_snapshot(world, 1)
    with pytest.raises(VersionNotFound, match=r"Version 3 .* There are versions 2, 4"):
        open_snapshot(world, 3)
    for never in (0, -1):
        with pytest.raises(VersionNotFound, match="There are versions 2, 4"):
            open_snapshot(world, never)
    assert open_snapshot(world, tag="keep").version == 2


def test_a_version_that_is_cleaned_up_while_we_open(ds: tw.LanceDataset) -> None:
    inner = memory_world().store
    source = open_store(ds.uri)
    for version in (1, 2):
        entry = open_snapshot(World(source), version).entry
        inner.put(manifest_path(version), source.get(entry.path))
    late = source.get(open_snapshot(World(source), 3).entry.path)

    def clean(_: object) -> None:
        if inner.put_if_absent(manifest_path(3), late):
            inner.delete(manifest_path(2))

    store = FaultyStore(inner, on_call(Pause(clean), method="get", path="_versions/*.manifest", nth=0))
    assert open_snapshot(seeded_world(store)).version == 3


# ----------------------------------------------------------------------------------------------------------- damage
def test_damage_is_named(ds: tw.LanceDataset, world: World) -> None:
    entry = latest_version(world.store)
    assert entry is not None
    data = world.store.get(entry.path)
    for damaged in (b"", data[: len(data) // 2], os.urandom(200), data[:-8] + b"XXXXXXXX"):
        world.store.put(entry.path, damaged)
        with pytest.raises((CorruptTable, UnsupportedFeature)):
            open_snapshot(world)
    assert open_snapshot(world, 3).version == 3


def test_a_manifest_under_a_wrong_name(ds: tw.LanceDataset, world: World) -> None:
    world.store.put(manifest_path(9), world.store.get(open_snapshot(world, 2).entry.path))
    with pytest.raises(CorruptTable, match="its name says 9"):
        open_snapshot(world)


# ------------------------------------------------------------------------------------------------------- base paths
def _with_bases(world: World, *bases: BasePath) -> Snapshot:
    entry = latest_version(world.store)
    assert entry is not None
    file = read_manifest(world.store, entry)
    return Snapshot(world=world, entry=entry, file=replace(file, manifest=replace(file.manifest, base_paths=bases)))


def test_base_paths(ds: tw.LanceDataset, world: World, tmp_path: Path) -> None:
    root = BasePath(id=1, path=str(tmp_path / "other"), is_dataset_root=True)
    plain = BasePath(id=2, path=f"file://{tmp_path}/files")
    own = BasePath(id=3, path=ds.uri + "/", is_dataset_root=True)
    snapshot = _with_bases(world, root, plain, own)

    def place(base_id: int | None) -> tuple[str, str]:
        store, path = snapshot.data_place(replace(snapshot.fragments[0].files[0], path="x.lance", base_id=base_id))
        return store.location.uri, path

    assert place(None) == (ds.uri, "data/x.lance")
    assert place(1) == (f"{tmp_path}/other", "data/x.lance")
    assert place(2) == (f"{tmp_path}/files", "x.lance")
    assert place(3) == (ds.uri, "data/x.lance")
    assert snapshot.store_of(3) is world.store
    assert snapshot.store_of(1) is snapshot.store_of(1)
    with pytest.raises(CorruptTable, match="base path 7"):
        place(7)
