"""Branches: pylance reads and extends ours, we read its own, both make the same."""

from __future__ import annotations

import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.transaction import Clone
from tablewright.jobs.branch import create_branch, delete_branch
from tablewright.snapshot import (
    Snapshot,
    create_tag,
    list_branches,
    list_tags,
    open_reference,
    open_snapshot,
    read_branch,
    read_transaction,
    replace_branch_metadata,
)
from tablewright.storage import open_store
from tablewright.world import World


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Version 5: deletions as array and bitmap, an index, config and metadata."""
    uri = str(tmp_path / "t")
    data = pa.table({"a": range(20_000), "b": [str(number) for number in range(20_000)]})
    lance.write_dataset(data, uri, max_rows_per_file=10_000, enable_stable_row_ids=request.param)
    ds = lance.dataset(uri)
    ds.delete("a % 1000 = 7 or a >= 13000")
    ds.create_scalar_index("a", "BTREE")
    ds.update_config({"k": "v"})
    ds.update_metadata({"m": "n"})
    return ds


@pytest.fixture
def world(ds: lance.LanceDataset) -> World:
    return World(open_store(ds.uri))


def rows(ds: lance.LanceDataset) -> list[int]:
    return sorted(ds.to_table(columns=["a"])["a"].to_pylist())


# ------------------------------------------------------------------------------------------------------- referees
def test_pylance_reads_and_extends_our_branch(ds: lance.LanceDataset, world: World) -> None:
    first = create_branch(open_snapshot(world), "team/try")
    assert (first.version, first.branch) == (5, "team/try")
    described = ds.branches.list()["team/try"]
    assert described["parent_branch"] is None
    assert (described["parent_version"], described["metadata"]) == (5, {})
    assert described["manifest_size"] == open_snapshot(world).entry.size
    ((version, name),) = described["branch_identifier"]
    assert version == 5 and len(name) == 32

    theirs = ds.checkout_version(("team/try", None))
    theirs.validate()
    assert theirs.version == 5
    assert rows(theirs) == rows(ds)
    assert theirs.to_table(filter="a = 4")["b"].to_pylist() == ["4"]
    assert "ScalarIndexQuery" in theirs.scanner(filter="a = 4").explain_plan()
    assert theirs.config() == ds.config()
    assert theirs.has_stable_row_ids == ds.has_stable_row_ids
    operation = theirs.read_transaction(5).operation
    assert (operation.is_shallow, operation.ref_version, operation.ref_path) == (True, 5, ds.uri)
    assert (operation.ref_name, operation.branch_name) == (None, "team/try")

    more = lance.write_dataset(pa.table({"a": [-1], "b": ["x"]}), theirs, mode="append")
    more.delete("a = 5")
    assert rows(more) == sorted({*rows(ds), -1} - {5})
    assert ds.latest_version == 5
    ours = open_reference(open_snapshot(world), ("team/try", None))
    assert (ours.version, ours.manifest.live_rows) == (7, more.count_rows())


def same_clone(ours: Snapshot, theirs: Snapshot) -> None:
    """Two branches of one version differ in their name, time, transaction and writer only."""
    a, b = ours.manifest, theirs.manifest
    assert a.fragments == b.fragments
    assert a.schema == b.schema
    assert a.indices == b.indices
    assert {base.id: base for base in a.base_paths} == {base.id: base for base in b.base_paths}
    for name in (
        "version",
        "max_fragment_id",
        "next_row_id",
        "config",
        "table_metadata",
        "reader_flags",
        "writer_flags",
    ):
        assert getattr(a, name) == getattr(b, name), name


def test_we_make_what_pylance_makes(ds: lance.LanceDataset, world: World) -> None:
    main = open_snapshot(world)
    ds.create_branch("theirs")
    create_branch(main, "ours")
    same_clone(open_reference(main, ("ours", None)), open_reference(main, ("theirs", None)))

    child = lance.write_dataset(pa.table({"a": [-1], "b": ["x"]}), ds.checkout_version(("theirs", None)), mode="append")
    child.delete("a = 6")
    parent = open_reference(main, ("theirs", None))
    ds.create_branch("theirs2", ("theirs", None))
    ours2 = create_branch(parent, "ours2")
    same_clone(open_reference(main, ("ours2", None)), open_reference(main, ("theirs2", None)))
    assert [base.name for base in ours2.manifest.base_paths] == [None, "theirs"]
    described = list_branches(world.store)
    assert described["ours2"].parent_branch == described["theirs2"].parent_branch == "theirs"
    assert described["ours2"].identifier[:-1] == described["theirs2"].identifier[:-1] == described["theirs"].identifier
    assert described["ours2"].manifest_size == described["theirs2"].manifest_size
    grandchild = ds.checkout_version(("ours2", None))
    grandchild.validate()
    assert rows(grandchild) == rows(child)


def test_we_read_pylance_branches(ds: lance.LanceDataset, world: World) -> None:
    theirs = lance.write_dataset(pa.table({"a": [-1], "b": ["x"]}), ds.create_branch("b/x", 2), mode="append")
    ours = open_reference(open_snapshot(world), ("b/x", None))
    assert ours.version == theirs.version == 3
    assert ours.manifest.live_rows == theirs.count_rows()
    assert ours.branch == "b/x"
    transaction = read_transaction(ours.world.store, open_reference(ours, 2).file)
    assert transaction is not None and isinstance(transaction.operation, Clone)
    vectors = [ours.deletion_vector(fragment) for fragment in ours.fragments]
    assert [None if vector is None else len(vector) for vector in vectors] == [10, 7003, None]
    inherited, own = ours.fragments[0].files[0], ours.fragments[2].files[0]
    for file, root in ((inherited, ds.uri), (own, f"{ds.uri}/tree/b/x")):
        store, path = ours.data_place(file)
        assert store.location.uri == root
        assert store.head(path).size == file.file_size_bytes
    index_store, directory = open_reference(open_snapshot(world), ("main", None)).index_place(
        open_snapshot(world).manifest.indices[0]
    )
    assert list(index_store.list(directory))
    opened = open_snapshot(World(open_store(f"{ds.uri}/tree/b/x")))
    assert opened.version == 3
    assert open_reference(opened, (None, None)).version == 5
    assert opened.deletion_vector(opened.fragments[1]) == vectors[1]


def test_a_version_one_table_branches_into_v2_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "v1")
    ds = lance.write_dataset(pa.table({"a": [1]}), uri, enable_v2_manifest_paths=False)
    branch = create_branch(open_snapshot(World(open_store(uri))), "b")
    assert branch.entry.v2
    assert ds.checkout_version(("b", None)).count_rows() == 1


def test_tags_of_branches_both_ways(ds: lance.LanceDataset, world: World) -> None:
    branch = create_branch(open_snapshot(world), "b")
    create_tag(world, "ours", 5, "b")
    assert ds.tags.list()["ours"]["branch"] == "b"
    lance.write_dataset(pa.table({"a": [-1], "b": ["x"]}), ds.checkout_version(("b", None)), mode="append").tags.create(
        "t"
    )
    found = list_tags(world.store)["t"]
    assert (found.branch, found.version) == ("b", 6)
    for start in (open_snapshot(world), branch):
        snapshot = open_reference(start, "t")
        assert (snapshot.branch, snapshot.version) == ("b", 6)
    assert open_snapshot(world, tag="t").version == 6
    assert open_snapshot(World(open_store(branch.location.uri)), tag="t").branch == "b"


def test_names_are_taken_once(ds: lance.LanceDataset, world: World) -> None:
    main = open_snapshot(world)
    create_branch(main, "b")
    for source in (main, open_snapshot(world, 2)):
        with pytest.raises(InvalidRequest, match="branch b already exists"):
            create_branch(source, "b")
    ds.create_branch("theirs")
    with pytest.raises(InvalidRequest, match="already exists"):
        create_branch(main, "theirs")
    assert rows(ds.checkout_version(("b", None))) == rows(ds)


def test_metadata_of_branches(ds: lance.LanceDataset, world: World) -> None:
    create_branch(open_snapshot(world), "b")
    replace_branch_metadata(world, "b", {"owner": "me"})
    assert ds.branches.list()["b"]["metadata"] == {"owner": "me"}
    ds.branches.replace_metadata("b", {"owner": "you"})
    assert read_branch(world.store, "b").metadata == {"owner": "you"}
    with pytest.raises(VersionNotFound, match="branch zz does not exist"):
        replace_branch_metadata(world, "zz", {})


# ------------------------------------------------------------------------------------------------------- deleting
def test_delete(ds: lance.LanceDataset, world: World) -> None:
    create_branch(open_snapshot(world), "b")
    ds.create_branch("theirs")
    delete_branch(world, "b")
    delete_branch(world, "theirs")
    assert ds.branches.list() == {}
    assert not os.path.exists(f"{ds.uri}/tree/b")
    assert not os.path.exists(f"{ds.uri}/tree/theirs")
    create_branch(open_snapshot(world), "b")
    ds.branches.delete("b")
    assert list_branches(world.store) == {}
    for name in ("b", "never"):
        with pytest.raises(VersionNotFound, match=f"Branch {name} does not exist"):
            delete_branch(world, name)
    assert rows(ds) == rows(lance.dataset(ds.uri))


def test_what_others_need_stays(ds: lance.LanceDataset, world: World) -> None:
    main = open_snapshot(world)
    branch = create_branch(main, "b")
    create_branch(branch, "child")
    with pytest.raises(InvalidRequest, match=r'Branch b is referenced by \[\("child", 5\)\] versions, can not delete'):
        delete_branch(world, "b")
    with pytest.raises(OSError, match=r'Branch b is referenced by \[\("child", 5\)\] versions, can not delete'):
        ds.branches.delete("b")
    create_tag(world, "t", 5, "child")
    with pytest.raises(InvalidRequest, match=r'referenced by tags \[\("t", 5\)\], can not delete'):
        delete_branch(world, "child")
    ds.tags.delete("t")
    delete_branch(world, "child")
    delete_branch(world, "b")


def test_a_branch_nested_by_name_stays(ds: lance.LanceDataset, world: World) -> None:
    main = open_snapshot(world)
    create_branch(main, "b")
    create_branch(main, "b/x")
    create_branch(main, "bx")
    delete_branch(world, "b")
    assert set(ds.branches.list()) == {"b/x", "bx"}
    assert rows(ds.checkout_version(("b/x", None))) == rows(ds)
    assert sorted(os.listdir(f"{ds.uri}/tree/b")) == ["x"]
    create_branch(main, "b")
    delete_branch(world, "b/x")
    assert rows(ds.checkout_version(("b", None))) == rows(ds)
