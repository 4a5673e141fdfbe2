"""validate() passes the tables that pylance wrote and changed."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import tablewright as tw


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_a_sound_table_passes(tmp_path: Path, stable: bool) -> None:
    rows = pa.table({"id": range(100), "s": ["x"] * 100})
    theirs = lance.write_dataset(rows, tmp_path / "t", max_rows_per_file=40, enable_stable_row_ids=stable)
    theirs.delete("id % 10 = 3")
    theirs.update({"s": "'y'"}, where="id < 20")
    tw.dataset(tmp_path / "t").validate()
    for fragment in tw.dataset(tmp_path / "t").get_fragments():
        fragment.validate()
