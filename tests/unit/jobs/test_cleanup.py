"""Cleanup on whole tables: what goes, what stays, and what happens in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import CorruptTable, StorageError, TaggedVersions, UnsupportedFeature, VersionNotFound
from tablewright.format.cleanup_journal import encode_journal
from tablewright.format.naming import manifest_path
from tablewright.storage import open_store
from tablewright.testing import Call, FailBefore, FaultyStore, LoseReply, Pause, memory_world, on_call, seeded_world
from tablewright.testing.worlds import SeededClock
from tablewright.world import World

DAYS = 86_400 * 10**9


@pytest.fixture(params=["memory", "local"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    clock = SeededClock(start_ns=time.time_ns())
    store = memory_world().store if request.param == "memory" else open_store(tmp_path / "t")
    return seeded_world(store, clock=clock)


def later(world: World, days: float) -> World:
    return replace(world, clock=SeededClock(start_ns=world.clock.now_ns() + int(days * DAYS)))


def overwritten(world: World, versions: int = 4) -> tw.LanceDataset:
    """Each version has one data file of its own."""
    ds = tw.write_dataset({"id": [1]}, world)
    for number in range(2, versions + 1):
        ds = tw.write_dataset({"id": list(range(number))}, ds, mode="overwrite")
    return ds


def files(world: World, directory: str) -> set[str]:
    return {info.path for info in world.store.list(directory) if "hint" not in info.path}


def numbers(ds: tw.LanceDataset) -> list[int]:
    return [entry["version"] for entry in ds.versions()]


def everything_is_read(ds: tw.LanceDataset) -> None:
    for number in numbers(ds):
        at = ds.checkout_version(number)
        assert at.to_table().num_rows == at.count_rows()
        at.validate()


def test_old_versions_go_with_their_files(world: World) -> None:
    ds = overwritten(world)
    sizes = {info.path: info.size for info in world.store.list("")}
    explained = ds.explain_cleanup_old_versions(retain_versions=2)
    assert files(world, "") == set(sizes) - {path for path in sizes if "hint" in path}
    stats = ds.cleanup_old_versions(retain_versions=2)
    assert explained.stats == stats
    assert {file.path for file in explained.candidate_files} == set(sizes) - {i.path for i in world.store.list("")}
    assert (stats.old_versions, stats.data_files_removed, stats.transaction_files_removed) == (2, 2, 2)
    assert stats.bytes_removed == sum(sizes.values()) - sum(info.size for info in world.store.list(""))
    assert numbers(ds) == [3, 4]
    assert [len(files(world, d)) for d in ("data", "_transactions", "_versions", "_cleanup")] == [2, 2, 2, 0]
    everything_is_read(ds)
    assert ds.cleanup_old_versions(retain_versions=2).bytes_removed == 0


def test_shared_files_and_deletion_files(world: World) -> None:
    ds = tw.write_dataset({"id": list(range(10))}, world, max_rows_per_file=5)
    for number in range(3):
        ds.delete(f"id = {number}")
    stats = ds.cleanup_old_versions(timedelta(0))
    assert (stats.old_versions, stats.data_files_removed, stats.deletion_files_removed) == (3, 0, 2)
    everything_is_read(ds)


def test_two_weeks_are_the_default(world: World) -> None:
    ds = overwritten(world)
    assert ds.cleanup_old_versions().old_versions == 0
    assert tw.dataset(later(world, 13)).cleanup_old_versions().old_versions == 0
    assert tw.dataset(later(world, 15)).cleanup_old_versions().old_versions == 3


def test_a_handle_of_an_old_version_keeps_what_it_and_later_ones_need(world: World) -> None:
    old = overwritten(world).checkout_version(3)
    old.cleanup_old_versions(retain_versions=1)
    assert numbers(old) == [3, 4]
    everything_is_read(old)


def test_tags(world: World) -> None:
    ds = overwritten(world)
    ds.tags.create("keep", 2)
    before = files(world, "")
    with pytest.raises(TaggedVersions):
        ds.cleanup_old_versions(retain_versions=1)
    with pytest.raises(TaggedVersions):
        ds.explain_cleanup_old_versions(retain_versions=1)
    assert files(world, "") == before
    ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert numbers(ds) == [2, 4]
    everything_is_read(ds)
    ds.tags.delete("keep")
    assert ds.cleanup_old_versions(retain_versions=1).data_files_removed == 1


def test_branches_keep_the_files_that_they_share(world: World) -> None:
    ds = overwritten(world)
    branch = ds.create_branch("b", 2)
    branch.insert({"id": [9]})
    explained = ds.explain_cleanup_old_versions(retain_versions=1)
    assert [(each.name, each.referenced_version) for each in explained.referenced_branches] == [("b", 2)]
    assert ds.cleanup_old_versions(retain_versions=1, delete_unverified=True).data_files_removed == 2
    assert numbers(ds) == [2, 4]
    everything_is_read(branch)
    everything_is_read(ds)
    ds.branches.delete("b")
    assert ds.cleanup_old_versions(retain_versions=1).data_files_removed == 1
    assert numbers(ds) == [4]


def test_cleanup_on_a_branch_and_of_branches_of_it(world: World) -> None:
    ds = overwritten(world, 2)
    branch = ds.create_branch("b", 2)
    branch.insert({"id": [9]})
    tw.write_dataset({"id": [7]}, branch, mode="overwrite")
    inner = branch.create_branch("b/data", ("b", 3))
    inner.insert({"id": [1]})
    branch = ds.checkout_version(("b", None))
    tw.write_dataset({"id": [8]}, branch, mode="overwrite")
    branch = ds.checkout_version(("b", None))
    main_files = files(world, "data") | files(world, "_versions")
    stats = branch.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert (stats.old_versions, stats.data_files_removed) == (2, 1)  # 3 and its file are those of b/data
    assert numbers(branch) == [3, 5]
    assert files(world, "data") | files(world, "_versions") == main_files
    for each in (ds, branch, inner):
        everything_is_read(each)
    # main keeps what b reaches, though no version of main on its own needs it
    tw.write_dataset({"id": [8]}, ds, mode="overwrite").cleanup_old_versions(timedelta(0), delete_unverified=True)
    for each in (branch, inner):
        everything_is_read(each)


def test_files_that_no_version_names_wait_seven_days(world: World) -> None:
    ds = overwritten(world, 1)
    strays = ["data/x.lance", "data/x/1.blob", "_deletions/0-1-2.bin", "_transactions/1-x.txn"]
    strays += ["_indices/12345678-1234-1234-1234-1234567890ab/index.idx", "data/.tmpX"]
    untouched = ["data/notes.txt", "_versions/1.manifest.bak", "_refs/other", "_indices/other/x", "_cleanup/x.json"]
    for path in (*strays, *untouched):
        world.store.put(path, b"12345")
    explained = ds.explain_cleanup_old_versions()
    assert (explained.waiting_files, explained.waiting_bytes, explained.stats.bytes_removed) == (6, 30, 0)
    assert ds.cleanup_old_versions().bytes_removed == 0
    assert tw.dataset(later(world, 6.9)).cleanup_old_versions().bytes_removed == 0
    old = tw.dataset(later(world, 7.1))
    assert all(
        file.unverified and "7 days old" in file.reason for file in old.explain_cleanup_old_versions().candidate_files
    )
    stats = old.cleanup_old_versions()
    assert (stats.data_files_removed, stats.blob_files_removed, stats.deletion_files_removed) == (3, 1, 1)
    assert (stats.transaction_files_removed, stats.index_files_removed) == (1, 1)
    assert not set(strays) & files(world, "")
    assert set(untouched) <= files(world, "")
    everything_is_read(ds)


def test_delete_unverified_does_not_wait(world: World) -> None:
    ds = overwritten(world, 1)
    world.store.put("data/x.lance", b"12345")
    assert ds.cleanup_old_versions(delete_unverified=True).data_files_removed == 1
    everything_is_read(ds)


def test_a_slow_writer_keeps_its_files(world: World) -> None:
    """Its files are in no manifest: younger than seven days they stay."""
    ds = overwritten(world, 3)
    fragments = tw.fragment.write_fragments({"id": [50]}, ds)
    almost = tw.dataset(later(world, 6.9))
    almost.cleanup_old_versions(timedelta(0))
    new = tw.LanceDataset.commit(ds, tw.LanceOperation.Append(fragments), read_version=3)
    assert new.to_table()["id"].to_pylist() == [0, 1, 2, 50]


def test_blob_files_go_with_their_data_file(world: World) -> None:
    ds = overwritten(world, 2)
    owners = {number: ds.checkout_version(number)._snapshot.fragments[0].files[0].path for number in (1, 2)}
    sidecars = {number: f"data/{owner.removesuffix('.lance')}/1.blob" for number, owner in owners.items()}
    for path in sidecars.values():
        world.store.put(path, b"blob")
    stats = ds.cleanup_old_versions(retain_versions=1)
    assert (stats.data_files_removed, stats.blob_files_removed) == (2, 1)
    assert sidecars[1] not in files(world, "data")
    assert sidecars[2] in files(world, "data")


def test_detached_versions_keep_their_files(world: World) -> None:
    ds = overwritten(world, 2)
    fragments = tw.fragment.write_fragments({"id": [50]}, ds)
    append = tw.LanceOperation.Append(fragments)
    detached = tw.LanceDataset.commit(ds, append, read_version=2, detached=True)
    ds.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert detached.to_table()["id"].to_pylist() == [0, 1, 50]
    assert numbers(ds) == [2]


def test_both_names_of_a_version_go(world: World) -> None:
    ds = overwritten(world, 2)
    world.store.put("_versions/1.manifest", world.store.get(manifest_path(1)))
    ds.cleanup_old_versions(retain_versions=1)
    assert len(files(world, "_versions")) == 1


def test_empty_directories_go(tmp_path: Path) -> None:
    ds = overwritten(seeded_world(open_store(tmp_path)), 2)
    first = ds.checkout_version(1)._snapshot.fragments[0].files[0].path.removesuffix(".lance")
    (tmp_path / "data" / first).mkdir()
    (tmp_path / "data" / first / "1.blob").write_text("x")
    ds.cleanup_old_versions(retain_versions=1)
    assert not (tmp_path / "data" / first).exists()
    assert not (tmp_path / "_cleanup").exists()


@pytest.mark.parametrize("directory", ["data", "_versions", "_transactions", "_deletions", "_indices", "_cleanup"])
def test_a_directory_that_is_a_link_is_refused(tmp_path: Path, directory: str) -> None:
    ds = overwritten(seeded_world(open_store(tmp_path / "t")), 3)
    place, outside = tmp_path / "t" / directory, tmp_path / "outside"
    if place.exists():
        place.rename(outside)
    else:
        outside.mkdir()
    place.symlink_to(outside)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(UnsupportedFeature, match=f"{directory} of .* is a symbolic link"):
        ds.cleanup_old_versions(timedelta(0))
    assert set(tmp_path.rglob("*")) == before


def test_links_inside_are_not_followed(tmp_path: Path) -> None:
    ds = overwritten(seeded_world(open_store(tmp_path / "t"), clock=SeededClock(time.time_ns() + 9 * DAYS)), 3)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.lance").write_text("precious")
    (outside / "1.blob").write_text("precious")
    (tmp_path / "t" / "data" / "linked").symlink_to(outside)
    (tmp_path / "t" / "data" / "link.lance").symlink_to(outside / "a.lance")
    ds.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert (outside / "a.lance").exists()
    assert (outside / "1.blob").exists()
    assert not os.path.lexists(tmp_path / "t" / "data" / "link.lance")


def test_damaged_manifests(world: World) -> None:
    """One that stays may name any file, so nothing is removed. One that goes has nothing to say."""
    ds = overwritten(world, 4)
    ds.tags.create("keep", 2)
    sound = world.store.get(manifest_path(2))
    world.store.put(manifest_path(2), b"junk")
    before = files(world, "")
    with pytest.raises(CorruptTable):
        ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert files(world, "") == before
    world.store.put(manifest_path(2), sound)
    world.store.put(manifest_path(1), b"junk")
    stats = ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert (stats.old_versions, stats.data_files_removed) == (2, 1)
    everything_is_read(ds)


def test_a_table_that_was_replaced(world: World) -> None:
    ds = overwritten(world, 3)
    for info in list(world.store.list("")):
        world.store.delete(info.path)
    new = overwritten(world, 3)
    with pytest.raises(VersionNotFound):
        ds.cleanup_old_versions(timedelta(0))
    assert numbers(new) == [1, 2, 3]


def test_files_that_could_not_be_deleted_are_counted_and_go_next_time(world: World) -> None:
    ds = overwritten(world, 3)
    faulty = FaultyStore(world.store, on_call(FailBefore(), method="delete", path="data/*"))
    stats = tw.dataset(replace(world, store=faulty)).cleanup_old_versions(retain_versions=1)
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (2, 0, 2)
    assert len(files(world, "_cleanup")) == 1
    explained = ds.explain_cleanup_old_versions(retain_versions=1)
    assert {file.reason for file in explained.candidate_files} == {
        "only versions that an interrupted cleanup removed named it"
    }
    stats = ds.cleanup_old_versions(retain_versions=1)
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (0, 2, 0)
    assert not files(world, "_cleanup")


@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()], ids=["fails", "loses the reply"])
def test_a_manifest_whose_deletion_fails(world: World, fault: Any) -> None:
    """A version that is still listed keeps its files; after a lost reply it is gone."""
    ds = overwritten(world, 3)
    faulty = FaultyStore(world.store, on_call(fault, method="delete", path=manifest_path(1)))
    stats = tw.dataset(replace(world, store=faulty)).cleanup_old_versions(retain_versions=1)
    stuck = isinstance(fault, FailBefore)
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == ((1, 1, 1) if stuck else (2, 2, 0))
    assert numbers(ds) == ([1, 3] if stuck else [3])
    everything_is_read(ds)
    ds.cleanup_old_versions(retain_versions=1)
    assert [len(files(world, d)) for d in ("data", "_versions", "_cleanup")] == [1, 1, 0]


def test_an_old_journal_does_no_harm(world: World) -> None:
    """It names files that versions need, and some that are gone."""
    ds = overwritten(world, 2)
    world.store.put("_cleanup/old.json", encode_journal([], {*files(world, "data"), "data/gone.lance"}))
    assert ds.cleanup_old_versions().bytes_removed == 0
    everything_is_read(ds)
    ds.cleanup_old_versions(retain_versions=1)
    everything_is_read(ds)
    assert len(files(world, "data")) == 1


def during(world: World, at: Callable[[Call], bool], action: Callable[[], Any]) -> tw.LanceDataset:
    """A dataset whose first matching storage call is preceded by ``action``."""
    done: list[Call] = []

    def plan(call: Call) -> Any:
        if done or not at(call):
            return None
        done.append(call)
        return Pause(lambda _: action())

    return tw.dataset(replace(world, store=FaultyStore(world.store, plan)))


def _first_listing_of_data(call: Call) -> bool:
    return call.method == "list" and call.path == "data"


def test_a_tag_that_comes_during_the_survey(world: World) -> None:
    ds = overwritten(world, 4)
    late = during(world, _first_listing_of_data, lambda: ds.tags.create("late", 2))
    with pytest.raises(TaggedVersions):
        late.cleanup_old_versions(retain_versions=1)
    assert numbers(ds) == [1, 2, 3, 4]
    ds.tags.delete("late")
    late = during(world, _first_listing_of_data, lambda: ds.tags.create("late", 2))
    late.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert numbers(ds) == [2, 4]
    everything_is_read(ds)


def _first_manifest_deleted(call: Call) -> bool:
    return call.method == "delete" and call.path.startswith("_versions")


def test_a_version_restored_before_its_manifest_went(world: World) -> None:
    """The restore found its version still there; cleanup finds the new version, and keeps what it names."""
    ds = overwritten(world, 4)
    late = during(world, _first_manifest_deleted, lambda: ds.checkout_version(2).restore())
    stats = late.cleanup_old_versions(retain_versions=1)
    assert (stats.old_versions, stats.data_files_removed) == (3, 2)
    assert numbers(ds) == [4, 5]
    ds.checkout_latest()
    everything_is_read(ds)
    assert ds.to_table()["id"].to_pylist() == [0, 1]


@pytest.mark.parametrize("name", ["tag", "branch"])
def test_no_name_for_a_version_that_is_about_to_go(world: World, name: str) -> None:
    """The journal says so, though its manifest is still there."""
    ds = overwritten(world, 4)

    def named() -> None:
        with pytest.raises(VersionNotFound, match="A cleanup is removing it"):
            ds.tags.create("x", 2) if name == "tag" else ds.create_branch("x", 2)

    during(world, _first_manifest_deleted, named).cleanup_old_versions(retain_versions=1)
    assert (ds.tags.list(), ds.branches.list(), numbers(ds)) == ({}, {}, [4])
    assert not files(world, "tree")


def test_the_journal_of_an_interrupted_cleanup_does_not_last(world: World) -> None:
    """Its versions can't be named until a cleanup has run after an hour, whether or not that one removes them."""
    ds = overwritten(world, 4)
    world.store.put("_cleanup/old.json", encode_journal([2], files(world, "data")))
    with pytest.raises(VersionNotFound, match="run it again"):
        ds.tags.create("x", 2)
    ds.cleanup_old_versions()
    assert files(world, "_cleanup")
    tw.dataset(later(world, 0.05)).cleanup_old_versions()
    assert not files(world, "_cleanup")
    ds.tags.create("x", 2)
    everything_is_read(ds)


def test_a_version_that_is_gone_can_t_be_tagged_restored_or_branched(world: World) -> None:
    ds = overwritten(world, 3)
    old = ds.checkout_version(1)
    ds.cleanup_old_versions(retain_versions=1)
    for call in (
        lambda: old.restore(),
        lambda: ds.tags.create("x", 1),
        lambda: ds.create_branch("b", 1),
        lambda: old.create_branch("b"),
        lambda: ds.checkout_version(1),
    ):
        with pytest.raises(VersionNotFound, match=r"cleaned up|does not exist|was not found"):
            call()
    assert numbers(ds) == [3]
    assert ds.tags.list() == {}
    assert ds.branches.list() == {}


@pytest.mark.parametrize("update", [False, True], ids=["create", "update"])
def test_a_version_cleaned_up_while_it_is_tagged(world: World, update: bool) -> None:
    ds = overwritten(world, 3)
    if update:
        ds.tags.create("x", 3)

    def cleaned(call: Call) -> None:
        ds.cleanup_old_versions(retain_versions=1)

    plan = on_call(Pause(cleaned), method="put" if update else "put_if_absent", path="_refs/tags/*", nth=0)
    late = tw.dataset(replace(world, store=FaultyStore(world.store, plan)))
    with pytest.raises(VersionNotFound):
        (late.tags.update if update else late.tags.create)("x", 1)
    assert {name: tag["version"] for name, tag in ds.tags.list().items()} == ({"x": 3} if update else {})


def test_a_version_cleaned_up_while_a_branch_is_created_from_it(world: World) -> None:
    ds = overwritten(world, 3)

    def cleaned(call: Call) -> None:
        ds.cleanup_old_versions(retain_versions=1)

    plan = on_call(Pause(cleaned), method="put_if_absent", path="_refs/branches/*", nth=0)
    late = tw.dataset(replace(world, store=FaultyStore(world.store, plan)))
    with pytest.raises(VersionNotFound):
        late.create_branch("b", 1)
    assert ds.branches.list() == {}
    assert not files(world, "tree")


def test_a_version_cleaned_up_while_it_is_restored(world: World) -> None:
    """It was read, and is about to be published: cleanup finds the transaction, and keeps the files."""
    ds = overwritten(world, 3)

    def cleaned(call: Call) -> None:
        ds.cleanup_old_versions(retain_versions=1)

    plan = on_call(Pause(cleaned), method="put_if_absent", path="_versions/*", nth=0)
    late = tw.dataset(replace(world, store=FaultyStore(world.store, plan)))
    late.checkout_version(1).restore()
    assert numbers(ds) == [3, 4]
    everything_is_read(ds)
    ds.checkout_latest()
    assert ds.to_table()["id"].to_pylist() == [1]
    assert ds.cleanup_old_versions(retain_versions=1).data_files_removed == 1
    assert len(files(world, "data")) == 1


def test_a_version_that_is_gone_before_it_is_restored(world: World) -> None:
    ds = overwritten(world, 3)
    old = ds.checkout_version(1)
    ds.cleanup_old_versions(retain_versions=1)
    with pytest.raises(VersionNotFound):
        old.restore()
    assert numbers(ds) == [3]


def test_deletes_are_paced(world: World) -> None:
    ds = overwritten(world, 5)
    ds.cleanup_old_versions(retain_versions=1, delete_rate_limit=2)
    assert sum(world.clock.slept) >= 3  # type: ignore[attr-defined]
    assert numbers(ds) == [5]


def test_a_store_that_does_not_list(world: World) -> None:
    overwritten(world, 3)
    faulty = FaultyStore(world.store, on_call(FailBefore(), method="list", path="data"))
    before = files(world, "")
    with pytest.raises(StorageError):
        tw.dataset(replace(world, store=faulty)).cleanup_old_versions(retain_versions=1)
    assert files(world, "") == before


def test_files_that_a_killed_writer_did_not_finish(tmp_path: Path) -> None:
    """On a local disk they have names of their own, which listings leave out; in an index that is kept, too."""
    ds = tw.write_dataset({"id": range(20)}, tmp_path / "t.lance")
    ds.create_scalar_index("id", "BTREE")
    index = next((tmp_path / "t.lance" / "_indices").iterdir())
    names = ("_deletions/0-1-7.arrow#1", "_transactions/1-x.txn#22", f"_indices/{index.name}/page_data.lance#333")
    left = [tmp_path / "t.lance" / name for name in names]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    plan = ds.explain_cleanup_old_versions(retain_versions=1000)
    assert plan.waiting_files == 3 and not plan.candidate_files
    stats = ds.cleanup_old_versions(retain_versions=1000, delete_unverified=True)
    assert (stats.deletion_files_removed, stats.transaction_files_removed, stats.index_files_removed) == (1, 1, 1)
    assert not any(path.exists() for path in left) and ds.count_rows("id = 3") == 1
    ds.validate()
