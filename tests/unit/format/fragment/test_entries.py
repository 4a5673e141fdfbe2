"""The files of fragments as columns are the files of the decoded fragments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.fragment.entries import files_of
from tablewright.format.naming import deletion_path
from tablewright.format.wire import encode_length_delimited, encode_varint
from tablewright.testing.strategies.tables import fragments


def _listed(found: FragmentList) -> tuple[list[Any], list[Any]]:
    files = files_of(found)
    data = [
        (
            row,
            path,
            size,
            None if base < 0 else base,
            files.layouts[layout].fields,
            files.layouts[layout].column_indices,
            files.layouts[layout].version,
        )
        for row, path, size, base, layout in zip(
            files.data_rows.tolist(),
            files.data_paths,
            files.data_bytes.tolist(),
            files.data_bases.tolist(),
            files.data_layouts.tolist(),
            strict=True,
        )
    ]
    bases = [None if base < 0 else base for base in files.deletion_bases.tolist()]
    return data, list(zip(files.deletion_rows.tolist(), files.deletion_paths, bases, strict=True))


def _decoded(found: FragmentList) -> tuple[list[Any], list[Any]]:
    data = [
        (
            row,
            file.path,
            file.file_size_bytes if file.file_size_bytes <= 1 << 45 else 0,
            file.base_id,
            file.fields,
            file.column_indices,
            (file.file_major_version, file.file_minor_version),
        )
        for row, fragment in enumerate(found)
        for file in fragment.files
    ]
    deletions = [
        (row, deletion_path(fragment.id, fragment.deletion), fragment.deletion.base_id)
        for row, fragment in enumerate(found)
        if fragment.deletion is not None
    ]
    return data, deletions


@given(st.lists(fragments(), max_size=6))
def test_columns_are_those_of_the_decoded_fragments(values: list[Fragment]) -> None:
    found = FragmentList.of(values)
    data, deletions = _listed(found)
    expected_data, expected_deletions = _decoded(found)
    assert sorted(map(repr, data)) == sorted(map(repr, expected_data))
    assert sorted(map(repr, deletions)) == sorted(map(repr, expected_deletions))


def _fragment(number: int, fields: tuple[int, ...] = (0, 1)) -> Fragment:
    file = DataFile(
        path=f"{number}.lance",
        fields=fields,
        column_indices=tuple(range(len(fields))),
        file_major_version=2,
        file_minor_version=2,
        file_size_bytes=100 + number,
    )
    return Fragment(id=number, files=(file,), physical_rows=5)


def test_files_with_the_same_columns_share_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.format.fragment.entries._BLOCK", 3)
    files = files_of(FragmentList.of(_fragment(number, (0, -2) if number % 2 else (0, 1)) for number in range(10)))
    assert [layout.fields for layout in files.layouts] == [(0, 1), (0, -2)]
    assert files.data_layouts.tolist() == [number % 2 for number in range(10)]
    assert files.data_bytes.tolist() == list(range(100, 110))


def test_a_list_of_fields_that_is_not_packed_is_decoded() -> None:
    unpacked = b"".join(encode_varint(2 << 3) + encode_varint(number) for number in (3, 4))
    columns = encode_length_delimited(3, bytes([0, 1]))
    file = encode_length_delimited(1, b"a.lance") + unpacked + columns
    fragments = FragmentList([encode_length_delimited(2, file) + encode_varint(4 << 3) + encode_varint(9)])
    files = files_of(fragments)
    assert files.data_paths == ["a.lance"]
    assert files.layouts[0].fields == (3, 4)


def test_an_unknown_kind_of_deletion_file_is_refused() -> None:
    deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=2, num_deleted_rows=1)
    good = FragmentList.of([_fragment(0).with_deletion(deletion)])
    bad = FragmentList([good.raw[0].replace(bytes([0x08, 0x01]), bytes([0x08, 0x05]))])
    with pytest.raises(CorruptTable):
        files_of(bad)


def test_no_fragments() -> None:
    files = files_of(FragmentList())
    assert (files.data_paths, files.deletion_paths, len(files.data_bytes)) == ([], [], 0)


def test_a_path_that_is_no_text_is_refused() -> None:
    broken = FragmentList([FragmentList.of([_fragment(3)]).raw[0].replace(b"3.lance", b"\xff.lance")])
    with pytest.raises(CorruptTable):
        files_of(broken)


def test_one_file_as_a_value() -> None:
    fragment = _fragment(7)
    assert files_of(FragmentList.of([fragment])).data_file(0) == fragment.files[0]
