"""Dropping a table: with everything, and nothing else."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, StorageError, TablewrightError


class TestDrop:
    def test_a_table_goes_with_everything(self, tmp_path: Path) -> None:
        place = tmp_path / "t.lance"
        tw.write_dataset({"id": [1]}, place)
        tw.LanceDataset.drop(place)
        assert not place.exists() or list(place.rglob("*")) == []

    def test_a_directory_that_is_no_table_is_left_alone(self, tmp_path: Path) -> None:
        precious = tmp_path / "sub" / "precious"
        precious.parent.mkdir()
        precious.write_text("mine")
        with pytest.raises(InvalidRequest, match="Refusing to drop"):
            tw.LanceDataset.drop(tmp_path, ignore_not_found=True)
        assert precious.read_text() == "mine"

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="Not found"):
            tw.LanceDataset.drop(tmp_path / "nowhere")
        tw.LanceDataset.drop(tmp_path / "nowhere", ignore_not_found=True)

    @pytest.mark.parametrize("ignore", [False, True])
    def test_empty_directories_of_an_interrupted_drop(self, tmp_path: Path, ignore: bool) -> None:
        """There is no table any more, and its directories go."""
        place = tmp_path / "t.lance"
        for directory in ("_versions", "data", "tree/other/_versions"):
            (place / directory).mkdir(parents=True)
        with nullcontext() if ignore else pytest.raises(StorageError, match="Not found"):
            tw.LanceDataset.drop(place, ignore_not_found=ignore)
        assert not place.exists()

    def test_empty_directories_of_others_stay(self, tmp_path: Path) -> None:
        (tmp_path / "mine" / "too").mkdir(parents=True)
        tw.LanceDataset.drop(tmp_path / "mine", ignore_not_found=True)
        assert (tmp_path / "mine" / "too").is_dir()

    @pytest.mark.parametrize("wrong", [None, 3, ""])
    def test_what_is_no_address(self, wrong: Any) -> None:
        with pytest.raises(TablewrightError):
            tw.LanceDataset.drop(wrong)
