"""The record of deferred compactions in commits: bitmaps are caught up, groups appended, trims checked."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from pyroaring import FrozenBitMap

import tablewright as tw
from tablewright.errors import CommitConflict
from tablewright.format.fragment_reuse import ReuseHistory
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import REUSE_NAME
from tablewright.format.transaction import CreateIndex, Transaction
from tablewright.indices.reuse import needed_versions, reuse_entry, reuse_history, reused_coverage
from tablewright.snapshot import open_snapshot
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.transaction import deferral
from tablewright.transaction.commit import commit
from tablewright.transaction.deferral import caught_up, deferred_fragments, encoded_entry
from tablewright.world import World


def newest(name: str) -> Snapshot:
    return open_snapshot(World(open_store(f"memory://{name}")))


def table(name: str, *, stable: bool = False) -> tw.LanceDataset:
    """Four fragments of ten rows with a BTREE on id; row 3 deleted."""
    dataset = tw.write_dataset(
        {"id": range(40), "v": range(40)}, f"memory://{name}", max_rows_per_file=10, enable_stable_row_ids=stable
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 3")
    return dataset


def entry_named(snapshot: Snapshot, name: str) -> IndexMetadata:
    (found,) = [index for index in snapshot.manifest.indices if index.name == name]
    return found


def committed(snapshot: Snapshot, operation: CreateIndex) -> Snapshot:
    uuid = str(snapshot.world.ids.uuid())
    transaction = Transaction(read_version=snapshot.version, uuid=uuid, operation=operation)
    return commit(snapshot.world, transaction, base=snapshot).snapshot


def test_the_entry_of_a_deferred_compaction() -> None:
    dataset = table("deferral-entry")
    dataset.optimize.compact_files(defer_index_remap=True)
    snapshot = newest("deferral-entry")
    record = entry_named(snapshot, REUSE_NAME)
    assert (record.fields, record.index_version, record.files) == ((), 0, ())
    assert record.dataset_version == snapshot.version - 1  # the one that reserved ids
    assert sorted(record.coverage or ()) == [4]
    (version,) = reuse_history(snapshot).versions
    assert version.dataset_version == snapshot.version - 1
    assert (version.old_ids, version.new_ids) == (frozenset(range(4)), frozenset({4}))
    index = entry_named(snapshot, "id_idx")
    assert sorted(index.coverage or ()) == [0, 1, 2, 3] and sorted(reused_coverage(snapshot, index)) == [4]
    assert deferred_fragments(snapshot) == frozenset(range(4))


def test_the_next_commit_stores_bitmaps_of_the_fragments_of_now() -> None:
    dataset = table("deferral-caught-up")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.delete("id = 5")
    snapshot = newest("deferral-caught-up")
    assert sorted(entry_named(snapshot, "id_idx").coverage or ()) == [4]
    assert caught_up(snapshot).indices == snapshot.manifest.indices


def test_T16_a_column_rewritten_after_a_deferred_compaction_leaves_the_coverage() -> None:
    """The bitmap still names old fragments when the new one changes: coverage would be translated back to life."""
    dataset = table("deferral-rewritten")
    dataset.optimize.compact_files(defer_index_remap=True)
    before = newest("deferral-rewritten")
    assert sorted(entry_named(before, "id_idx").coverage or ()) == [0, 1, 2, 3]
    dataset.update({"id": "id + 100"})
    dataset = tw.dataset("memory://deferral-rewritten")
    snapshot = newest("deferral-rewritten")
    index = entry_named(snapshot, "id_idx")
    live = set(snapshot.fragments.ids.tolist())
    assert not live & set(reused_coverage(snapshot, index))
    assert dataset.count_rows("id = 7") == 0 and dataset.count_rows("id = 107") == 1


def test_a_second_deferred_compaction_is_appended_under_a_new_uuid() -> None:
    dataset = table("deferral-twice")
    dataset.optimize.compact_files(defer_index_remap=True, excluded_fragment_ids=[2, 3])
    first = entry_named(newest("deferral-twice"), REUSE_NAME)
    dataset.delete("id = 11")
    dataset.optimize.compact_files(defer_index_remap=True)
    snapshot = newest("deferral-twice")
    second = entry_named(snapshot, REUSE_NAME)
    assert second.uuid != first.uuid
    history = reuse_history(snapshot)
    assert [sorted(version.old_ids) for version in history.versions] == [[0, 1], [2, 3, 4]]
    assert sorted(reused_coverage(snapshot, entry_named(snapshot, "id_idx"))) == [5]
    assert [dataset.count_rows(f"id = {id}") for id in (3, 11, 12, 39)] == [0, 0, 1, 1]


def test_a_long_record_is_a_file_that_goes_with_the_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferral, "INLINE_BYTES_MAX", 10)
    dataset = table("deferral-file")
    dataset.optimize.compact_files(defer_index_remap=True)
    snapshot = newest("deferral-file")
    record = entry_named(snapshot, REUSE_NAME)
    path = f"_indices/{record.uuid}/details.binpb"
    assert [info.path for info in snapshot.world.store.list(f"_indices/{record.uuid}")] == [path]
    assert record.files == () and len(record.details_value) < 30
    assert sorted(reused_coverage(snapshot, entry_named(snapshot, "id_idx"))) == [4]
    assert dataset.count_rows("id = 12") == 1


def test_nothing_is_recorded_without_an_index_that_covers_a_group() -> None:
    dataset = tw.write_dataset({"id": range(40)}, "memory://deferral-nothing", max_rows_per_file=10)
    dataset.optimize.compact_files(defer_index_remap=True)
    assert newest("deferral-nothing").manifest.indices == ()


def test_T9_a_record_that_an_index_needs_is_not_dropped() -> None:
    dataset = table("deferral-dropped")
    dataset.optimize.compact_files(defer_index_remap=True)
    snapshot = newest("deferral-dropped")
    record = entry_named(snapshot, REUSE_NAME)
    with pytest.raises(CommitConflict, match="still needs the record"):
        committed(snapshot, CreateIndex(new_indices=(), removed_indices=(record,)))
    assert newest("deferral-dropped").version == snapshot.version
    assert dataset.count_rows("id = 12") == 1


def test_T10_the_version_it_was_built_from_decides_not_the_bitmap() -> None:
    dataset = table("deferral-age")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.delete("id = 5")  # bitmaps are translated now, files are not
    snapshot = newest("deferral-age")
    index = entry_named(snapshot, "id_idx")
    assert sorted(index.coverage or ()) == [4]
    assert needed_versions(snapshot, [index]) == 1
    assert needed_versions(snapshot, [replace(index, dataset_version=snapshot.version)]) == 0
    assert needed_versions(snapshot, [index.with_coverage([77])]) == 0  # has no use for it
    assert needed_versions(snapshot, [replace(index, fragment_bitmap=None)]) == 0


def test_T12_optimize_trims_the_record_once_every_index_was_rewritten() -> None:
    dataset = table("deferral-trim")
    dataset.create_scalar_index("v", "BITMAP")
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.optimize.optimize_indices(index_names=["id_idx"])
    assert reuse_entry(newest("deferral-trim").manifest) is not None  # v_idx still needs it
    assert [dataset.count_rows(text) for text in ("id = 12", "v = 12", "id = 3")] == [1, 1, 0]
    dataset.optimize.optimize_indices()
    assert reuse_entry(newest("deferral-trim").manifest) is None
    assert [dataset.count_rows(text) for text in ("id = 12", "v = 12", "id = 3")] == [1, 1, 0]


def test_a_trim_beside_another_deferred_compaction_is_decided_again() -> None:
    dataset = table("deferral-race")
    dataset.optimize.compact_files(defer_index_remap=True, excluded_fragment_ids=[2, 3])
    stale = newest("deferral-race")
    old = entry_named(stale, REUSE_NAME)
    dataset.optimize.compact_files(defer_index_remap=True)
    with pytest.raises(CommitConflict, match="another one by now"):
        committed(stale, CreateIndex(new_indices=(), removed_indices=(old,)))


def test_T15_an_index_built_on_old_fragments_keeps_its_coverage_through_the_record() -> None:
    dataset = table("deferral-meanwhile")
    stale = newest("deferral-meanwhile")
    built = replace(entry_named(stale, "id_idx"), uuid=UUID(int=9), name="late", dataset_version=stale.version)
    dataset.optimize.compact_files(defer_index_remap=True)
    after = committed(stale, CreateIndex(new_indices=(built,)))
    late = entry_named(after, "late")
    assert sorted(late.coverage or ()) == [0, 1, 2, 3]
    assert sorted(reused_coverage(after, late)) == [4]


def test_an_entry_of_no_versions() -> None:
    table("deferral-empty")
    snapshot = newest("deferral-empty")
    entry, path = encoded_entry(snapshot.world, 7, ReuseHistory(), FrozenBitMap())
    assert (entry.details_value, path, entry.dataset_version) == (b"\x0a\x00", None, 7)
