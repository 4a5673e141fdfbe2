from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from tests.unit.format.samples import DELETION, PATH, VERSION, fragment, index, manifest

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexFile
from tablewright.format.manifest import BasePath, Manifest, WriterVersion
from tablewright.format.proto import table_pb2
from tablewright.format.transaction import Restore, Transaction, encode_transaction

STRANGER = b"\xc2\xbb\x01\x03abc"
TRANSACTION = Transaction(read_version=4, uuid="u", operation=Restore(version=2))
TRANSACTION_BYTES = encode_transaction(TRANSACTION)


def _file(value: Manifest | None = None) -> bytes:
    return encode_manifest_file(value or manifest(indices=(index(),)), TRANSACTION_BYTES)


def _message(data: bytes) -> table_pb2.Manifest:
    position = int.from_bytes(data[-16:-8], "little")
    return table_pb2.Manifest.FromString(data[position + 4 : -16])


def _with_message(data: bytes, message: table_pb2.Manifest) -> bytes:
    """The same file with another manifest in it."""
    position = int.from_bytes(data[-16:-8], "little")
    section = message.SerializeToString()
    return data[:position] + struct.pack("<I", len(section)) + section + data[-16:]


def _corrupt(data: bytes, path: str = "x") -> str:
    with pytest.raises(CorruptTable) as caught:
        decode_manifest_file(data, path)
    assert caught.value.path == path
    return str(caught.value)


class TestLayout:
    def test_sections_in_order(self) -> None:
        data = _file()
        message = _message(data)
        assert message.index_section == 0
        assert data[message.transaction_section + 4 :].startswith(TRANSACTION_BYTES)
        assert data.endswith(b"\0\0\2\0LANC")
        assert message.HasField("index_section")

    def test_sections_that_are_not_needed_are_left_out(self) -> None:
        message = _message(encode_manifest_file(manifest(), b""))
        assert not message.HasField("index_section")
        assert not message.HasField("transaction_section")
        message = _message(encode_manifest_file(manifest(), TRANSACTION_BYTES))
        assert message.HasField("transaction_section")
        assert message.transaction_section == 0

    def test_any_order_is_read(self) -> None:
        data = _file()
        message = _message(data)
        start = message.transaction_section
        index_bytes, transaction = data[:start], data[start : start + 4 + len(TRANSACTION_BYTES)]
        message.transaction_section, message.index_section = 0, len(transaction)
        section = message.SerializeToString()
        swapped = transaction + index_bytes + struct.pack("<I", len(section)) + section + data[-16:]
        file = decode_manifest_file(swapped, "x")
        assert file.manifest == decode_manifest_file(data, "x").manifest
        assert file.transaction == TRANSACTION

    def test_the_old_place_of_the_transaction(self) -> None:
        data = _file()
        message = _message(data)
        message.transaction_section_2025 = message.transaction_section
        message.ClearField("transaction_section")
        assert decode_manifest_file(_with_message(data, message), "x").transaction == TRANSACTION

    @pytest.mark.parametrize(("major", "minor"), [(0, 1), (0, 3), (2, 0)])
    def test_other_footer_versions_are_read(self, major: int, minor: int) -> None:
        data = _file()
        assert decode_manifest_file(data[:-8] + struct.pack("<HH", major, minor) + b"LANC", "x").manifest.version == 5


class TestDecode:
    def test_everything_comes_back(self) -> None:
        value = manifest(
            indices=(index(),),
            timestamp_ns=1_700_000_000_123_456_789,
            writer=WriterVersion(library="l", version="1", prerelease="beta"),
            config={"a": "b"},
            table_metadata={"c": "d"},
            base_paths=(BasePath(id=0, path="x", name="n", is_dataset_root=True),),
            branch="try",
            transaction_file="t",
        )
        file = decode_manifest_file(_file(value), PATH)
        assert file.manifest == replace(value, reader_flags=16, writer_flags=24)
        assert (file.transaction, file.transaction_error) == (TRANSACTION, None)

    def test_a_garbage_transaction_does_not_hinder_reading(self) -> None:
        file = decode_manifest_file(encode_manifest_file(manifest(), b"garbage"), "x")
        assert file.manifest.version == VERSION
        assert file.transaction is None
        assert file.transaction_error is not None
        assert "the transaction" in file.transaction_error

    def test_nor_does_one_outside_the_file(self) -> None:
        data = _file()
        message = _message(data)
        message.transaction_section = 10**9
        file = decode_manifest_file(_with_message(data, message), "x")
        assert (file.transaction, file.transaction_bytes) == (None, None)
        assert file.transaction_error is not None

    def test_an_empty_or_missing_transaction_is_no_error(self) -> None:
        data = encode_manifest_file(manifest(), b"")
        file = decode_manifest_file(data, "x")
        assert (file.transaction, file.transaction_error, file.transaction_bytes) == (None, None, None)
        message = _message(data)
        message.transaction_section = 0
        empty = bytes(4) + _with_message(data, message)[:-16] + struct.pack("<q", 4) + data[-8:]
        file = decode_manifest_file(empty, "x")
        assert (file.transaction, file.transaction_error, file.transaction_bytes) == (None, None, b"")

    def test_what_other_writers_leave_out(self) -> None:
        data = _file(manifest(fragment(3)))
        message = _message(data)
        for name in ("writer_version", "data_format", "timestamp", "max_fragment_id"):
            message.ClearField(name)
        read = decode_manifest_file(_with_message(data, message), "x").manifest
        assert read.max_fragment_id == 3
        assert read.data_storage_version == "2.2"
        assert (read.writer, read.timestamp_ns) == (None, 0)

    def test_a_low_mark_is_raised(self) -> None:
        data = _file(manifest(fragment(3)))
        message = _message(data)
        message.max_fragment_id = 1
        assert decode_manifest_file(_with_message(data, message), "x").manifest.max_fragment_id == 3

    def test_the_version_must_agree_with_the_name(self) -> None:
        assert decode_manifest_file(_file(), "_versions/5.manifest").manifest.version == 5
        assert "it says version 5, its name says 4" in _corrupt(_file(), "_versions/4.manifest")
        assert "its name says 6" in _corrupt(_file(), f"root/_versions/{(1 << 64) - 7:020d}.manifest")

    def test_a_fragment_tree_is_refused(self) -> None:
        data = _file()
        message = _message(data)
        message.fragment_tree = b""
        with pytest.raises(UnsupportedFeature, match="kept as a tree"):
            decode_manifest_file(_with_message(data, message), "x")


class TestDamage:
    def test_every_truncation(self) -> None:
        data = _file()
        for length in range(len(data)):
            assert "Corrupt table file x" in _corrupt(data[:length])

    def test_foreign_files(self) -> None:
        for data in (b"", b"LANC", b"PAR1" * 20, b'{"version":1}' * 9, bytes(200), b"\xff" * 200):
            assert "Restore the file" in _corrupt(data)

    @pytest.mark.parametrize("position", [-1, -(1 << 63), 1 << 62, 10**6, 3])
    def test_footer_positions(self, position: int) -> None:
        data = _file()
        _corrupt(data[:-16] + struct.pack("<q", position) + data[-8:])

    def test_lengths(self) -> None:
        data = _file()
        at = int.from_bytes(data[-16:-8], "little")
        (length,) = struct.unpack_from("<I", data, at)
        for wrong in (0, length - 1, length + 1, (1 << 32) - 1):
            _corrupt(data[:at] + struct.pack("<I", wrong) + data[at + 4 :])
        _corrupt(struct.pack("<I", (1 << 32) - 1) + data[4:])

    def test_an_index_section_outside_the_file(self) -> None:
        data = _file()
        for position in (10**9, (1 << 64) - 1, len(data) - 16):
            message = _message(data)
            message.index_section = position
            assert "the index section" in _corrupt(_with_message(data, message))

    def test_broken_rules(self) -> None:
        data = _file(manifest(fragment(1), fragment(2)))
        for change in ("twice", "version", "nanos", "deleted", "utf8"):
            message = _message(data)
            match change:
                case "twice":
                    message.fragments[0].id = 2
                case "version":
                    message.version = 0
                case "nanos":
                    message.timestamp.nanos = -1
                case "deleted":
                    message.fragments[0].deletion_file.num_deleted_rows = 11
                case _:
                    message.tag = "abc"
            changed = _with_message(data, message).replace(b"\x42\x03abc", b"\x42\x03\xff\xff\xff")
            _corrupt(changed)

    def test_a_broken_file_entry_is_found_when_looked_at(self) -> None:
        data = _file(manifest(fragment(1)))
        message = _message(data)
        message.fragments[0].files[0].ClearField("column_indices")
        read = decode_manifest_file(_with_message(data, message), "x").manifest
        with pytest.raises(CorruptTable, match=r"x: fragment 1: .* 2 fields but 0 column indices"):
            read.fragments.by_id(1)


class TestEncode:
    def test_a_broken_manifest_is_not_written(self) -> None:
        with pytest.raises(InternalError, match="Version 5 can't be written: fragment ids are used twice: 1"):
            encode_manifest_file(manifest(fragment(1), fragment(1)), b"")
        with pytest.raises(InternalError, match="can't be written"):
            encode_manifest_file(manifest(indices=(index(fragment_bitmap=b"x"),)), b"")

    def test_flags_are_derived(self) -> None:
        message = _message(_file(manifest(fragment(1, deletion=DELETION), config={"a": "b"}, writer_flags=2)))
        assert (message.reader_feature_flags, message.writer_feature_flags) == (1, 9)

    def test_unknown_fields_survive_at_every_level(self) -> None:
        value = manifest(
            fragment(1, deletion=DELETION),
            indices=(index(files=(IndexFile(path="a"),)),),
            writer=WriterVersion(library="l", version="1"),
            base_paths=(BasePath(id=0, path="x"),),
        )
        data = _file(value)
        message = _message(data)
        levels = (
            message,
            message.fields[0],
            message.fragments[0],
            message.fragments[0].files[0],
            message.fragments[0].deletion_file,
            message.writer_version,
            message.data_format,
            message.base_paths[0],
        )
        for level in levels:
            level.MergeFromString(STRANGER)
        data = _with_message(data, message)
        assert data.count(STRANGER) == len(levels)

        read = decode_manifest_file(data, "x").manifest
        assert encode_manifest_file(read, TRANSACTION_BYTES) == data
        touched = replace(
            read,
            version=6,
            fragments=read.fragments.replaced({1: read.fragments.by_id(1).with_deletion(DELETION)}),
            config={"new": "one"},
        )
        after = encode_manifest_file(touched, b"")
        assert after.count(STRANGER) == len(levels) - 1  # the deletion file was exchanged

    def test_fields_of_a_newer_release_keep_their_bytes(self) -> None:
        raw = [table_pb2.Fragment(id=number).SerializeToString() + STRANGER for number in range(3)]
        value = manifest(fragments=FragmentList(raw), max_fragment_id=2)
        grown = decode_manifest_file(_file(value), "x").manifest.fragments.appended([fragment(3)])
        assert list(grown.raw[:3]) == raw
