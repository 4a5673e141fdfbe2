"""What a merge says about a commit that failed. (What merges do is in tests/unit/operations/merge_insert.)"""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, StorageError
from tablewright.jobs.merge.new_columns import commit_columns


def full(*arguments: Any, **options: Any) -> NoReturn:
    error = StorageError("No space left on device")
    error.nothing_written = True
    raise error


@pytest.mark.parametrize("adds", [False, True])
def test_columns_that_were_committed_first_are_something_written(monkeypatch: pytest.MonkeyPatch, adds: bool) -> None:
    ds = tw.write_dataset({"id": [1]}, f"memory://merge-job-{adds}")
    monkeypatch.setattr(f"tablewright.jobs.{'merge.job' if adds else 'attempt'}.commit", full)
    merge = ds.merge_insert("id", schema_evolution=True).when_not_matched_insert_all()
    with pytest.raises(StorageError, match="No space") as caught:
        merge.execute({"id": [2], "n": [0]} if adds else {"id": [2]})
    assert caught.value.nothing_written is not adds
    assert ("The new columns ['n'] were committed before that and stay" in str(caught.value)) is adds
    assert tw.dataset(ds.uri).version == (2 if adds else 1)


def test_columns_of_an_earlier_attempt_are_something_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt adds the columns and loses; the second has nothing to add, and fails."""

    def lost(*arguments: Any, **options: Any) -> NoReturn:
        raise CommitConflict("Update", "Append", 3)

    ds = tw.write_dataset({"id": [1]}, "memory://merge-job-again")
    monkeypatch.setattr("tablewright.jobs.merge.job.commit", lost)
    monkeypatch.setattr("tablewright.jobs.attempt.commit", full)
    merge = ds.merge_insert("id", schema_evolution=True).when_not_matched_insert_all()
    with pytest.raises(StorageError, match="No space") as caught:
        merge.execute({"id": [2], "n": [0]})
    assert not caught.value.nothing_written
    assert tw.dataset(ds.uri).schema.names == ["id", "n"]


def test_columns_that_came_after_another_version_are_something_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns go past an insert of others, so the merge looks again; then the disk is full."""
    ds = tw.write_dataset({"id": [1]}, "memory://merge-job-past")

    def late(*arguments: Any, **options: Any) -> Any:
        tw.dataset(ds.uri).insert({"id": [9]})
        monkeypatch.setattr("tablewright.jobs.attempt.commit", full)
        return commit_columns(*arguments, **options)

    monkeypatch.setattr("tablewright.jobs.merge.job._STRICT_ATTEMPTS", 0)
    monkeypatch.setattr("tablewright.jobs.merge.job.commit_columns", late)
    merge = ds.merge_insert("id", schema_evolution=True).when_not_matched_insert_all()
    with pytest.raises(StorageError, match=r"No space .*The new columns \['n'\] were committed before that") as caught:
        merge.execute({"id": [2], "n": [0]})
    assert not caught.value.nothing_written
    assert tw.dataset(ds.uri).schema.names == ["id", "n"] and tw.dataset(ds.uri).count_rows() == 2
