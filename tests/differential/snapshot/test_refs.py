"""Tags: pylance and we read each other's, in the same order, with the same errors."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.snapshot import (
    create_tag,
    delete_tag,
    in_order,
    list_branches,
    list_tags,
    open_snapshot,
    read_tag,
    replace_tag_metadata,
    update_tag,
)
from tablewright.storage import open_store
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
