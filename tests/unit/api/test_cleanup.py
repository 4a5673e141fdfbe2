"""`cleanup_old_versions` and its explanation as people call them; what they do is in jobs/test_cleanup.py."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, TableNotFound, VersionNotFound, WrongType
from tablewright.testing import memory_world


@pytest.fixture
def ds() -> tw.LanceDataset:
    dataset = tw.write_dataset({"id": [1]}, memory_world())
    for number in range(3):
        dataset = tw.write_dataset({"id": [number]}, dataset, mode="overwrite")
    return dataset


@pytest.mark.parametrize("verb", ["cleanup_old_versions", "explain_cleanup_old_versions"])
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"older_than": timedelta(days=-1)}, InvalidRequest),
        ({"older_than": 14}, WrongType),
        ({"retain_versions": 0}, InvalidRequest),
        ({"retain_versions": "2"}, WrongType),
        ({"versions": []}, InvalidRequest),
        ({"versions": [99]}, VersionNotFound),
        ({"delete_rate_limit": 0}, InvalidRequest),
    ],
    ids=str,
)
def test_bad_input_changes_nothing(ds: tw.LanceDataset, verb: str, arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        getattr(ds, verb)(**arguments)
    assert len(ds.versions()) == 4


def test_the_explanation_is_a_frozen_value_with_every_file(ds: tw.LanceDataset) -> None:
    explained = ds.explain_cleanup_old_versions(retain_versions=2)
    assert (explained.removed_versions, explained.kept_versions) == ((1, 2), (3, 4))
    assert len(explained.candidate_files) == 6
    assert sum(file.size_bytes for file in explained.candidate_files) == explained.stats.bytes_removed
    assert all(file.reason in str(explained) for file in explained.candidate_files)
    with pytest.raises(FrozenInstanceError):
        explained.read_version = 1  # type: ignore[misc]


def test_the_list_of_files_can_be_cut(ds: tw.LanceDataset) -> None:
    cut = ds.explain_cleanup_old_versions(retain_versions=2, max_files=2)
    assert (len(cut.candidate_files), cut.candidate_files_truncated, cut.candidate_file_limit) == (2, True, 2)
    none = ds.explain_cleanup_old_versions(retain_versions=2, include_files=False)
    assert (none.candidate_files, none.candidate_files_truncated) == ((), False)
    assert none.stats == cut.stats
    with pytest.raises(InvalidRequest, match="max_files"):
        ds.explain_cleanup_old_versions(max_files=0)


def test_a_table_that_is_gone(ds: tw.LanceDataset) -> None:
    for info in list(ds._world.store.list("")):
        ds._world.store.delete(info.path)
    with pytest.raises((TableNotFound, VersionNotFound)):
        ds.cleanup_old_versions()
