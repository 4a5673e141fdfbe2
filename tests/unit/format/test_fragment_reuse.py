"""The record of deferred compactions: golden bytes, round trips, refusals."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment_reuse import (
    ReuseFile,
    ReuseHistory,
    ReuseVersion,
    decode_reuse,
    decode_reuse_history,
    encode_reuse,
    encode_reuse_file,
    encode_reuse_history,
)
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.format.row_set import RowSet
from tablewright.format.wire import encode_length_delimited

GOLDEN = bytes.fromhex(
    "0a65 0a63 0804 1a5f 0a45 0300000000000000 00000000 3b300000010000070002000000010004000500"
    "01000000 3b3000000100000900010000000900 02000000 3b3000000100000900010000000900"
    "1204100a1802 12040801100a 12040802100a 1a040803101c"
)
"""pylance 14.0.2: fragments 0 (10 rows, 2 and 3 deleted), 1 and 2 became fragment 3 after version 4."""

GROUP = AddressMap((OldRows(0, 10, RowSet.of([2, 3])), OldRows(1, 10), OldRows(2, 10)), (NewRows(3, 28),))


def test_golden_bytes_of_pylance() -> None:
    found = decode_reuse(GOLDEN, "manifest")
    assert isinstance(found, ReuseHistory)
    (version,) = found.versions
    assert (version.dataset_version, version.groups) == (4, (GROUP,))
    assert (version.old_ids, version.new_ids) == (frozenset({0, 1, 2}), frozenset({3}))
    assert encode_reuse(encode_reuse_history(found)) == GOLDEN
    assert encode_reuse(encode_reuse_history(ReuseHistory((ReuseVersion.of(4, [GROUP]),)))) == GOLDEN


def test_a_record_in_a_file() -> None:
    details = encode_reuse_file(246_072)
    assert (
        details.hex()
        == pb.FragmentReuseDetails(external=pb.ExternalFile(path="details.binpb", size=246_072))
        .SerializeToString()
        .hex()
    )
    assert decode_reuse(details, "manifest") == ReuseFile("details.binpb", 0, 246_072)
    history = ReuseHistory((ReuseVersion.of(4, [GROUP]),))
    assert decode_reuse_history(encode_reuse_history(history), "details.binpb") == history


def test_fields_of_newer_releases_survive() -> None:
    history = decode_reuse(GOLDEN, "manifest")
    assert isinstance(history, ReuseHistory)
    newer_field = b"\xf8\x01\x07"
    version = history.versions[0].encoded + newer_field
    record = encode_length_delimited(1, version) + newer_field
    found = decode_reuse_history(record, "details.binpb")
    assert found.versions[0].groups == (GROUP,)
    assert encode_reuse_history(found) == record


@st.composite
def groups(draw: st.DrawFn) -> AddressMap:
    ids = draw(st.lists(st.integers(0, 2**32 - 2), min_size=2, max_size=6, unique=True))
    cut = draw(st.integers(1, len(ids) - 1))
    old = []
    for id in sorted(ids[:cut]):
        rows = draw(st.integers(0, 70_000))
        gone = draw(st.sets(st.integers(0, max(0, rows - 1)), max_size=5)) if rows else set()
        old.append(OldRows(id, rows, RowSet.of(sorted(gone))))
    left = sum(each.live_rows for each in old)
    new = [NewRows(id, left if id == ids[-1] else 0) for id in ids[cut:]]
    return AddressMap(tuple(old), tuple(new))


@given(groups(), st.integers(0, 2**40))
def test_round_trip(group: AddressMap, version: int) -> None:
    history = ReuseHistory((ReuseVersion.of(version, [group]),))
    assert decode_reuse(encode_reuse(encode_reuse_history(history)), "manifest") == history


@given(st.binary(max_size=80), st.integers(0, len(GOLDEN) - 1), st.integers(0, 255))
def test_other_bytes_are_refused_with_a_type(noise: bytes, place: int, byte: int) -> None:
    for data in (noise, GOLDEN[:place] + bytes([byte]) + GOLDEN[place + 1 :], GOLDEN[:place]):
        with contextlib.suppress(CorruptTable, UnsupportedFeature):
            decode_reuse(data, "manifest")


def test_refusals() -> None:
    with pytest.raises(UnsupportedFeature, match="transitions"):
        decode_reuse_history(pb.FragmentReuseHistory(transitions=[b"x"]).SerializeToString(), "details.binpb")
    with pytest.raises(CorruptTable, match="neither"):
        decode_reuse(b"", "manifest")
    with pytest.raises(CorruptTable, match=r"\.\./x"):
        decode_reuse(encode_reuse_file(5, "../x"), "manifest")
    with pytest.raises(InternalError):
        ReuseVersion.of(1, [AddressMap((OldRows(1, 1), OldRows(0, 1)), (NewRows(3, 2),))])
    message = pb.FragmentReuseHistory.FromString(
        encode_reuse_history(ReuseHistory((ReuseVersion.of(4, [GROUP]), ReuseVersion.of(5, ()))))
    )
    message.versions[0].groups[0].new_fragments[0].physical_rows = 29
    with pytest.raises(CorruptTable, match="28 live rows, the new ones 29"):
        decode_reuse_history(message.SerializeToString(), "details.binpb")
    message.versions[0].groups[0].new_fragments[0].physical_rows = 28
    message.versions[0].groups[0].old_fragments[1].id = 9
    with pytest.raises(CorruptTable, match="10 of the moved rows"):
        decode_reuse_history(message.SerializeToString(), "details.binpb")
    message.versions[0].groups[0].old_fragments[1].id = 1
    message.versions[0].groups[0].new_fragments[0].id = 1
    with pytest.raises(CorruptTable, match="twice"):
        decode_reuse_history(message.SerializeToString(), "details.binpb")


def test_coverage_is_translated_through_all_versions() -> None:
    then = AddressMap((OldRows(3, 28), OldRows(4, 2)), (NewRows(5, 30),))
    history = ReuseHistory((ReuseVersion.of(4, [GROUP]), ReuseVersion.of(9, [then])))
    assert sorted(history.coverage([0, 1, 2, 4, 8])) == [5, 8]
    assert sorted(history.coverage([0, 1, 2])) == []
    assert sorted(history.coverage([0, 1, 4])) == []
    assert sorted(history.coverage([3, 4])) == [5]
