from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.format.samples import DELETION, fragment, manifest, stable_fragment

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.flags import check_readable, check_writable, derive_flags, problems_of_flags
from tablewright.format.fragment import FragmentList
from tablewright.format.manifest import BasePath, Manifest
from tablewright.format.schema import Schema

BASE = BasePath(id=1, path="elsewhere")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (manifest(), (0, 0)),
        (manifest(fragments=FragmentList(), max_fragment_id=None), (0, 0)),
        (manifest(fragment(deletion=DELETION)), (1, 1)),
        (manifest(stable_fragment(), stable_row_ids=True), (2, 2)),
        (manifest(fragments=FragmentList(), stable_row_ids=True), (2, 2)),
        (manifest(config={"a": "b"}), (0, 8)),
        (manifest(table_metadata={"a": "b"}), (0, 0)),
        (manifest(base_paths=(BASE,)), (16, 16)),
        (manifest(max_allocated_field_id=9), (0, 32768)),
        (manifest(stable_fragment(deletion=DELETION), stable_row_ids=True, config={"a": ""}), (3, 11)),
    ],
)
def test_flags_follow_from_the_content(value: Manifest, expected: tuple[int, int]) -> None:
    assert derive_flags(value) == expected


def test_flags_fall_with_the_content() -> None:
    assert derive_flags(manifest(reader_flags=1 | 2 | 16, writer_flags=1 | 2 | 8 | 16)) == (0, 0)


def test_sticky_flags_stay() -> None:
    assert derive_flags(manifest(reader_flags=256, writer_flags=256)) == (256, 256)
    assert derive_flags(manifest(reader_flags=1024 | 16384, writer_flags=1024 | 16384)) == (17408, 17408)


def test_no_transaction_file_is_only_said_where_it_is_true() -> None:
    assert derive_flags(manifest(writer_flags=32)) == (0, 32)
    assert derive_flags(manifest(writer_flags=32, transaction_file="1-a.txn")) == (0, 0)


@pytest.mark.parametrize("flags", [0, 1, 2, 4, 8, 16, 32, 63, 256])
def test_what_we_implement_passes(flags: int) -> None:
    check_readable(flags, "t")
    check_writable(flags, "t")
    check_writable(flags | 32768, "t")


@pytest.mark.parametrize("bit", [64, 128, 512, 1024, 2048, 4096, 8192, 65536, 1 << 17, 1 << 63])
def test_what_we_do_not_implement_stops_us(bit: int) -> None:
    with pytest.raises(
        UnsupportedFeature,
        match=r"^This dataset cannot be read by this version of Lance\. Please upgrade Lance to read this dataset\. "
        rf"Flags: {bit | 1}\. .*my/table.*: {bit}",
    ):
        check_readable(bit | 1, "my/table")
    with pytest.raises(
        UnsupportedFeature,
        match=r"^This dataset cannot be written by this version of Lance\. Please upgrade Lance to write this ",
    ):
        check_writable(bit, "my/table")


def test_managed_blobs_are_read_and_not_written() -> None:
    check_readable(16384, "t")
    with pytest.raises(UnsupportedFeature, match=r"16384 \(managed blobs\)"):
        check_writable(16384, "t")
    managed = Schema(metadata={"lance.blob.managed": b"true"})
    assert derive_flags(manifest(schema=managed)) == (16384, 16384)


def test_all_missing_features_are_named() -> None:
    with pytest.raises(UnsupportedFeature, match=r"64 \(data overlays\), 512, 65536 \(zone write seeds\)\."):
        check_readable(64 | 512 | 65536 | 1, "t")


def test_paired_flags() -> None:
    for reader, writer in ((256, 0), (0, 256)):
        broken = manifest(reader_flags=reader, writer_flags=writer)
        assert list(problems_of_flags(broken)) == [
            "only one of the mixed data-file-version reader and writer flags (256) is set"
        ]
    assert list(problems_of_flags(manifest(writer_flags=32768))) != []
    assert list(problems_of_flags(manifest(max_allocated_field_id=3))) != []
    assert list(problems_of_flags(manifest(writer_flags=32768, max_allocated_field_id=3))) == []


def _stored(data: bytes, reader: int, writer: int) -> bytes:
    """The same manifest file with other flags."""
    position = int.from_bytes(data[-16:-8], "little")
    message = data[position + 4 : -16]
    for tag, value in ((0x48, reader), (0x50, writer)):
        out = bytearray((tag,))
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        message += bytes((*out, value))
    return data[:position] + len(message).to_bytes(4, "little") + message + data[-16:]


def test_an_unknown_flag_stops_reading_and_writing() -> None:
    data = encode_manifest_file(manifest(), b"")
    with pytest.raises(UnsupportedFeature, match="cannot be read"):
        decode_manifest_file(_stored(data, 64, 64), "x")
    file = decode_manifest_file(_stored(data, 0, 512), "x")
    assert file.manifest.writer_flags == 512
    with pytest.raises(UnsupportedFeature, match="cannot be written"):
        encode_manifest_file(replace(file.manifest, version=6), b"")
    with pytest.raises(CorruptTable, match="only one of the mixed data-file-version"):
        decode_manifest_file(_stored(data, 256, 0), "x")


def test_sticky_flags_survive_a_commit() -> None:
    data = _stored(encode_manifest_file(manifest(), b""), 256, 256)
    read = decode_manifest_file(data, "x").manifest
    again = decode_manifest_file(encode_manifest_file(read, b""), "x").manifest
    assert (again.reader_flags, again.writer_flags) == (256, 256)
