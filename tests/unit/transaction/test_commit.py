"""The commit loop on a memory store: races, lost replies, rebases, and what it leaves behind."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablewright.errors import (
    AccessDenied,
    CommitConflict,
    CommitUnknown,
    InvalidRequest,
    StorageError,
    TableExists,
    VersionNotFound,
)
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import DataFile, DeletionFileType, Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.naming import HINT_PATH, decode_hint, deletion_path, encode_hint, manifest_path
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    Append,
    CreateIndex,
    Delete,
    MapUpdate,
    Operation,
    Overwrite,
    Restore,
    Transaction,
    Update,
    UpdateConfig,
    UpdateMode,
)
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import MemoryStore, open_store
from tablewright.testing.faulty_store import (
    EVERY_FAULT,
    Call,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Pause,
    SimulatedCrash,
    at_call,
    on_call,
)
from tablewright.testing.worlds import SeededClock, seeded_world
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import CommitOptions, Committed, commit
from tablewright.transaction.detached import commit_detached
from tablewright.world import World

SCHEMA = Schema.from_arrow(pa.schema({"a": pa.int64()}))


def fragment(name: str = "x", rows: int = 10) -> Fragment:
    file = DataFile(path=f"{name}.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)
    return Fragment(id=0, files=(file,), physical_rows=rows)


@pytest.fixture
def world() -> World:
    return seeded_world(open_store(f"memory://{uuid.uuid4()}"), 1)


def transaction(world: World, base: Snapshot | None, operation: Operation) -> Transaction:
    version = 0 if base is None else base.version
    return Transaction(read_version=version, uuid=str(world.ids.uuid()), operation=operation)


def do(world: World, base: Snapshot | None, operation: Operation, **more: object) -> Committed:
    return commit(world, transaction(world, base, operation), base=base, **more)  # type: ignore[arg-type]


def create(world: World, *fragments: Fragment) -> Snapshot:
    return do(world, None, Overwrite(fragments=fragments, schema=SCHEMA)).snapshot


def append(name: str = "y") -> Append:
    return Append(fragments=(fragment(name),))


def numbers(world: World) -> list[int]:
    return [entry.version for entry in list_versions(world.store)]


def deletion_files(snapshot: Snapshot) -> list[str]:
    return [deletion_path(f.id, f.deletion) for f in snapshot.fragments if f.deletion is not None]


def files(world: World, directory: str) -> list[str]:
    return sorted(info.path for info in world.store.list(directory))


def test_a_table_grows_version_by_version(world: World) -> None:
    first = create(world, fragment())
    second = do(world, first, append()).snapshot
    assert (first.version, second.version, list(second.fragments.ids)) == (1, 2, [0, 1])
    reread = open_snapshot(world)
    assert reread.manifest == second.manifest
    assert reread.file.transaction == second.file.transaction
    assert len(files(world, "_transactions")) == 2


def test_v1_names_stay_v1(world: World) -> None:
    first = do(
        world, None, Overwrite(fragments=(), schema=SCHEMA), options=CommitOptions(v2_manifest_names=False)
    ).snapshot
    second = do(world, first, append()).snapshot
    assert (first.entry.path, second.entry.path) == ("_versions/1.manifest", "_versions/2.manifest")


def test_two_creations_give_one_table(world: World) -> None:
    create(world)
    with pytest.raises(TableExists, match='mode="append"'):
        create(world)
    assert (numbers(world), len(files(world, "_transactions"))) == ([1], 1)


def test_a_stale_append_lands_after_what_came_in_between(world: World) -> None:
    base = create(world, fragment())
    for name in "bcd":
        do(world, base, append(name))
    assert sorted(f.files[0].path for f in open_snapshot(world).fragments) == [
        "b.lance",
        "c.lance",
        "d.lance",
        "x.lance",
    ]
    assert list(open_snapshot(world).fragments.ids) == [0, 1, 2, 3]


def test_a_race_for_the_same_number_is_lost_once_and_won_then(world: World) -> None:
    base = create(world)
    racing: list[str] = []

    def other_writer_first(call: Call) -> Fault | None:
        if call.method == "put_if_absent" and not racing:
            return Pause(lambda _: (racing.append("x"), do(world, base, append("theirs")))[0])
        return None

    ours = replace(world, store=FaultyStore(world.store, other_writer_first))
    committed = commit(ours, transaction(world, base, append("ours")), base=base)
    assert (committed.attempts, committed.snapshot.version, numbers(world)) == (2, 3, [1, 2, 3])


def test_a_slow_writer_among_quick_ones_catches_up_before_it_tries(world: World) -> None:
    """For every three versions that we read, somebody adds one: trying after the first look would lose each time."""
    base = create(world)
    newest = base
    for number in range(27):
        newest = do(world, newest, append(f"before-{number}")).snapshot
    read: set[str] = set()

    def quick_writers(call: Call) -> Fault | None:
        if not call.method.startswith("get") or not call.path.startswith("_versions/") or call.path in read:
            return None
        read.add(call.path)
        return Pause(lambda _: do(world, newest, append(f"meanwhile-{len(read)}"))) if len(read) % 3 == 0 else None

    ours = replace(world, store=FaultyStore(world.store, quick_writers))
    committed = commit(ours, transaction(world, base, append("ours")), base=base)
    assert committed.attempts == 1
    assert 40 <= committed.snapshot.version <= 50


def test_waiting_is_measured_in_tries_and_not_in_what_was_waited_before(world: World) -> None:
    base = create(world)
    clock = SeededClock()
    ours = replace(
        world,
        store=FaultyStore(
            world.store,
            on_call(Pause(lambda call: do(world, base, append(f"{call.index}"))), method="put_if_absent"),
        ),
        clock=clock,
        jitter=lambda: 1.0,
    )
    with pytest.raises(CommitConflict, match="after 20 retries"):
        commit(ours, transaction(world, base, append("ours")), base=base)
    assert len(clock.slept) == 20 and clock.slept == sorted(clock.slept)
    assert clock.slept[0] > 0 and clock.slept[-1] <= 8.5 * clock.slept[0]


@pytest.mark.parametrize("fault", [LoseReply(), DenyCreation(), FailBefore()])
def test_whatever_the_reply_the_version_appears_once(world: World, fault: Fault) -> None:
    base = create(world)
    store = FaultyStore(world.store, on_call(fault, method="put_if_absent", nth=0))
    committed = commit(replace(world, store=store), transaction(world, base, append()), base=base)
    assert (committed.snapshot.version, numbers(world)) == (2, [1, 2])
    assert len(open_snapshot(world).fragments) == 1


def test_our_own_commit_of_a_lost_attempt_is_recognised_later(world: World) -> None:
    base = create(world)
    again = transaction(world, base, append())
    commit(world, again, base=base)
    do(world, base, append("z"))
    assert commit(world, again, base=base).snapshot.version == 2
    assert numbers(world) == [1, 2, 3]


@pytest.mark.parametrize("inline_bytes_max", [1 << 16, 0], ids=["inline", "in its own file"])
@pytest.mark.parametrize("fault", [LoseReply(), DenyCreation()])
def test_a_doubtful_reply_costs_no_try(
    world: World, fault: Fault, inline_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is settled where it came, before anybody looks for newer versions: with one try, that is all there is."""
    monkeypatch.setattr("tablewright.transaction.commit._INLINE_BYTES_MAX", inline_bytes_max)
    base, clock = create(world), SeededClock()
    for number, options in enumerate([CommitOptions(max_retries=0), CommitOptions()]):
        store = FaultyStore(world.store, on_call(fault, method="put_if_absent", nth=0))
        ours = transaction(world, base, append(f"{number}"))
        committed = commit(replace(world, store=store, clock=clock), ours, base=base, options=options)
        assert (committed.attempts, committed.snapshot.version, clock.slept) == (1, 2 + number, [])
        base = committed.snapshot
    assert numbers(world) == [1, 2, 3] and len(files(world, "_transactions")) == 3


@pytest.mark.parametrize("fault", [LoseReply(), DenyCreation()])
def test_a_doubtful_reply_to_a_creation_is_settled(world: World, fault: Fault) -> None:
    """There is no second try: a table that we made ourselves must not look like another's."""
    ours = replace(world, store=FaultyStore(world.store, on_call(fault, method="put_if_absent", nth=0)))
    assert create(ours, fragment()).version == 1
    assert len(files(world, "_transactions")) == 1


@pytest.mark.parametrize("fault", [LoseReply(), DenyCreation()])
def test_a_doubtful_reply_to_a_detached_commit_is_settled(world: World, fault: Fault) -> None:
    base = create(world, fragment())
    ours = replace(world, store=FaultyStore(world.store, on_call(fault, method="put_if_absent", nth=0)))
    detached = commit_detached(ours, transaction(world, base, append()), base)
    assert open_snapshot(world, detached.version).fragments.total_live_rows == 20


def test_a_strict_overwrite_of_unknown_end_is_recognised_when_it_runs_again(world: World) -> None:
    """It was there. To say that a newer version forbids it would be: nothing of ours is visible."""
    base = create(world, fragment())
    again = transaction(world, base, Overwrite(fragments=(), schema=SCHEMA))
    silent = FaultyStore(world.store, lambda call: LoseReply() if call.path == manifest_path(2) else None)
    strict = CommitOptions(max_retries=0)
    with pytest.raises(CommitUnknown):
        commit(replace(world, store=silent), again, base=base, options=strict)
    do(world, open_snapshot(world), append())
    assert commit(world, again, base=base, options=strict).snapshot.version == 2
    assert numbers(world) == [1, 2, 3]


def test_when_nobody_answers_the_outcome_is_unknown(world: World) -> None:
    base = create(world)

    def silent(call: Call) -> Fault | None:
        return (
            FailBefore() if call.path.startswith("_versions/1844") and call.method in ("put_if_absent", "get") else None
        )

    with pytest.raises(CommitUnknown) as caught:
        commit(replace(world, store=FaultyStore(world.store, silent)), transaction(world, base, append()), base=base)
    assert caught.value.version == 2
    assert len(files(world, "_transactions")) == 2, "what may have been committed keeps its files"


def test_a_refusal_is_final(world: World) -> None:
    base = create(world)
    store = FaultyStore(world.store, on_call(FailBefore(AccessDenied("no")), method="put_if_absent"))
    with pytest.raises(AccessDenied):
        commit(replace(world, store=store), transaction(world, base, append()), base=base)
    assert numbers(world) == [1]


def test_an_incompatible_change_in_between_fails_and_leaves_no_transaction(world: World) -> None:
    base = create(world, fragment())
    do(world, base, Overwrite(fragments=(), schema=SCHEMA))
    with pytest.raises(CommitConflict, match="Incompatible transaction") as caught:
        do(world, base, append())
    assert (caught.value.version, caught.value.retryable) == (2, False)
    assert len(files(world, "_transactions")) == 2


def test_retries_run_out(world: World) -> None:
    base = create(world)

    def always_first(call: Call) -> Fault | None:
        if call.method != "put_if_absent":
            return None
        return Pause(lambda _: do(world, open_snapshot(world), append("t")))

    store = FaultyStore(world.store, always_first)
    with pytest.raises(CommitConflict, match="after 2 retries"):
        commit(
            replace(world, store=store),
            transaction(world, base, append()),
            base=base,
            options=CommitOptions(max_retries=2),
        )
    assert numbers(world) == [1, 2, 3, 4]


def test_a_strict_overwrite_fails_on_any_newer_version(world: World) -> None:
    base = create(world)
    do(world, base, append())
    with pytest.raises(CommitConflict, match="after 0 retries"):
        do(world, base, Overwrite(fragments=(), schema=SCHEMA), options=CommitOptions(max_retries=0))
    assert do(world, base, Overwrite(fragments=(), schema=SCHEMA)).snapshot.version == 3


def test_a_version_without_transaction_can_not_be_passed(world: World) -> None:
    base = create(world)
    do(world, base, append())
    path = manifest_path(2)
    file = decode_manifest_file(world.store.get(path), path)
    world.store.put(path, encode_manifest_file(replace(file.manifest, transaction_file=""), b""))
    with pytest.raises(CommitConflict, match="does not have a transaction file"):
        do(world, base, append("z"))


def test_restore_brings_back_and_needs_the_version(world: World) -> None:
    first = create(world, fragment())
    second = do(world, first, append()).snapshot
    third = do(world, second, Restore(version=1)).snapshot
    assert (third.version, list(third.fragments.ids), third.manifest.max_fragment_id) == (3, [0], 1)
    with pytest.raises(VersionNotFound, match="Version 9"):
        do(world, third, Restore(version=9))


def test_a_detached_version_is_never_the_latest(world: World) -> None:
    base = create(world)
    detached = commit_detached(world, transaction(world, base, append()), base)
    assert detached.version >> 63 == 1
    assert open_snapshot(world).version == 1
    assert open_snapshot(world, detached.version).fragments.total_live_rows == 10


def test_the_hint_follows(world: World, tmp_path: object) -> None:
    local = seeded_world(open_store(str(tmp_path)), 1)
    do(local, create(local), append())
    assert decode_hint(local.store.get(HINT_PATH)) == 2


def test_bad_options_are_refused() -> None:
    for wrong in ({"max_retries": -1}, {"timeout_seconds": 0}):
        with pytest.raises(InvalidRequest):
            CommitOptions(**wrong)  # type: ignore[arg-type]


class TestUnitingDeletions:
    """Two writers delete different rows of one fragment."""

    def deleting(self, world: World, base: Snapshot, offsets: set[int]) -> tuple[Transaction, AffectedRows]:
        target = base.fragments[0]
        known = base.deletion_vector(target) or RowSet()
        union = known | RowSet.of(sorted(offsets))
        file, _ = write_deletion_vector(
            world.store, 0, union, base.version, world.ids.u64(), DeletionFileType.ARROW_ARRAY
        )
        touched = target.with_deletion(file)
        delete = Delete(updated_fragments=(touched,), deleted_fragment_ids=(), predicate="")
        return transaction(world, base, delete), AffectedRows({0: RowSet.of(offsets)})

    def both(self, world: World, first: set[int], second: set[int], rows: int = 10) -> Snapshot:
        base = create(world, fragment(rows=rows))
        one, _ = self.deleting(world, base, first)
        two, affected = self.deleting(world, base, second)
        commit(world, one, base=base)
        return commit(world, two, base=base, affected=affected).snapshot

    def test_different_rows_both_commit(self, world: World) -> None:
        after = self.both(world, {1, 2}, {5})
        vector = after.deletion_vector(after.fragments[0])
        assert vector is not None
        assert list(vector.to_numpy()) == [1, 2, 5]
        assert after.fragments[0].deletion is not None
        assert after.fragments[0].deletion.file_type == DeletionFileType.BITMAP
        assert after.file.transaction is not None
        assert after.file.transaction.read_version == 2

    def test_the_last_rows_take_the_fragment_with_them(self, world: World) -> None:
        after = self.both(world, {0, 1}, {2}, rows=3)
        assert len(after.fragments) == 0

    def test_a_row_deleted_twice_is_no_conflict_and_counts_once(self, world: World) -> None:
        base = create(world, fragment())
        one, _ = self.deleting(world, base, {1, 2})
        two, affected = self.deleting(world, base, {2, 5})
        commit(world, one, base=base)
        committed = commit(world, two, base=base, affected=affected)
        vector = committed.snapshot.deletion_vector(committed.snapshot.fragments[0])
        assert vector is not None
        assert list(vector.to_numpy()) == [1, 2, 5]
        assert committed.affected is not None
        assert committed.affected.offsets == {0: RowSet.of([5])}

    def test_files_that_a_rebase_made_needless_are_gone(self, world: World) -> None:
        after = self.both(world, {1}, {5})
        for extra in (open_snapshot(world, 2), after):
            used = {f"_deletions/{name.rsplit('/', 1)[-1]}" for name in deletion_files(extra)}
            assert used <= set(files(world, "_deletions"))
        assert len(files(world, "_deletions")) == 2
        assert len(files(world, "_transactions")) == 3

    def test_without_affected_rows_a_common_fragment_conflicts(self, world: World) -> None:
        base = create(world, fragment())
        one, _ = self.deleting(world, base, {1})
        two, _ = self.deleting(world, base, {2})
        commit(world, one, base=base)
        with pytest.raises(CommitConflict, match="affected_rows"):
            commit(world, two, base=base)

    def test_an_update_unites_too_and_brings_its_new_rows(self, world: World) -> None:
        base = create(world, fragment())
        one, _ = self.deleting(world, base, {1})
        two, affected = self.deleting(world, base, {2})
        assert isinstance(two.operation, Delete)
        update = Update(updated_fragments=two.operation.updated_fragments, new_fragments=(fragment("new", 1),))
        commit(world, one, base=base)
        after = commit(world, replace(two, operation=update), base=base, affected=affected).snapshot
        assert after.fragments.total_live_rows == 9

    def test_several_versions_in_between_and_a_race(self, world: World) -> None:
        base = create(world, fragment())
        ours, affected = self.deleting(world, base, {9})
        for offset in range(3):
            theirs, rows = self.deleting(world, open_snapshot(world), {offset})
            commit(world, theirs, base=open_snapshot(world), affected=rows)
        do(world, open_snapshot(world), UpdateConfig(config_updates=MapUpdate(entries={"k": "v"})))
        after = commit(world, ours, base=base, affected=affected).snapshot
        assert (after.version, after.fragments.total_live_rows) == (6, 6)


def test_a_recheck_sees_every_newer_version_before_it_is_built_upon(world: World) -> None:
    base = create(world)
    seen: list[int] = []
    do(world, base, append("a"), recheck=lambda newest: seen.append(newest.version))
    assert seen == []
    do(world, base, append("b"), recheck=lambda newest: seen.append(newest.version))
    assert seen == [2]

    def refuse(newest: Snapshot) -> None:
        raise CommitConflict("Update", "Append", newest.version)

    with pytest.raises(CommitConflict):
        do(world, base, append("c"), recheck=refuse)
    assert numbers(world) == [1, 2, 3]


def test_memory_stores_are_shared_by_address() -> None:
    assert isinstance(open_store("memory://shared-by-address"), MemoryStore)


def test_an_index_past_rewritten_columns_leaves_their_fragments_out(world: World) -> None:
    base = create(world, fragment("x"), fragment("y"))
    entry = IndexMetadata(
        uuid=uuid.uuid4(), fields=(0,), name="i", dataset_version=1, fragment_bitmap=BitMap([0, 1]).serialize()
    )
    rewritten = replace(base.fragments[0], files=(replace(base.fragments[0].files[0], path="new.lance"),))
    update = Update(updated_fragments=(rewritten,), fields_modified=(0,), update_mode=UpdateMode.REWRITE_COLUMNS)
    do(world, base, update)
    after = do(world, base, CreateIndex(new_indices=(entry,), removed_indices=())).snapshot
    assert set(after.manifest.indices[0].coverage or ()) == {1}
    assert after.file.transaction is not None
    assert isinstance(after.file.transaction.operation, CreateIndex)
    assert set(after.file.transaction.operation.new_indices[0].coverage or ()) == {1}


# ---- what is no longer there


def _drop(world: World) -> None:
    for path in files(world, ""):
        world.store.delete(path)


def test_a_hint_too_low_does_not_lead_below_the_latest_version(world: World) -> None:
    tagged = create(world, fragment())
    for name in "bcd":
        do(world, open_snapshot(world), append(name))
    world.store.delete(manifest_path(2))
    world.store.delete(manifest_path(3))
    local = replace(world, store=FaultyStore(world.store))  # a store that keeps a hint
    local.store.put(HINT_PATH, encode_hint(1))
    with pytest.raises(CommitConflict, match="version 2 was removed before we saw it"):
        do(local, tagged, append("z"))
    assert numbers(world) == [1, 4]


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_a_table_dropped_and_created_again_is_another_table(world: World, versions: int) -> None:
    create(world, fragment("old"))
    stale = do(world, open_snapshot(world), append("older")).snapshot
    _drop(world)
    create(world, fragment("new"))
    for number in range(1, versions):
        do(world, open_snapshot(world), append(f"new-{number}"))
    with pytest.raises(VersionNotFound, match="replaced"):
        do(world, stale, append("late"))
    assert numbers(world) == list(range(1, versions + 1))
    assert len(files(world, "_transactions")) == versions


@pytest.mark.parametrize("then_create", [False, True])
def test_a_table_dropped_just_before_the_manifest_is_put(world: World, then_create: bool) -> None:
    """The name of the next version is free again; what was put there is taken back."""
    base = create(world, fragment("old"))

    def replaced(call: Call) -> None:
        _drop(world)
        if then_create:
            create(world, fragment("new"))

    late = replace(world, store=FaultyStore(world.store, on_call(Pause(replaced), method="put_if_absent", nth=0)))
    with pytest.raises(VersionNotFound, match="nothing of this commit is there"):
        do(late, base, append("late"))
    assert numbers(world) == ([1] if then_create else [])
    assert len(files(world, "_transactions")) == then_create


def test_a_table_dropped_after_the_commit_keeps_the_versions_of_the_next_one(world: World) -> None:
    """The version that we published went with the table; the same number of the new table is not ours to remove."""
    base = create(world, fragment("old"))

    def replaced(call: Call) -> None:
        _drop(world)
        do(world, create(world, fragment("new")), append("newer"))

    path = f"_transactions/{base.manifest.transaction_file}"
    late = replace(world, store=FaultyStore(world.store, on_call(Pause(replaced), method="head", path=path, nth=1)))
    with pytest.raises(VersionNotFound, match="replaced"):
        do(late, base, append("late"))
    assert numbers(world) == [1, 2]


def test_a_commit_onto_what_others_built_on_is_unknown(world: World) -> None:
    """Below ours the version is gone, and above it there is another one that shares no file with ours: nobody can tell
    how that came about.
    """
    base = create(world, fragment("old"))

    def confused(call: Call) -> None:
        do(world, open_snapshot(world), Overwrite(fragments=(fragment("above"),), schema=SCHEMA))
        world.store.delete(manifest_path(1))
        for each in files(world, "_transactions"):
            world.store.delete(each)

    path = f"_transactions/{base.manifest.transaction_file}"
    late = replace(world, store=FaultyStore(world.store, on_call(Pause(confused), method="head", path=path, nth=1)))
    with pytest.raises(CommitUnknown, match="others have committed since"):
        do(late, base, append("late"))
    assert numbers(world) == [2, 3]


@pytest.mark.parametrize("ours_too", [False, True], ids=["below", "ours"])
def test_a_version_that_is_cleaned_up_while_the_next_one_is_confirmed(world: World, ours_too: bool) -> None:
    """Cleanup may take the version below ours at any time, and ours as well once another one is there."""
    base = create(world, fragment("old"))

    def cleaned_up(call: Call) -> None:
        ours = open_snapshot(world)
        if ours_too:
            do(world, ours, append("above"))
            world.store.delete(ours.entry.path)
            world.store.delete(f"_transactions/{ours.manifest.transaction_file}")
        world.store.delete(manifest_path(1))
        world.store.delete(path)

    path = f"_transactions/{base.manifest.transaction_file}"
    late = replace(world, store=FaultyStore(world.store, on_call(Pause(cleaned_up), method="head", path=path, nth=1)))
    assert do(late, base, append("late")).snapshot.version == 2
    assert numbers(world) == ([3] if ours_too else [2])


def test_a_restored_version_is_read_after_the_transaction_was_written(world: World) -> None:
    """Cleanup looks for the transaction after it has removed manifests: one of both sees the other."""
    create(world, fragment("old"))
    second = do(world, open_snapshot(world), Overwrite(fragments=(fragment("new"),), schema=SCHEMA)).snapshot
    recording = FaultyStore(world.store)
    do(replace(world, store=recording), second, Restore(version=1))
    calls = [(call.method, call.path) for call in recording.calls]
    written = next(
        place for place, (method, path) in enumerate(calls) if path.startswith("_transactions") and "put" in method
    )
    assert calls.index(("get", manifest_path(1))) > written


def test_a_version_without_a_transaction_file_is_compared_itself(world: World) -> None:
    base = create(world, fragment())
    for path in files(world, "_transactions"):
        world.store.delete(path)
    assert do(world, base, append()).snapshot.version == 2
    world.store.delete(manifest_path(2))
    world.store.put(manifest_path(1), b"junk")
    with pytest.raises(VersionNotFound, match="replaced"):
        do(world, base, append())


def test_a_store_that_does_not_answer_after_the_commit_does_not_undo_it(world: World) -> None:
    base = create(world, fragment())
    path = f"_transactions/{base.manifest.transaction_file}"
    silent = replace(world, store=FaultyStore(world.store, on_call(FailBefore(), method="head", path=path, nth=1)))
    assert do(silent, base, append()).snapshot.version == 2
    assert numbers(world) == [1, 2]


class Slow(FaultyStore):
    """A store that answers slowly: requests that do not depend on each other come at the same time."""

    answers_slowly = lists_in_order = True


class TestSlowStores:
    def test_the_transaction_is_written_while_the_newest_version_is_looked_for(self, world: World) -> None:
        base = create(world)
        barrier = threading.Barrier(4)  # one listing, two names of the next version, one transaction

        def wait(call: Call) -> Fault | None:
            return Pause(lambda _: barrier.wait(timeout=20) and None) if call.index < 4 else None

        store = Slow(world.store, wait)
        do(replace(world, store=store), base, append())
        methods = [call.method for call in store.calls]
        assert sorted(methods[:4]) == ["head", "head", "list", "put"]
        assert methods[4:] == ["head", "put_if_absent", "head"]

    @pytest.mark.parametrize("fault", EVERY_FAULT, ids=lambda fault: type(fault).__name__)
    @pytest.mark.parametrize("index", range(8))
    def test_a_fault_at_every_call(self, world: World, index: int, fault: Fault) -> None:
        base = create(world, fragment())
        slow = replace(world, store=Slow(world.store, at_call(index, fault)))
        committed = True
        try:
            do(slow, base, append())
        except (StorageError, CommitUnknown, SimulatedCrash):
            committed = False
        assert numbers(world) in ([[1, 2]] if committed else [[1], [1, 2]])
        again = do(world, open_snapshot(world), append("z")).snapshot
        assert len(again.fragments) == again.version
        assert open_snapshot(world).manifest == again.manifest

    def test_past_others_the_transaction_of_the_rebase_counts(self, world: World) -> None:
        base = create(world, fragment())
        do(world, base, append("theirs"))
        slow = replace(world, store=Slow(world.store))
        ours = do(slow, base, append("ours")).snapshot
        assert [f.files[0].path for f in ours.fragments] == ["x.lance", "theirs.lance", "ours.lance"]
        assert len(files(world, "_transactions")) == 3

    def test_a_conflict_leaves_no_transaction_behind(self, world: World) -> None:
        base = create(world, fragment())
        do(world, base, Overwrite(fragments=(), schema=SCHEMA))
        slow = replace(world, store=Slow(world.store))
        with pytest.raises(CommitConflict):
            do(slow, base, append("ours"))
        assert len(files(world, "_transactions")) == 2


def test_a_version_is_checked_once(world: World) -> None:
    """What a handle committed before is not checked again with each commit, nor kept as new."""
    snapshot = create(world, fragment())
    for number in range(3):
        snapshot = do(world, snapshot, append(str(number))).snapshot
        assert not snapshot.fragments.fresh
