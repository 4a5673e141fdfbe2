from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, StorageError, TableNotFound, VersionNotFound
from tablewright.format.envelope import ManifestFile
from tablewright.format.transaction import Clone
from tablewright.jobs.branch import create_branch, delete_branch
from tablewright.operations.branch import plan_branch
from tablewright.snapshot import (
    Snapshot,
    branch_world,
    create_tag,
    list_branches,
    open_reference,
    open_snapshot,
    resolve_reference,
)
from tablewright.storage import Store, open_store
from tablewright.testing import (
    FaultyStore,
    SimulatedCrash,
    every_single_fault,
    interleave,
    memory_world,
    seeded_world,
)
from tablewright.testing.faulty_store import LoseReply, on_call
from tablewright.world import World


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> tw.LanceDataset:
    """Version 5: deletions as array and bitmap, config and metadata."""
    uri = str(tmp_path / "t")
    data = pa.table({"a": range(20_000), "b": [str(number) for number in range(20_000)]})
    tw.write_dataset(data, uri, max_rows_per_file=10_000, enable_stable_row_ids=request.param)
    ds = tw.dataset(uri)
    ds.delete("a % 1000 = 7 or a >= 13000")
    ds.delete("a = 8")
    ds.update_config({"k": "v"})
    ds.update_metadata({"m": "n"})
    return ds


@pytest.fixture
def world(ds: tw.LanceDataset) -> World:
    return World(open_store(ds.uri))


# ----------------------------------------------------------------------------------------------------- references
def test_references(ds: tw.LanceDataset, world: World) -> None:
    main = open_snapshot(world, 3)
    branch = create_branch(main, "b")
    create_tag(world, "two", 2)
    assert resolve_reference(main, None) == (None, 3)
    assert resolve_reference(branch, None) == ("b", 3)
    assert resolve_reference(branch, 1) == ("b", 1)
    assert resolve_reference(branch, "two") == (None, 2)
    for main_name in (None, "main"):
        assert resolve_reference(branch, (main_name, None)) == (None, 5)
        assert resolve_reference(branch, (main_name, 1)) == (None, 1)
    assert resolve_reference(main, ("b", None)) == ("b", 3)
    assert open_reference(main, 3) is main
    for nonsense in (1.5, ("a",), (1, 2), True, b"x", ("a", "b")):
        with pytest.raises(InvalidRequest, match="int, a str or a"):
            resolve_reference(main, nonsense)  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", [("nob", None), ("nob", 1), ("b", 4), "zz", 99])
def test_missing_references(ds: tw.LanceDataset, world: World, reference: object) -> None:
    main = open_snapshot(world)
    create_branch(main, "b")
    with pytest.raises(VersionNotFound):
        open_reference(main, reference)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- creating
@pytest.mark.parametrize("name", ["", "main", "/a", "a/", "a//b", "a..b", "a\\b", "a b", "a.lock"])
def test_bad_names(ds: tw.LanceDataset, world: World, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Ref is invalid"):
        create_branch(open_snapshot(world), name)
    with pytest.raises(InvalidRequest, match="Ref is invalid"):
        delete_branch(world, name)
    assert not os.path.exists(f"{ds.uri}/tree")


def test_detached_versions_have_no_branches(world: World) -> None:
    main = open_snapshot(world)
    detached = Snapshot(world=world, entry=main.entry, file=_with_version(main, 1 << 63 | 1))
    with pytest.raises(InvalidRequest, match="detached"):
        create_branch(detached, "b")


def _with_version(snapshot: Snapshot, version: int) -> ManifestFile:
    return replace(snapshot.file, manifest=replace(snapshot.manifest, version=version))


def test_the_plan_is_pure(ds: tw.LanceDataset, world: World) -> None:
    source = open_snapshot(world).manifest
    clone = Clone(is_shallow=True, ref_version=5, ref_path="s3://x/t", ref_name=None, branch_name="b")
    planned = plan_branch(source, clone, transaction_file="5-x.txn", timestamp_ns=7)
    assert planned == plan_branch(source, clone, transaction_file="5-x.txn", timestamp_ns=7)
    assert source.base_paths == ()
    assert {file.base_id for fragment in planned.fragments for file in fragment.files} == {0}
    assert {fragment.deletion.base_id for fragment in planned.fragments if fragment.deletion} == {0}
    assert (planned.branch, planned.timestamp_ns, planned.transaction_file) == ("b", 7, "5-x.txn")


# ------------------------------------------------------------------------------------------------- faults and races
@pytest.fixture
def filled(tmp_path: Path) -> Store:
    """A small table, in memory."""
    uri = tmp_path / "small"
    tw.write_dataset(pa.table({"a": [1, 2, 3]}), str(uri))
    store = memory_world().store
    for directory, _, names in os.walk(uri):
        for name in names:
            path = Path(directory) / name
            store.put(path.relative_to(uri).as_posix(), path.read_bytes())
    return store


def _copy(store: Store) -> Store:
    copy = memory_world().store
    for info in store.list(""):
        copy.put(info.path, store.get(info.path))
    return copy


def test_a_fault_at_every_call_leaves_a_branch_or_none(filled: Store) -> None:
    def create(store: Store, seed: int) -> None:
        create_branch(open_snapshot(seeded_world(store, seed)), "b")

    counting = FaultyStore(_copy(filled))
    create(counting, 1)
    for index, fault, plan in every_single_fault(len(counting.calls)):
        store = _copy(filled)
        with contextlib.suppress(SimulatedCrash, StorageError):
            create(FaultyStore(store, plan), 1)
        world = seeded_world(store, 2)
        if "b" not in list_branches(store):
            create(store, 2)
        branch = open_snapshot(branch_world(world, "b"))
        assert (branch.version, branch.manifest.live_rows) == (1, 3), (index, fault)
        delete_branch(world, "b")
        assert list(store.list("tree")) == []
        assert len(open_snapshot(world).fragments) == 1


@pytest.mark.parametrize("path", ["tree/b/_versions/*", "_refs/branches/*"])
def test_a_lost_reply_is_settled_by_reading(filled: Store, path: str) -> None:
    store = _copy(filled)
    faulty = FaultyStore(store, on_call(LoseReply(), method="put_if_absent", path=path))
    first = create_branch(open_snapshot(seeded_world(faulty, 1)), "b")
    assert (first.branch, list(list_branches(store))) == ("b", ["b"])
    read = open_snapshot(branch_world(seeded_world(store, 2), "b"))
    assert read.manifest.transaction_file == first.manifest.transaction_file


def test_what_was_left_can_be_deleted(filled: Store) -> None:
    store = _copy(filled)
    for _, _, plan in every_single_fault(20):
        faulty = FaultyStore(store, plan)
        with contextlib.suppress(SimulatedCrash, StorageError):
            create_branch(open_snapshot(seeded_world(faulty, 1)), "b")
        if list(store.list("tree")):
            delete_branch(seeded_world(store, 2), "b")
        assert list(store.list("tree")) == []
        assert list_branches(store) == {}


@pytest.mark.parametrize("seed", range(12))
def test_of_racing_creators_one_wins(filled: Store, seed: int) -> None:
    store = _copy(filled)

    def create(number: int) -> Callable[[Store], Snapshot]:
        return lambda own: create_branch(open_snapshot(seeded_world(own, number)), "b")

    outcomes = interleave(store, [create(1), create(2), create(3)], seed)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    assert len(errors) == 2
    assert all(isinstance(error, InvalidRequest) for error in errors)
    assert open_snapshot(branch_world(seeded_world(store), "b")).manifest.live_rows == 3


def test_a_version_that_is_gone_has_no_branches(filled: Store) -> None:
    source = open_snapshot(World(store=filled))
    filled.delete(source.entry.path)
    before = sorted(info.path for info in filled.list(""))
    with pytest.raises((VersionNotFound, TableNotFound)):
        create_branch(source, "late")
    for info in list(filled.list("_versions")):
        filled.delete(info.path)
    with pytest.raises(TableNotFound):
        create_branch(source, "late")
    assert {info.path for info in filled.list("")} <= set(before)
