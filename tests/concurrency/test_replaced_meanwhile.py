"""A table is dropped (and created again), or a branch deleted, at every storage call of a change that is under way.

The change fails with an error that says so, or it came first and went with the old table. The new table holds its own
rows and can be read; nothing of the old one comes back under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import (
    CommitConflict,
    CommitUnknown,
    CorruptTable,
    InvalidRequest,
    StorageError,
    TableNotFound,
    TablewrightError,
    VersionNotFound,
)
from tablewright.format.naming import manifest_path
from tablewright.jobs.table import Table
from tablewright.storage import Store
from tablewright.storage.base import ObjectNotFound
from tablewright.testing import Call, FaultyStore, Pause, at_call, seeded_world

from .stage import ADDRESS, history, listing, new_store, numbers, on_stage, set_up, within

Change = Callable[[Any], object]

CHANGES: dict[str, Change] = {
    "insert": lambda ds: ds.insert(numbers(10, 12)),
    "delete": lambda ds: ds.delete("id = 1"),
    "update rows": lambda ds: ds.update({"s": "'u'"}, where="id = 1", write_mode="rewrite_rows"),
    "update columns": lambda ds: ds.update({"s": "'u'"}, where="id = 1", write_mode="rewrite_columns"),
    "merge": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(numbers(2, 5))
    ),
    "add columns": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "drop columns": lambda ds: ds.drop_columns(["s"]),
    "config": lambda ds: ds.update_config({"k": "v"}),
    "overwrite": lambda ds: tw.write_dataset(numbers(50, 52), ds, mode="overwrite"),
}
TOLD = (VersionNotFound, TableNotFound, CommitConflict, CorruptTable, StorageError)
"""Data files that went with the table are CorruptTable to a scan of the old version that is under way."""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)


def _dropped(store: Store) -> None:
    for path in [info.path for info in store.list("")]:
        store.delete(path)


def _created(store: Store, versions: int) -> None:
    """Rows 100, 101, … one per version."""

    def create() -> None:
        for number in range(100, 100 + versions):
            tw.write_dataset(numbers(number, number + 1), ADDRESS, mode="append")

    on_stage(store, create, 77)


def _run(store: Store, change: Change, open_it: Callable[[], Any], at: int, rival: Callable[[], None]) -> Any:
    """The error of a change in which `rival` acts before the call of number `at`; `False` if there was no such call."""
    met: list[Call] = []

    def act(call: Call) -> None:
        met.append(call)
        rival()

    with within(seeded_world(store, 1)):
        opened = open_it()
    faulty = FaultyStore(store, at_call(at, Pause(act)))
    with within(seeded_world(faulty, 2)):
        dataset = opened._at(Table(_moved(opened._snapshot, faulty)))
        try:
            change(dataset)
            error = None
        except TablewrightError as raised:
            error = raised
    return error if met else False


def _moved(snapshot: Any, store: Store) -> Any:
    from tablewright.snapshot.refs import branch_world
    from tablewright.snapshot.snapshot import Snapshot

    world = branch_world(seeded_world(store, 2), snapshot.branch)
    return Snapshot(world=world, entry=snapshot.entry, file=snapshot.file)


@pytest.mark.slow
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("versions", [0, 1, 3])
@pytest.mark.parametrize("name", CHANGES)
def test_a_table_dropped_at_every_call(name: str, versions: int) -> None:
    """`versions` is how many the table has that was created in its place."""
    at, lost = 0, 0
    while True:
        store = new_store()
        on_stage(store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS), 5)
        on_stage(store, lambda: tw.write_dataset(numbers(3, 4), ADDRESS, mode="append"), 6)

        def rival(store: Store = store) -> None:
            _dropped(store)
            _created(store, versions)

        error = _run(store, CHANGES[name], lambda: tw.dataset(ADDRESS), at, rival)
        if error is False:
            break
        where = f"{name}, replaced at call {at} by {versions} versions: {error!r}"
        assert error is None or isinstance(error, TOLD), where
        found = history(store)
        own = [list(range(100, 101 + number)) for number in range(versions)]
        if error is not None:
            lost += 1
            assert found == own, where
        elif found != own:  # otherwise it came first, and went with the old table
            assert name == "overwrite" and found == [*own, [50, 51]], where  # it does not depend on what was there
        at += 1
    assert at > 3 and lost, f"{name}: {at} calls, {lost} lost"


@pytest.mark.slow
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_branch_deleted_at_every_call(name: str, again: bool) -> None:
    """`again`: another branch of the same name is created from another version at once."""
    at, lost = 0, 0
    while True:
        store = new_store()
        on_stage(store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS), 5)

        def start() -> None:
            branch = tw.dataset(ADDRESS).create_branch("work")
            branch.insert(numbers(3, 4))

        on_stage(store, start, 6)

        def rival(store: Store = store) -> None:
            def act() -> None:
                tw.dataset(ADDRESS).branches.delete("work")
                if again:
                    tw.dataset(ADDRESS).create_branch("work")

            on_stage(store, act, 9)

        error = _run(store, CHANGES[name], lambda: tw.dataset(ADDRESS).checkout_version(("work", None)), at, rival)
        if error is False:
            break
        where = f"{name}, deleted at call {at}: {error!r}"
        assert error is None or isinstance(error, TOLD), where
        lost += error is not None
        if not again:
            late = sorted(path for path in listing(store) if path.startswith("tree/"))
            assert not [path for path in late if "_versions/" in path], f"{where}: {late}"
            on_stage(store, lambda: tw.dataset(ADDRESS).create_branch("work"), 10)
        seen = on_stage(store, lambda: _contents(("work", None)), 11)
        assert seen == (1, ["id", "s"], [0, 1, 2]), f"{where}: {seen}"
        at += 1
    assert at > 3 and lost, f"{name}: {at} calls, {lost} lost"


def _contents(reference: Any) -> tuple[int, list[str], list[int]]:
    dataset = tw.dataset(ADDRESS).checkout_version(reference)
    return dataset.version, dataset.schema.names, dataset.to_table()["id"].to_pylist()


@pytest.mark.usefixtures("stage")
def test_the_place_of_a_deleted_branch_must_be_free() -> None:
    """A version that a writer of another kind left behind would become the newest of the new branch."""
    store = new_store()

    def act() -> None:
        ds = tw.write_dataset(numbers(0, 3), ADDRESS)
        ds.create_branch("work").insert(numbers(3, 4))
        store.delete("_refs/branches/work.json")
        with pytest.raises(InvalidRequest, match=r"holds version 2.*branches\.delete\('work'\)"):
            ds.create_branch("work")
        ds.branches.delete("work")
        assert ds.create_branch("work").count_rows() == 3

    on_stage(store, act)


def test_a_late_insert_into_a_deleted_branch_on_disk(tmp_path: Any) -> None:
    ds = tw.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t"))
    branch = ds.create_branch("work")
    ds.branches.delete("work")
    with pytest.raises((TableNotFound, VersionNotFound)):
        branch.insert(pa.table({"id": [2]}))
    assert ds.create_branch("work").to_table()["id"].to_pylist() == [1]


def test_an_insert_into_a_table_dropped_and_created_again_on_disk(tmp_path: Any) -> None:
    uri = str(tmp_path / "t")
    stale = tw.write_dataset(pa.table({"id": [1]}), uri)
    tw.LanceDataset.drop(uri)
    tw.write_dataset(pa.table({"id": [7]}), uri)
    with pytest.raises(VersionNotFound, match="was dropped or replaced since it was opened"):
        stale.insert(pa.table({"id": [2]}))
    assert tw.dataset(uri).to_table()["id"].to_pylist() == [7]


def test_an_overwrite_of_a_deleted_branch_on_disk(tmp_path: Any) -> None:
    ds = tw.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t"))
    branch = ds.create_branch("work")
    ds.branches.delete("work")
    with pytest.raises((TableNotFound, VersionNotFound)):
        tw.write_dataset(pa.table({"id": [2]}), branch, mode="overwrite")
    assert not ds.branches.list()
    assert ds.create_branch("work").to_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize("change", [lambda ds: ds.restore(), lambda ds: ds.create_branch("late")])
def test_a_version_number_of_a_table_created_again_is_another_version(tmp_path: Any, change: Change) -> None:
    """Restored, it would take rows from the new table; a branch of it would name data files that are gone."""
    uri = str(tmp_path / "t")
    stale = tw.write_dataset(pa.table({"id": [1]}), uri)
    tw.LanceDataset.drop(uri)
    for number in (7, 8):
        tw.write_dataset(pa.table({"id": [number]}), uri, mode="append")
    with pytest.raises(VersionNotFound, match="was dropped or replaced since it was opened"):
        change(stale)
    assert tw.dataset(uri).to_table()["id"].to_pylist() == [7, 8] and not tw.dataset(uri).branches.list()


REFS: dict[str, Change] = {
    "create a tag": lambda ds: ds.tags.create("late"),
    "create a tag of a number": lambda ds: ds.tags.create("late", 2),
    "move a tag": lambda ds: ds.tags.update("kept", 1),
    "delete a tag": lambda ds: ds.tags.delete("kept"),
    "texts of a tag": lambda ds: ds.tags.replace_metadata("kept", {"a": "b"}),
    "create a branch of a number": lambda ds: ds.create_branch("late", 2),
    "create a branch of a tag": lambda ds: ds.branches.create("late", "kept"),
    "delete a branch": lambda ds: ds.branches.delete("side"),
    "texts of a branch": lambda ds: ds.branches.replace_metadata("side", {"a": "b"}),
}


@pytest.mark.parametrize("name", REFS)
@pytest.mark.parametrize("on_branch", [False, True])
def test_tags_and_branches_of_a_table_created_again_stay(tmp_path: Any, name: str, on_branch: bool) -> None:
    uri = str(tmp_path / "t")
    stale = tw.write_dataset(pa.table({"id": [1]}), uri)
    if on_branch:
        stale = stale.create_branch("side")
    stale.insert(pa.table({"id": [2]}))
    tw.LanceDataset.drop(uri)
    for number in (7, 8):
        new = tw.write_dataset(pa.table({"id": [number]}), uri, mode="append")
    new.tags.create("kept", 2)
    new.create_branch("side", 2)
    before = (new.tags.list(), new.branches.list())
    with pytest.raises(VersionNotFound, match="was dropped or replaced since it was opened"):
        REFS[name](stale)
    assert (new.tags.list(), new.branches.list()) == before
    assert new.checkout_version(("side", None)).count_rows() == 2


@pytest.mark.parametrize("name", REFS)
def test_tags_and_branches_through_a_version_that_was_cleaned_up(tmp_path: Any, name: str) -> None:
    """The data file that its version shares with the newest one shows that it is the same table."""
    stale = tw.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t"))
    new = tw.dataset(stale.uri)
    for number in (2, 3):
        new.insert(pa.table({"id": [number]}))
    new.tags.create("kept", 2)
    new.create_branch("side", 2)
    lance.dataset(stale.uri).cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    if name in ("create a tag", "move a tag"):
        with pytest.raises(VersionNotFound, match="version main:1 does not exist"):
            REFS[name](stale)
    else:
        REFS[name](stale)


@pytest.mark.usefixtures("stage")
def test_objects_that_come_while_a_table_is_dropped_go_too() -> None:
    store = new_store()
    on_stage(store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS), 5)
    late = ["_versions/18446744073709551613.manifest", "data/late.lance"]

    def write(call: Call) -> None:
        for path in late:
            store.put(path, b"late")
        late.clear()

    faulty = FaultyStore(store, lambda call: Pause(write) if call.method == "delete" else None)
    with within(seeded_world(faulty, 3)):
        tw.LanceDataset.drop(ADDRESS)
    assert not listing(store)
    with pytest.raises(ObjectNotFound):
        store.get("data/late.lance")


@pytest.mark.slow
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("name", ["insert", "merge"])
def test_files_that_went_with_the_table_are_not_used_again(name: str) -> None:
    """The new table has no version of the old one's number: that looks like cleanup, and the change runs again."""
    at = 0
    while True:
        store = new_store()
        on_stage(store, lambda: tw.write_dataset(numbers(0, 3), ADDRESS), 5)
        on_stage(store, lambda: tw.write_dataset(numbers(3, 4), ADDRESS, mode="append"), 6)

        def rival(store: Store = store) -> None:
            _dropped(store)
            _created(store, 4)
            for version in (1, 2):
                store.delete(manifest_path(version))

        error = _run(store, CHANGES[name], lambda: tw.dataset(ADDRESS), at, rival)
        if error is False:
            break
        assert error is None or isinstance(error, (*TOLD, CommitUnknown)), f"{name} at call {at}: {error!r}"
        found = on_stage(store, lambda: (tw.dataset(ADDRESS).validate(), _contents(("main", None)))[1], 11)
        assert found[2][:4] == [100, 101, 102, 103], f"{name} at call {at}: {found}"
        at += 1
    assert at > 3
