"""Compaction as a job: groups that fail, groups that others took, files that go."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import AccessDenied, CommitConflict, CompactionIncomplete, CorruptTable, InvalidRequest
from tablewright.format.naming import deletion_path
from tablewright.jobs.attempt import run_job
from tablewright.jobs.compact import CompactJob
from tablewright.operations.compact.options import CompactionOptions
from tablewright.optimize import Compaction
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.testing import FailBefore, FaultyStore, on_call


def table(name: str, fragments: int = 4) -> tw.LanceDataset:
    uri = f"memory://compact-job-{name}"
    return tw.write_dataset({"id": range(10 * fragments), "v": range(10 * fragments)}, uri, max_rows_per_file=10)


def data_files(dataset: tw.LanceDataset) -> set[str]:
    return {entry.path for entry in table_of(dataset).world.store.list("data")}


def used(dataset: tw.LanceDataset) -> set[str]:
    return {f"data/{file.path}" for fragment in table_of(dataset).snapshot.fragments for file in fragment.files}


def test_a_group_that_fails_does_not_spoil_the_others() -> None:
    dataset = table("fails")
    first = table_of(dataset).snapshot.fragments[0]
    table_of(dataset).world.store.delete(f"data/{first.files[0].path}")
    with pytest.raises(CompactionIncomplete, match="1 groups") as caught:
        dataset.optimize.compact_files(target_rows_per_fragment=20)
    assert len(caught.value.errors) == 1
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [0, 1, 4]
    assert dataset.get_fragments()[2].to_table()["id"].to_pylist() == list(range(20, 40))


def test_a_group_that_another_compaction_took_is_dropped_and_its_files_go() -> None:
    dataset = table("taken")
    stale = tw.dataset(dataset.uri)
    plan = Compaction.plan(stale, {"target_rows_per_fragment": 20})
    results = [task.execute(stale) for task in plan.tasks]
    dataset.optimize.compact_files(target_rows_per_fragment=20, excluded_fragment_ids=[2, 3])
    before = data_files(dataset)
    metrics = Compaction.commit(stale, results)
    assert (metrics.groups_dropped, metrics.fragments_removed, metrics.fragments_added) == (1, 2, 1)
    assert stale.to_table()["id"].to_pylist() == list(range(40))
    assert before - data_files(dataset) == {f"data/{results[0].new_fragments[0].files[0].path}"}


def test_all_groups_taken_is_no_error() -> None:
    dataset = table("all-taken")
    stale = tw.dataset(dataset.uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    dataset.optimize.compact_files()
    metrics = Compaction.commit(stale, results)
    assert (metrics.fragments_removed, metrics.groups_dropped) == (0, 1)
    assert used(stale) <= data_files(dataset)


@pytest.mark.parametrize("verb", ["restore", "overwrite"])
def test_rows_that_became_others_are_a_conflict(verb: str) -> None:
    dataset = table(f"others-{verb}")
    stale = tw.dataset(dataset.uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    if verb == "restore":
        dataset.delete("id = 1")
        tw.dataset(dataset.uri, version=1).restore()
    else:
        tw.write_dataset({"id": [1], "v": [1]}, dataset.uri, mode="overwrite")
    with pytest.raises(CommitConflict, match=verb.title()):
        Compaction.commit(stale, results)
    assert not {f"data/{file.path}" for f in results[0].new_fragments for file in f.files} & data_files(dataset)


def test_a_result_is_committed_once() -> None:
    dataset = table("twice")
    results = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    with pytest.raises(InvalidRequest, match="is in two results"):
        Compaction.commit(dataset, results * 2)
    assert dataset.version == 1


def test_nothing_to_do_commits_nothing() -> None:
    dataset = table("nothing", fragments=1)
    assert dataset.optimize.compact_files().fragments_removed == 0
    assert dataset.version == 1


def test_results_that_were_committed_before_keep_their_files() -> None:
    """After a lost reply the caller commits again: the files are the table's now."""
    dataset = table("again")
    stale = tw.dataset(dataset.uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    Compaction.commit(dataset, results)
    metrics = Compaction.commit(stale, results)
    assert (metrics.fragments_removed, metrics.groups_dropped) == (0, 1)
    assert stale.version == dataset.version, "nothing is reserved for nothing"
    assert stale.to_table()["id"].to_pylist() == list(range(40))
    tw.write_dataset({"id": [1], "v": [1]}, dataset.uri, mode="overwrite")
    with pytest.raises(CommitConflict, match="Overwrite"):
        Compaction.commit(stale, results)
    assert tw.dataset(dataset.uri, version=dataset.version).count_rows() == 40
    assert tw.dataset(dataset.uri, version=dataset.version).to_table().num_rows == 40, "an old version is whole"


def test_results_are_kept_until_they_can_not_be_committed() -> None:
    """A store that fails is no reason to throw rows away: the same results are committed later."""
    dataset = table("kept")
    results = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    world = table_of(dataset).world
    faulty = FaultyStore(world.store, on_call(FailBefore(AccessDenied("no")), method="put_if_absent"))
    job = CompactJob(CompactionOptions(), replace(world, store=faulty), [result.rewritten for result in results])
    before = data_files(dataset)
    with pytest.raises(AccessDenied):
        run_job(job, replace(table_of(dataset), snapshot=open_snapshot(replace(world, store=faulty))))
    assert data_files(dataset) == before
    assert Compaction.commit(dataset, results).fragments_added == 1


def test_results_whose_files_are_gone_are_refused() -> None:
    dataset = table("gone")
    results = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    table_of(dataset).world.store.delete(f"data/{results[0].new_fragments[0].files[0].path}")
    with pytest.raises(InvalidRequest, match="Plan the compaction again"):
        Compaction.commit(dataset, results)
    assert dataset.version == 1 and tw.dataset(dataset.uri).version == 1


def clean(dataset: tw.LanceDataset) -> None:
    """All versions but the newest go, and the files that only they used."""
    newest = tw.dataset(dataset.uri)
    store, snapshot = table_of(newest).world.store, table_of(newest).snapshot
    deletions = {deletion_path(f.id, f.deletion) for f in snapshot.fragments if f.deletion is not None}
    kept = used(newest) | deletions | {snapshot.entry.path, f"_transactions/{snapshot.manifest.transaction_file}"}
    for entry in list(store.list("")):
        if entry.path not in kept:
            store.delete(entry.path)


def test_sources_that_another_compaction_took_and_cleanup_removed() -> None:
    """The only group: its files are missing, and yet the table is not corrupt."""
    dataset = table("cleaned")
    stale = tw.dataset(dataset.uri)
    dataset.optimize.compact_files()
    clean(dataset)
    metrics = stale.optimize.compact_files()
    assert (metrics.fragments_removed, metrics.groups_dropped) == (0, 1)
    assert stale.to_table()["id"].to_pylist() == list(range(40))


def test_sources_that_are_missing_are_reported() -> None:
    dataset = table("missing")
    table_of(dataset).world.store.delete(next(iter(used(dataset))))
    with pytest.raises(CorruptTable, match="is missing"):
        dataset.optimize.compact_files()


def test_the_version_that_was_planned_on_was_cleaned_up() -> None:
    """Results were written before; the rows that went meanwhile are hidden, and no file is missing."""
    dataset = table("planned-version")
    stale = tw.dataset(dataset.uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    new = {f"data/{file.path}" for result in results for f in result.new_fragments for file in f.files}
    dataset.delete("id = 3")
    store = table_of(dataset).world.store
    saved = {path: store.get(path) for path in new}
    clean(dataset)
    for path, data in saved.items():
        store.put(path, data)
    assert Compaction.commit(stale, results).rows_hidden == 1
    assert stale.to_table()["id"].to_pylist() == [n for n in range(40) if n != 3]


def test_a_group_whose_columns_can_not_be_carried_fails_alone() -> None:
    dataset = table("carry")
    stale = tw.dataset(dataset.uri)
    plan = Compaction.plan(stale, {"target_rows_per_fragment": 20})
    results = [task.execute(stale) for task in plan.tasks]
    dataset.update({"v": "v + 100"}, where="id in (5, 25)", write_mode="rewrite_columns")
    broken = table_of(dataset).snapshot.fragments.by_id(0)
    table_of(dataset).world.store.delete(f"data/{broken.files[-1].path}")
    before = data_files(dataset)
    with pytest.raises(CompactionIncomplete, match="1 groups"):
        Compaction.commit(stale, results)
    *_, compacted = stale.get_fragments()
    assert [fragment.fragment_id for fragment in stale.get_fragments()] == [0, 1, compacted.fragment_id]
    assert compacted.to_table()["v"].to_pylist() == [n + 100 * (n == 25) for n in range(20, 40)]
    assert data_files(dataset) - before <= used(stale), "what was carried for the group that failed is gone"
    assert before <= data_files(dataset), "its result can be committed again"


def test_a_column_that_may_not_be_null_is_carried_beside_rows_that_are_gone() -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
    data = pa.table({"id": range(40), "v": range(40)}, schema=schema)
    dataset = tw.write_dataset(data, "memory://compact-job-not-null", max_rows_per_file=10)
    stale = tw.dataset(dataset.uri)
    results = [task.execute(stale) for task in Compaction.plan(stale, {"target_rows_per_fragment": 20}).tasks]
    dataset.delete("id < 10")
    dataset.update({"v": "v + 1"}, write_mode="rewrite_columns")
    metrics = Compaction.commit(stale, results)
    assert (metrics.groups_dropped, metrics.fragments_added) == (0, 2)
    assert stale.to_table().sort_by("id").equals(dataset.to_table().sort_by("id"))
