"""Sequences in files of their own become inline. Whole tables: tests/unit/snapshot/test_external_sequences.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.format.samples import fragment, stable_fragment

from tablewright.errors import CorruptTable
from tablewright.format.fragment import FragmentList, SequenceFile, encode_fragment, with_external
from tablewright.format.proto import table_pb2 as pb


def outside(**places: tuple[str, int, int]) -> bytes:
    named = pb.FragmentExternals()
    for field, (path, offset, size) in places.items():
        getattr(named, field).CopyFrom(pb.SequenceFile(path=path, offset=offset, size=size))
    return bytes(named.SerializeToString())


def refuse(place: SequenceFile) -> bytes:
    raise AssertionError(place)


def test_lists_without_any_stay_the_same() -> None:
    fragments = FragmentList.of([fragment(0), stable_fragment(1)])
    assert with_external(fragments, refuse) is fragments


def test_they_are_read_where_they_lie_and_other_unknown_fields_stay() -> None:
    whole = stable_fragment(1)
    bare = replace(whole, row_ids=None, last_updated_at=None, unknown=b"\xa2\x06\x01z")
    named = outside(row_ids=("a", 3, 4), last_updated_at_versions=("b", 0, 9))
    fragments = FragmentList([encode_fragment(fragment(0)), encode_fragment(bare) + named], "m")
    asked: list[SequenceFile] = []

    def read(place: SequenceFile) -> bytes:
        asked.append(place)
        return {"a": whole.row_ids, "b": whole.last_updated_at}[place.path] or b""

    inline = with_external(fragments, read)
    assert asked == [SequenceFile("a", 3, 4), SequenceFile("b", 0, 9)]
    assert inline[0] == fragment(0)
    assert inline[1] == replace(whole, unknown=b"\xa2\x06\x01z")
    assert with_external(inline, refuse) is inline


def test_a_place_that_can_not_be_decoded() -> None:
    bare = replace(stable_fragment(1), row_ids=None)
    fragments = FragmentList([encode_fragment(bare) + b"\x32\x02\x0a\x7f"], "m")
    with pytest.raises(CorruptTable, match="fragment 1: where its row ids or versions lie"):
        with_external(fragments, refuse)
