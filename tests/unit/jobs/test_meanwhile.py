"""What the versions since say: fragments that were taken, files that came, tables that were replaced."""

from __future__ import annotations

import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import VersionNotFound
from tablewright.jobs.meanwhile import look_back, newest_of_table
from tablewright.snapshot.snapshot import Snapshot


def table(name: str) -> tw.LanceDataset:
    return tw.write_dataset({"id": range(40)}, f"memory://meanwhile-{name}", max_rows_per_file=10)


def snapshot_of(dataset: tw.LanceDataset) -> Snapshot:
    return table_of(dataset).snapshot


def files(snapshot: Snapshot) -> set[str]:
    return {f"data/{file.path}" for fragment in snapshot.fragments for file in fragment.files}


def test_rewrites_say_what_they_took_and_brought() -> None:
    dataset = table("rewrites")
    before = files(snapshot_of(dataset))
    dataset.optimize.compact_files(excluded_fragment_ids=[0])
    dataset.delete("id = 1")
    seen = look_back(1, snapshot_of(dataset))
    assert (seen.taken, seen.rewritten, seen.replaced) == ({1, 2, 3}, {1, 2, 3}, None)
    assert seen.files == files(snapshot_of(dataset)) - before
    assert seen.unused([*seen.files, "data/other.lance"]) == {"data/other.lance"}
    assert look_back(dataset.version, snapshot_of(dataset)).rewritten == frozenset()


def test_a_version_that_is_gone_makes_it_incomplete() -> None:
    dataset = table("incomplete")
    dataset.optimize.compact_files()
    dataset.delete("id = 1")
    table_of(dataset).world.store.delete(snapshot_of(dataset.checkout_version(dataset.version - 1)).entry.path)
    seen = look_back(1, snapshot_of(dataset))
    assert seen.rewritten is None
    assert seen.unused(["data/other.lance"]) == set(), "it may be in the version that is gone"


def test_a_table_that_was_replaced_is_a_conflict() -> None:
    dataset = table("replaced")
    tw.write_dataset({"id": [1]}, dataset.uri, mode="overwrite")
    found = look_back(1, snapshot_of(tw.dataset(dataset.uri))).replaced
    assert found is not None and not found.retryable and (found.theirs, found.version) == ("Overwrite", 2)


def test_the_newest_version_shares_no_file_with_one_that_was_cleaned_up() -> None:
    dataset = table("newest")
    known = snapshot_of(dataset)
    dataset.optimize.compact_files()
    store = known.world.store
    for path in (known.entry.path, f"_transactions/{known.manifest.transaction_file}", *files(known)):
        store.delete(path)
    assert newest_of_table(known).version == dataset.version


def test_another_table_is_not_the_newest_version() -> None:
    dataset = table("dropped")
    known = snapshot_of(dataset)
    for entry in list(known.world.store.list("")):
        known.world.store.delete(entry.path)
    other = table("dropped")
    other.optimize.compact_files()
    with pytest.raises(VersionNotFound, match="dropped or replaced"):
        newest_of_table(known)
