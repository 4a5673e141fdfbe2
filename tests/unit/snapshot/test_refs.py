from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.errors import CorruptTable, InvalidRequest, VersionNotFound
from tablewright.snapshot import (
    branch_world,
    create_tag,
    delete_tag,
    in_order,
    list_branches,
    list_tags,
    main_world,
    open_snapshot,
    read_tag,
    replace_tag_metadata,
    update_tag,
)
from tablewright.storage import SubtreeStore, open_store
from tablewright.testing import DenyCreation, FaultyStore, on_call, seeded_world
from tablewright.world import World


@pytest.fixture
def ds(tmp_path: Path) -> lance.LanceDataset:
    for mode in ("create", "append", "append", "append"):
        ds = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "t"), mode=mode)
    return ds


@pytest.fixture
def world(ds: lance.LanceDataset) -> World:
    return World(open_store(ds.uri))


def test_pylance_reads_our_tags(ds: lance.LanceDataset, world: World) -> None:
    create_tag(world, "v1.0-rc_1", 2)
    tag = ds.tags.list()["v1.0-rc_1"]
    assert (tag["branch"], tag["version"], tag["metadata"]) == (None, 2, {})
    assert tag["manifest_size"] == open_snapshot(world, 2).entry.size
    assert abs((tag["created_at"] - datetime.now(UTC)).total_seconds()) < 60
    assert ds.tags.get_version("v1.0-rc_1") == 2
    assert ds.checkout_version("v1.0-rc_1").count_rows() == 4

    moved = update_tag(world, "v1.0-rc_1", 3)
    assert ds.tags.get_version("v1.0-rc_1") == 3
    assert moved.created_at_ns is not None and moved.updated_at_ns is not None
    assert moved.created_at_ns < moved.updated_at_ns
    replace_tag_metadata(world, "v1.0-rc_1", {"owner": "ü"})
    after = ds.tags.list()["v1.0-rc_1"]
    assert after["metadata"] == {"owner": "ü"}
    assert after["created_at"] == tag["created_at"] < after["updated_at"]

    delete_tag(world, "v1.0-rc_1")
    assert ds.tags.list() == {}


def test_we_read_pylance_tags(ds: lance.LanceDataset, world: World) -> None:
    assert list_tags(world.store) == {}
    ds.tags.create("one", 1)
    ds.tags.create("two", 2)
    ds.tags.replace_metadata("two", {"k": "v"})
    ours, theirs = list_tags(world.store), ds.tags.list()
    assert set(ours) == set(theirs) == {"one", "two"}
    for name, tag in ours.items():
        assert (tag.branch, tag.version, dict(tag.metadata)) == (
            theirs[name]["branch"],
            theirs[name]["version"],
            theirs[name]["metadata"],
        )
        assert tag.manifest_size == theirs[name]["manifest_size"]
        assert tag.created_at_ns is not None
        assert tag.created_at_ns // 1000 == round(theirs[name]["created_at"].timestamp() * 1_000_000)
    assert open_snapshot(world, tag="two").version == 2
    update_tag(world, "two", 4)
    assert ds.tags.list()["two"]["metadata"] == {"k": "v"}
    ds.tags.delete("one")
    assert set(list_tags(world.store)) == {"two"}


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_order_is_pylance_s(ds: lance.LanceDataset, world: World, order: str | None) -> None:
    for name, version in (("b", 2), ("a", 2), ("Z", 2), ("c", 4), ("d", 1)):
        create_tag(world, name, version)
    theirs = [name for name, _ in ds.tags.list_ordered(order)]
    assert [name for name, _ in in_order(list_tags(world.store), order)] == theirs
    for branch, reference in (("x", 3), ("w", 3), ("y", 1)):
        ds.create_branch(branch, reference)
    theirs = [name for name, _ in ds.branches.list_ordered(order)]
    assert [name for name, _ in in_order(list_branches(world.store), order)] == theirs


def test_unknown_order() -> None:
    with pytest.raises(InvalidRequest, match="Valid values are: asc, desc"):
        in_order({}, "up")


def test_errors_are_of_pylance_s_kind(ds: lance.LanceDataset, world: World) -> None:
    """Where pylance raises ValueError so do we, with its words."""
    create_tag(world, "t", 1)
    for ours, theirs in (
        (lambda: create_tag(world, "t", 2), lambda: ds.tags.create("t", 2)),
        (lambda: create_tag(world, "u", 77), lambda: ds.tags.create("u", 77)),
        (lambda: create_tag(world, "u", 1, "nobranch"), lambda: ds.tags.create("u", ("nobranch", 1))),
        (lambda: update_tag(world, "zz", 1), lambda: ds.tags.update("zz", 1)),
        (lambda: update_tag(world, "t", 77), lambda: ds.tags.update("t", 77)),
        (lambda: delete_tag(world, "zz"), lambda: ds.tags.delete("zz")),
        (lambda: replace_tag_metadata(world, "zz", {}), lambda: ds.tags.replace_metadata("zz", {})),
        (lambda: read_tag(world.store, "zz"), lambda: ds.tags.get_version("zz")),
    ):
        with pytest.raises(ValueError) as expected:  # noqa: PT011
            theirs()
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            ours()
        assert str(expected.value).rpartition("Ref not found: ")[2] in str(caught.value)
    assert ds.tags.get_version("t") == 1


@pytest.mark.parametrize("name", ["", "a/b", ".a", "a.", "a..b", "a.lock", "a b", "../x"])
def test_bad_names_touch_nothing(world: World, name: str) -> None:
    store = FaultyStore(world.store)
    for act in (
        lambda: create_tag(seeded_world(store), name, 1),
        lambda: update_tag(seeded_world(store), name, 1),
        lambda: delete_tag(seeded_world(store), name),
        lambda: read_tag(store, name),
    ):
        with pytest.raises(InvalidRequest, match="Ref"):
            act()
    assert store.calls == ()


def test_of_two_creators_one_hears_of_it(world: World) -> None:
    create_tag(world, "t", 1)
    with pytest.raises(InvalidRequest, match="tag t already exists"):
        create_tag(world, "t", 1)
    lied_to = FaultyStore(world.store, on_call(DenyCreation(), method="put_if_absent"))
    assert create_tag(seeded_world(lied_to), "u", 2).version == 2


def test_damaged_tags(world: World) -> None:
    world.store.put("_refs/tags/junk.json", b"nope")
    world.store.put("_refs/tags/x.json.tmp.1234", b"somebody is writing")
    with pytest.raises(CorruptTable, match=r"junk\.json"):
        list_tags(world.store)
    with pytest.raises(CorruptTable):
        read_tag(world.store, "junk")
    delete_tag(world, "junk")
    assert list_tags(world.store) == {}


def test_worlds_of_branches() -> None:
    main = seeded_world(open_store("memory://refs/table"))
    branch = branch_world(main, "team/x")
    assert branch.store.location.uri == "memory://refs/table/tree/team/x"
    assert main_world(branch, "team/x").store is main.store
    assert branch_world(main, None) is branch_world(main, "main") is main
    assert main_world(main, None) is main
    opened = seeded_world(open_store("memory://refs/table/tree/team/x"))
    assert main_world(opened, "team/x").store.location.uri == "memory://refs/table"
    top = seeded_world(open_store("s3://bucket/tree/x", {"skip_signature": "true"}))
    assert main_world(top, "x").store.location.uri == "s3://bucket"
    assert isinstance(branch.store, SubtreeStore)
    with pytest.raises(InvalidRequest, match="was moved"):
        main_world(main, "team/x")
    with pytest.raises(InvalidRequest, match="Ref is invalid"):
        branch_world(main, "../x")


def test_a_tag_that_does_not_exist_is_a_version_not_found(world: World) -> None:
    with pytest.raises(VersionNotFound, match="tag zz does not exist"):
        open_snapshot(world, tag="zz")
