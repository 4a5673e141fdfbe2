from __future__ import annotations

import pytest
from tests.unit.format.samples import index

from tablewright.errors import CorruptTable, InternalError
from tablewright.format.index import IndexFile, decode_index_section, encode_index_section, problems_of_index
from tablewright.format.proto import table_pb2

STRANGER = b"\xc2\xbb\x01\x03abc"


def test_round_trip() -> None:
    full = index(
        details_type_url="/lance.table.BTreeIndexDetails",
        index_version=0,
        created_at_ms=5,
        base_id=0,
        files=(IndexFile(path="a", size_bytes=1),),
        covering_fields=(3,),
        clustering_id=0,
    )
    assert decode_index_section(encode_index_section([full, index()]), "x") == ((full, index()), b"")


def test_coverage() -> None:
    assert sorted(index().coverage or []) == [0, 1]
    assert sorted(index().with_coverage([5, 9]).coverage or []) == [5, 9]
    assert index(fragment_bitmap=None).coverage is None
    assert index().with_coverage(range(5)).fragment_bitmap == bytes.fromhex("3b3000000100000400010000000400")
    assert not index().with_coverage([]).coverage


def test_a_missing_bitmap_is_not_an_empty_one() -> None:
    for entry in (index(fragment_bitmap=None), index().with_coverage([])):
        ((again,), _) = decode_index_section(encode_index_section([entry]), "x")
        assert again == entry


def test_unknown_fields_survive_at_every_level() -> None:
    section = table_pb2.IndexSection.FromString(encode_index_section([index(files=(IndexFile(path="a"),))]))
    for level in (section, section.indices[0], section.indices[0].files[0]):
        level.MergeFromString(STRANGER)
    data = section.SerializeToString()
    indices, unknown = decode_index_section(data, "x")
    assert encode_index_section(indices, unknown) == data
    assert data.count(STRANGER) == 3


def test_a_uuid_has_sixteen_bytes() -> None:
    for uuid in (b"", bytes(15), bytes(17)):
        message = table_pb2.IndexSection(indices=[table_pb2.IndexMetadata(uuid=table_pb2.Uuid(uuid=uuid))])
        with pytest.raises(CorruptTable, match=f"x: an index uuid has {len(uuid)} bytes instead of 16"):
            decode_index_section(message.SerializeToString(), "x")


def test_a_broken_bitmap_is_found_on_both_sides() -> None:
    broken = index(fragment_bitmap=b"\x3a\x30\0\0\x01")
    assert len(list(problems_of_index(broken))) == 1
    with pytest.raises(InternalError, match="fragment bitmap is broken"):
        encode_index_section([broken])
    message = table_pb2.IndexSection.FromString(encode_index_section([index()]))
    message.indices[0].fragment_bitmap = b"nonsense"
    with pytest.raises(CorruptTable, match=r"x: index 'id_idx' .* fragment bitmap is broken"):
        decode_index_section(message.SerializeToString(), "x")


def test_negative_numbers_are_found() -> None:
    for broken in (index(dataset_version=-1), index(fields=(-1,)), index(files=(IndexFile(path="a", size_bytes=-1),))):
        assert len(list(problems_of_index(broken))) == 1


def test_a_coverage_that_no_table_can_have_is_refused() -> None:
    covering = index().with_coverage(range(2**24))
    assert list(problems_of_index(covering)) == []
    too_many = index().with_coverage(range(2**24 + 1))
    (problem,) = problems_of_index(too_many)
    assert "counts 16777217 values" in problem


def test_sections_are_kept_by_their_bytes() -> None:
    one = encode_index_section([index()])
    first = decode_index_section(one, "here")
    assert decode_index_section(bytes(bytearray(one)), "there") is first
    assert encode_index_section(first[0], first[1]) == one
    with pytest.raises(CorruptTable, match="there"):
        decode_index_section(one[:-1], "there")
