"""The footer of a data file that pylance wrote."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.data.footer import check_footer, problems_of_footer


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lance.write_dataset(pa.table({"id": range(50), "s": ["x"] * 50}), tmp_path / "t.lance")
    return tmp_path / "t.lance"


def test_what_lance_writes_passes(table: Path) -> None:
    (path,) = table.glob("data/*.lance")
    check_footer(str(path), "here")
    assert problems_of_footer(path.read_bytes()[-40:], path.stat().st_size) == ()
