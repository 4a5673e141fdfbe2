"""The end of a data file, read and written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablewright.errors import CorruptTable
from tablewright.format.file_tail import FileTail, decode_tail

GOLDEN = Path(__file__).parents[2] / "golden" / "lance-blob"


def _tail(name: str) -> tuple[bytes, FileTail]:
    data = sorted((GOLDEN / name / "table" / "data").glob("*.lance"))[0].read_bytes()
    return data, decode_tail(len(data), lambda begin, end: data[begin:end], name)


@pytest.mark.parametrize("name", ["v1_2.0", "v1_2.1", "v2_2.2", "v2_2.3"])
def test_another_end_reads_like_the_first(name: str) -> None:
    data, tail = _tail(name)
    begin, end = tail.encode(tail.descriptor)
    assert begin % 64 == 0 and begin >= len(data)
    longer = data + bytes(begin - len(data)) + end
    again = decode_tail(len(longer), lambda start, stop: longer[start:stop], name)
    assert (again.descriptor, again.columns, again.version) == (tail.descriptor, tail.columns, tail.version)


def test_buffers_lie_inside() -> None:
    _, tail = _tail("v2_2.2")
    for column in range(len(tail.columns)):
        assert all(0 <= begin < end <= tail.size for begin, end in tail.ranges([column], "x"))
    short = FileTail(size=10, descriptor=tail.descriptor, columns=tail.columns, version=tail.version)
    with pytest.raises(CorruptTable, match="lies outside"):
        list(short.ranges(range(len(tail.columns)), "x"))
