from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.footer import check_footer
from tablewright.errors import CorruptTable


@pytest.fixture
def table(tmp_path: Path) -> Path:
    tw.write_dataset(pa.table({"id": range(50), "s": ["x"] * 50}), tmp_path / "t.lance")
    return tmp_path / "t.lance"


def test_every_flipped_byte_of_the_footer_is_survived(table: Path) -> None:
    """Without the look at it some of these abort the whole process."""
    (path,) = table.glob("data/*.lance")
    whole = path.read_bytes()
    refused = 0
    for position in range(1, 41):
        for flip in (0x01, 0x80, 0xFF):
            data = bytearray(whole)
            data[-position] ^= flip
            path.write_bytes(bytes(data))
            try:
                tw.dataset(table).to_table()
            except CorruptTable as error:
                refused += path.name in str(error)
    assert refused > 60


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 39, b"x" * 100])
def test_foreign_bytes_are_named(table: Path, data: bytes) -> None:
    (path,) = table.glob("data/*.lance")
    path.write_bytes(data)
    with pytest.raises(CorruptTable, match=path.name):
        tw.dataset(table).to_table()


def test_a_missing_file_is_the_codecs_business(tmp_path: Path) -> None:
    check_footer(str(tmp_path / "nowhere"), "here")
