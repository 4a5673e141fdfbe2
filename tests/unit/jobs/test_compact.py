"""Compaction as a job: groups that fail, groups that others took, files that go."""

from __future__ import annotations

import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import CommitConflict, CompactionIncomplete, InvalidRequest
from tablewright.optimize import Compaction


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
