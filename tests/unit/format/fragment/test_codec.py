from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.format.samples import DELETION, fragment, stable_fragment

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.fragment import (
    FragmentList,
    decode_fragment,
    encode_fragment,
)
from tablewright.format.fragment.codec import fragment_to_message
from tablewright.format.proto import table_pb2
from tablewright.format.row_ids import VersionSequence, encode_versions

STRANGER = b"\xc2\xbb\x01\x03abc"


class TestCodec:
    def test_round_trip(self) -> None:
        for value in (fragment(3), stable_fragment(4, deletion=DELETION), fragment(files=(), row_ids=b"")):
            assert decode_fragment(encode_fragment(value), "x") == value

    def test_a_number_that_does_not_fit_is_our_mistake(self) -> None:
        with pytest.raises(InternalError, match="Fragment -1 can't be encoded"):
            encode_fragment(fragment(-1))

    def test_a_broken_one_names_its_file(self) -> None:
        data = encode_fragment(fragment(3, physical_rows=2, deletion=DELETION))
        with pytest.raises(CorruptTable, match="Corrupt table file x: fragment 3: 4 of 2 rows are deleted") as caught:
            decode_fragment(data, "x")
        assert caught.value.path == "x"

    def test_an_unknown_type_of_deletion_file(self) -> None:
        message = table_pb2.Fragment.FromString(encode_fragment(fragment(deletion=DELETION)))
        message.deletion_file.MergeFromString(b"\x08\x09")
        with pytest.raises(CorruptTable, match="deletion file type 9 does not exist"):
            decode_fragment(message.SerializeToString(), "x")

    @pytest.mark.parametrize("number", [11, 12, 13, 14])
    def test_rows_that_we_cannot_read_are_refused(self, number: int) -> None:
        data = encode_fragment(fragment(3)) + bytes((number << 3 | 2, 0))
        with pytest.raises(UnsupportedFeature, match="Fragment 3 in x has"):
            decode_fragment(data, "x")
        with pytest.raises(UnsupportedFeature, match="Fragment 3 in x has"):
            FragmentList([data], "x").check()

    def test_unknown_fields_survive_at_every_level(self) -> None:
        message = table_pb2.Fragment.FromString(encode_fragment(fragment(3, deletion=DELETION)))
        for level in (message, message.files[0], message.deletion_file):
            level.MergeFromString(STRANGER)
        data = message.SerializeToString()
        assert data.count(STRANGER) == 3
        assert encode_fragment(decode_fragment(data, "x")) == data


def test_long_versions_are_put_where_protobuf_puts_them() -> None:
    rows = 20_000
    versions = VersionSequence.constant(rows, 1).patched(np.arange(0, rows, 2), 7)
    long = replace(
        stable_fragment(physical_rows=rows),
        last_updated_at=encode_versions(versions),
        created_at=encode_versions(VersionSequence.constant(rows, 1)),
        clustering_id=5,
        unknown=STRANGER,
    )
    data = encode_fragment(long)
    assert len(data) > 150_000
    assert data == fragment_to_message(long).SerializeToString(deterministic=True)
    assert decode_fragment(data, "p") == long
