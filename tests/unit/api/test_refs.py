"""Names of tags and branches, and a branch whose table is gone."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, TableNotFound


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"a": [3, 1, 2], "__order_0": ["x", "y", "z"]}, f"memory://{uuid.uuid4()}")


@pytest.mark.parametrize("name", [3, b"x", None, ""])
def test_names_of_tags_and_branches(ds: tw.LanceDataset, name: Any) -> None:
    for call in (lambda: ds.tags.create(name, 1), lambda: ds.create_branch(name)):
        with pytest.raises(InvalidRequest):
            call()


def test_a_branch_of_a_table_that_is_gone(tmp_path: Path) -> None:
    ds = tw.write_dataset({"a": [1]}, tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFound):
        ds.create_branch("b")
    assert not (tmp_path / "t").exists()
