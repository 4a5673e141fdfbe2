"""Arguments without effect: the caller is told at once."""

from __future__ import annotations

import uuid
import warnings
from contextlib import nullcontext
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature

CLEANUP = {"auto_cleanup_options": {"interval": 20, "older_than_seconds": 3600}}


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [1]}, f"memory://{uuid.uuid4()}")


class TestSettingsOfNewTables:
    @pytest.mark.parametrize(
        ("mode", "settings", "told"),
        [
            ("append", {"enable_stable_row_ids": True}, r"exists and has none. dataset.enable_stable_row_ids\(\)"),
            ("overwrite", {"enable_stable_row_ids": True}, "enable_stable_row_ids=True has no effect"),
            (
                "append",
                {"data_storage_version": "2.0"},
                "exists with files of version 2.2, and an append writes the same",
            ),
        ],
    )
    def test_they_do_not_change_one_that_exists(
        self, ds: tw.LanceDataset, mode: str, settings: dict[str, Any], told: str
    ) -> None:
        with pytest.warns(UserWarning, match=told):
            tw.write_dataset({"id": [2]}, ds.uri, mode=mode, **settings)

    def test_cleanup_options_of_one_that_exists(self, ds: tw.LanceDataset) -> None:
        with pytest.warns(UserWarning, match="auto_cleanup") as told:
            ds = tw.write_dataset({"id": [2]}, ds.uri, mode="append", **CLEANUP)
        assert "exists. Use dataset.update_config()" in str(told[-1].message)
        assert ds.config() == {}

    def test_what_is_so_anyway_says_nothing(self) -> None:
        address = f"memory://{uuid.uuid4()}"
        for _ in range(2):
            settings: dict[str, Any] = {"enable_stable_row_ids": True, "data_storage_version": "2.1"}
            ds = tw.write_dataset({"id": [1]}, address, mode="append", **settings)
        tw.write_dataset({"id": [1]}, address, mode="append", data_storage_version="stable")
        ds = tw.write_dataset({"id": [1]}, address, mode="overwrite", data_storage_version="2.0")
        assert (ds.data_storage_version, ds.has_stable_row_ids) == ("2.0", True)


def test_a_lock_for_opening(ds: tw.LanceDataset) -> None:
    with pytest.warns(UserWarning, match=r"commit_lock has no effect in dataset\(\)"):
        tw.dataset(ds.uri, commit_lock=lambda version: nullcontext())


def test_storage_options_for_a_branch(ds: tw.LanceDataset) -> None:
    with pytest.raises(InvalidRequest, match="storage_options that the dataset was opened with"):
        ds.create_branch("b", storage_options={"region": "x"})


def test_a_callback_that_would_never_be_called(ds: tw.LanceDataset) -> None:
    with pytest.raises(UnsupportedFeature, match="analyze_plan"):
        ds.to_table(scan_stats_callback=print)
    with pytest.raises(TypeError):
        ds.sample(1, filter="id > 5")  # type: ignore[call-arg]


def test_warnings_name_the_line_of_the_caller(ds: tw.LanceDataset) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tw.dataset(ds.uri, commit_lock=lambda version: nullcontext())
        tw.write_dataset({"id": [1]}, ds.uri, mode="append", **CLEANUP)
    assert [warning.filename for warning in told] == [__file__, __file__]
