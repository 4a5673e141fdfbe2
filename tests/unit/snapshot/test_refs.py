from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, InvalidRequest, VersionNotFound
from tablewright.snapshot import (
    branch_world,
    create_tag,
    delete_tag,
    in_order,
    list_tags,
    main_world,
    open_snapshot,
    read_tag,
    update_tag,
)
from tablewright.storage import SubtreeStore, open_store
from tablewright.testing import DenyCreation, FaultyStore, on_call, seeded_world
from tablewright.world import World


@pytest.fixture
def ds(tmp_path: Path) -> tw.LanceDataset:
    for mode in ("create", "append", "append", "append"):
        ds = tw.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "t"), mode=mode)
    return ds


@pytest.fixture
def world(ds: tw.LanceDataset) -> World:
    return World(open_store(ds.uri))


def test_unknown_order() -> None:
    with pytest.raises(InvalidRequest, match="Valid values are: asc, desc"):
        in_order({}, "up")


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
