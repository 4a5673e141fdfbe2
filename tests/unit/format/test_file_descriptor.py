"""The end of a data file, read and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablewright.errors import CorruptTable
from tablewright.format.file_descriptor import repaired
from tablewright.format.file_tail import FileTail, decode_tail

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"


def _tail(name: str) -> tuple[bytes, FileTail]:
    data = sorted((GOLDEN / name / "table" / "data").glob("*.lance"))[0].read_bytes()
    return data, decode_tail(len(data), lambda begin, end: data[begin:end], name)


def test_repaired() -> None:
    _, second = _tail("v2_2.2")
    better = repaired(second.descriptor, "x")
    assert better is not None and better != second.descriptor
    assert repaired(better, "x") is None
    _, first = _tail("v1_2.1")
    assert repaired(first.descriptor, "x") is None
    described = repaired(first.descriptor, "x", describe=True)
    assert described is not None
    assert repaired(described, "x", describe=True) is None
    assert repaired(b"", "x") is None
    with pytest.raises(CorruptTable):
        repaired(b"\xff lance-encoding:blob", "x")
