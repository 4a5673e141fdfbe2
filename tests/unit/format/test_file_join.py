"""Files joined into one: whose pages they are, and which files can't be joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.file_join import WholeFile, join_files, whole_file
from tablewright.format.file_tail import FileTail, decode_tail
from tablewright.format.proto import data_file_pb2, schema_pb2


def _bytes(path: Path, rows: pa.Table, version: str = "2.2") -> list[bytes]:
    ds = tw.write_dataset(rows, path, max_rows_per_file=5, data_storage_version=version)
    return [(path / "data" / each.files[0].path).read_bytes() for each in ds._snapshot.fragments]


def _files(path: Path, rows: pa.Table | None = None) -> list[WholeFile]:
    table = pa.table({"a": range(15), "s": ["x"] * 15}) if rows is None else rows
    return [file for data in _bytes(path, table) if (file := whole_file(data)) is not None]


def _tail(data: bytes) -> FileTail:
    return decode_tail(len(data), lambda begin, end: data[begin:end], "joined")


def _pages(tail: FileTail, column: int) -> list[data_file_pb2.ColumnMetadata.Page]:
    return list(data_file_pb2.ColumnMetadata.FromString(tail.columns[column]).pages)


def test_pages_lie_where_their_bytes_are(tmp_path: Path) -> None:
    files = _files(tmp_path / "t")
    data = join_files(files)
    assert data is not None and [file.part.rows for file in files] == [5, 5, 5]
    tail = _tail(data)
    assert schema_pb2.FileDescriptor.FromString(tail.descriptor).length == 15
    for column in range(2):
        moved = _pages(tail, column)
        assert [(page.length, page.priority) for page in moved] == [(5, 0), (5, 5), (5, 10)]
        for page, file in zip(moved, files, strict=True):
            (own,) = _pages(file.part.tail, column)
            ranges = zip(own.buffer_offsets, page.buffer_offsets, own.buffer_sizes, strict=True)
            assert all(data[at : at + size] == file.data[was : was + size] for was, at, size in ranges)
            assert list(own.buffer_sizes) == list(page.buffer_sizes)


def test_columns_that_are_not_wanted_have_no_pages_but_the_first(tmp_path: Path) -> None:
    for wanted, pages in (({0}, [3, 0]), ({1}, [3, 3])):
        data = join_files(_files(tmp_path / str(wanted)), wanted)
        assert data is not None
        assert [len(_pages(_tail(data), column)) for column in range(2)] == pages


def test_files_of_one_kind_have_one_schema(tmp_path: Path) -> None:
    kinds = {file.kind for file in _files(tmp_path / "t")}
    short = pa.array(range(3), pa.int32())
    others = [pa.table({"b": range(3), "s": ["x"] * 3}), pa.table({"a": short, "s": ["x"] * 3})]
    for number, rows in enumerate(others):
        kinds |= {file.kind for file in _files(tmp_path / str(number), rows)}
    assert len(kinds) == 3


def test_what_can_not_be_joined(tmp_path: Path) -> None:
    data = _bytes(tmp_path / "t", pa.table({"a": range(5)}))[0]
    assert whole_file(data) is not None
    for bad in (b"", data[:30], data[:-1], data[:-4] + b"LANX", data[: len(data) // 2] + data[-40:]):
        assert whole_file(bad) is None
    assert whole_file(_bytes(tmp_path / "old", pa.table({"a": range(5)}), "2.0")[0]) is None
    blob = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    blobs = pa.table({"b": pa.array([b"x"] * 5, pa.large_binary())}, schema=blob)
    assert whole_file(_bytes(tmp_path / "blobs", blobs, "2.1")[0]) is None


def _with_page(file: WholeFile, **changes: object) -> WholeFile:
    """The same file, the first page of whose second column says something else."""
    tail = file.part.tail
    before, column, *after = tail.columns
    message = data_file_pb2.ColumnMetadata.FromString(column)
    for name, value in changes.items():
        if name == "buffer_offsets":
            message.pages[0].buffer_offsets[:] = [value] * len(message.pages[0].buffer_offsets)
        else:
            setattr(message.pages[0], name, value)
    return _with_columns(file, (before, message.SerializeToString(), *after))


def _with_columns(file: WholeFile, columns: tuple[bytes, ...]) -> WholeFile:
    return replace(file, part=replace(file.part, tail=replace(file.part.tail, columns=columns)))


@pytest.mark.parametrize("changes", [{"length": 4}, {"length": 6}, {"buffer_offsets": 1 << 20}])
def test_pages_that_do_not_fit_their_file(tmp_path: Path, changes: dict[str, int]) -> None:
    """A page that reached into the next file would read its rows."""
    first, *others = _files(tmp_path / "t")
    assert join_files([_with_page(first, priority=0), *others]) is not None
    assert join_files([_with_page(first, **changes), *others]) is None
    assert join_files([*others, _with_page(first, **changes)]) is None
    assert join_files([_with_page(first, **changes), *others], {0}) is not None


def test_columns_with_buffers_or_encodings_of_their_own(tmp_path: Path) -> None:
    first, *others = _files(tmp_path / "t")
    column = first.part.tail.columns[0]
    for changed in (column + b"\x1a\x01\x05\x22\x01\x05", column + b"\x0a\x02\x08\x01", b"\xff"):
        odd = _with_columns(first, (changed, *first.part.tail.columns[1:]))
        assert join_files([odd, *others]) is None and join_files([*others, odd]) is None
