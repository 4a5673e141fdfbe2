from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.format.samples import DELETION, FILE, fragment, stable_fragment

from tablewright.errors import CorruptTable, InternalError, InvalidRequest, UnsupportedFeature, WrongType
from tablewright.format.fragment import (
    TOMBSTONE,
    Fragment,
    FragmentList,
    decode_fragment,
    encode_fragment,
    fragment_from_json,
    fragment_to_json,
    problems_of_fragment,
)
from tablewright.format.fragment.codec import fragment_to_message
from tablewright.format.proto import table_pb2
from tablewright.format.row_ids import VersionSequence, encode_versions

STRANGER = b"\xc2\xbb\x01\x03abc"


class TestValue:
    def test_rows(self) -> None:
        whole = fragment()
        assert (whole.live_rows, whole.deleted_rows) == (10, 0)
        assert whole.with_deletion(DELETION).live_rows == 6
        assert whole.with_deletion(DELETION).with_deletion(None) == whole

    def test_live_fields(self) -> None:
        old = replace(FILE, fields=(0, TOMBSTONE))
        new = replace(FILE, path="g.lance", fields=(1,), column_indices=(0,))
        assert fragment(files=(old, new)).live_fields == {0, 1}
        assert old.live_fields == (0,)
        assert FILE.version == "2.2"

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"id": 1 << 32}, "does not fit 32 bits"),
            ({"id": -1}, "does not fit 32 bits"),
            ({"physical_rows": (1 << 32) + 1}, "do not fit 32 bits of offsets"),
            ({"deletion": replace(DELETION, num_deleted_rows=11)}, "11 of 10 rows are deleted"),
            ({"deletion": replace(DELETION, num_deleted_rows=-1)}, "negative number"),
            ({"files": (FILE, replace(FILE, path="g"))}, "in another of its files"),
            ({"files": (replace(FILE, path=""),)}, "does not stay inside"),
            ({"files": (replace(FILE, path="/etc/passwd"),)}, "does not stay inside"),
            ({"files": (replace(FILE, path="../x"),)}, "does not stay inside"),
            ({"files": (replace(FILE, column_indices=()),)}, "2 fields but 0 column indices"),
            ({"files": (replace(FILE, fields=(0, -1)),)}, r"reserved field ids \[-1\]"),
            ({"files": (replace(FILE, fields=(0, -3)),)}, r"reserved field ids \[-3\]"),
            ({"files": (replace(FILE, fields=(0, 0)),)}, "lists a field twice"),
            ({"files": (replace(FILE, column_indices=(0, -2)),)}, "negative column index"),
        ],
    )
    def test_problems(self, changes: dict[str, Any], problem: str) -> None:
        broken = replace(fragment(7), **changes)
        assert len(problems_of_fragment(broken)) == 1
        with pytest.raises(AssertionError, match=problem):
            raise AssertionError(problems_of_fragment(broken)[0])

    def test_sound_ones_have_no_problems(self) -> None:
        first_generation = replace(FILE, file_major_version=0, column_indices=())
        for sound in (fragment(), stable_fragment(), fragment(files=()), fragment(files=(first_generation,))):
            assert problems_of_fragment(sound) == ()


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


class TestJson:
    def test_the_form_of_pylance(self) -> None:
        document = fragment_to_json(stable_fragment(1, deletion=DELETION))
        assert document["deletion_file"]["file_type"] == "bitmap"
        assert document["row_id_meta"] == {"Inline": [10, 6, 10, 4, 8, 10, 16, 20]}
        assert fragment_from_json(document) == stable_fragment(1, deletion=DELETION)
        assert fragment_from_json(json.dumps(document)) == stable_fragment(1, deletion=DELETION)

    @pytest.mark.parametrize(
        "document",
        ["", "7", "{", "[]", "{}", '{"id": "a"}', '{"id": 0, "files": 3}', '{"id":true,"files":[],"physical_rows":1}'],
    )
    def test_anything_else_is_refused(self, document: str) -> None:
        with pytest.raises(InvalidRequest, match="no JSON document of a fragment"):
            fragment_from_json(document)

    def test_parts_that_make_no_sense_are_refused(self) -> None:
        good = fragment_to_json(stable_fragment(deletion=DELETION))
        for name, value in (
            ("deletion_file", {**good["deletion_file"], "file_type": "tape"}),
            ("row_id_meta", {"External": {}}),
            ("row_id_meta", {"Inline": [300]}),
            ("overlays", [1]),
        ):
            with pytest.raises(InvalidRequest):
                fragment_from_json({**good, name: value})
        with pytest.raises(InvalidRequest, match="no sound fragment"):
            fragment_from_json({**good, "physical_rows": 1})


class TestList:
    def _list(self) -> FragmentList:
        return FragmentList.of([fragment(3), fragment(1, deletion=DELETION), fragment(8, physical_rows=20)])

    def test_is_a_sequence(self) -> None:
        found = self._list()
        assert len(found) == 3
        assert [one.id for one in found] == [3, 1, 8]
        assert found[-1] == fragment(8, physical_rows=20)
        assert list(found[1:]) == [found[1], found[2]]
        assert found[1:].ids.tolist() == [1, 8]  # type: ignore[attr-defined]
        assert fragment(3) in found
        assert fragment(3, physical_rows=11) not in found
        assert 3 not in found
        with pytest.raises(IndexError):
            found[3]

    def test_facts(self) -> None:
        found = self._list()
        assert found.ids.tolist() == [3, 1, 8]
        assert found.ids.dtype == np.uint64
        assert found.physical_rows.tolist() == [10, 10, 20]
        assert found.deleted_rows.tolist() == [0, 4, 0]
        assert found.total_live_rows == 36
        assert found.max_field_id == 1
        assert repr(found) == "FragmentList(<3 fragments, 36 live rows>)"
        with pytest.raises(ValueError, match="read-only"):
            found.ids[0] = 1

    def test_by_id(self) -> None:
        found = self._list()
        assert found.by_id(8).physical_rows == 20
        assert found.has(1)
        for missing in (0, 2, 9, -1, 1 << 70):
            assert not found.has(missing)
            with pytest.raises(KeyError):
                found.by_id(missing)

    def test_changes_make_new_lists(self) -> None:
        found = self._list()
        grown = found.appended([fragment(9)])
        assert grown.ids.tolist() == [3, 1, 8, 9]
        changed = grown.replaced({1: fragment(1)}, dropped=[3])
        assert changed.ids.tolist() == [1, 8, 9]
        assert changed.deleted_rows.tolist() == [0, 0, 0]
        assert [changed[position].id for position in sorted(changed.fresh)] == [1, 8, 9]
        assert found.ids.tolist() == [3, 1, 8]
        assert found.sorted_by_id().ids.tolist() == [1, 3, 8]
        assert list(found.sorted_by_id()) == [found[1], found[0], found[2]]
        for same in (found.appended([]), found.replaced({}), found.sorted_by_id().sorted_by_id()):
            assert same == found or same == found.sorted_by_id()
        with pytest.raises(KeyError):
            found.replaced({7: fragment(7)})
        with pytest.raises(KeyError):
            found.replaced({}, dropped=[7])

    def test_nothing(self) -> None:
        empty = FragmentList()
        assert len(empty) == empty.total_live_rows == 0
        assert empty.max_field_id == -1
        assert empty == FragmentList.of([])
        assert not empty.has(0)
        assert empty.facts.base_ids == empty.facts.file_versions == frozenset()

    def test_untouched_bytes_stay(self) -> None:
        raw = [encode_fragment(fragment(number)) + STRANGER for number in range(4)]
        found = FragmentList(raw, "x").appended([fragment(4)]).replaced({2: fragment(2)}, dropped=[0])
        assert list(found.raw) == [raw[1], encode_fragment(fragment(2)), raw[3], encode_fragment(fragment(4))]
        assert found[0].unknown == STRANGER

    def test_equality_and_pickling(self) -> None:
        found = self._list()
        again = pickle.loads(pickle.dumps(found))
        assert again == found
        assert again != found.sorted_by_id()
        assert found != FragmentList.of(found[:2])
        assert found != [*found]
        with pytest.raises(TypeError):
            hash(found)

    def test_decodes_only_what_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        decoded: list[bytes] = []

        def spy(data: bytes, path: str) -> Fragment:
            decoded.append(data)
            return decode_fragment(data, path)

        monkeypatch.setattr("tablewright.format.fragment.sequence.decode_fragment", spy)
        found = FragmentList([encode_fragment(fragment(number)) for number in range(50)], "x")
        assert found.total_live_rows == 500
        assert found.appended([fragment(50)]).sorted_by_id().by_id(50).id == 50
        assert decoded == []
        assert found.by_id(7) is found.by_id(7)
        assert len(decoded) == 1

    def test_broken_bytes_name_the_file(self) -> None:
        good = encode_fragment(fragment(1))
        found = FragmentList([good, b"\x08"], "some/file")
        with pytest.raises(CorruptTable, match="some/file: 1 fragments can't be decoded, at positions 1"):
            found.check()
        with pytest.raises(CorruptTable, match="some/file"):
            found[1]
        bad_path = good.replace(b"f.lance", b"\xff\xff\xff\xff\xff\xff\xff")
        with pytest.raises(CorruptTable, match="some/file"):
            FragmentList([bad_path], "some/file")[0]

    def test_two_deletion_files_are_broken(self) -> None:
        data = encode_fragment(fragment(1, deletion=DELETION))
        extra = table_pb2.Fragment(deletion_file=table_pb2.DeletionFile(id=1)).SerializeToString()
        with pytest.raises(CorruptTable):
            FragmentList([data + extra], "x").check()

    def test_blocks_join(self) -> None:
        count = 20_001
        found = FragmentList([encode_fragment(fragment(0))] * count, "x")
        assert found.physical_rows.tolist() == [10] * count
        assert found.facts.file_row.tolist() == list(range(count))


@pytest.mark.parametrize("fragment_id", ["3", None, [1], 2.5, True], ids=repr)
def test_ids_are_whole_numbers(fragment_id: Any) -> None:
    fragments = FragmentList.of([Fragment(id=3, files=(), physical_rows=1)])
    assert fragments.has(np.int64(3))
    assert not fragments.has(-1)
    for ask in (fragments.has, fragments.by_id):
        with pytest.raises(WrongType, match="a fragment id must be a whole number"):
            ask(fragment_id)


@pytest.mark.parametrize(
    "change",
    [{"base_id": -1}, {"file_size_bytes": 1 << 64}, {"file_major_version": 1 << 32}, {"fields": (1 << 31,)}],
    ids=str,
)
def test_numbers_out_of_range(change: dict[str, Any]) -> None:
    assert problems_of_fragment(fragment(files=(replace(FILE, **change),)))


@pytest.mark.parametrize("value", [5, 99_999_999_999, "ab", [256]])
def test_json_holds_bytes_as_lists(value: Any) -> None:
    document = fragment_to_json(Fragment(id=3, files=(), physical_rows=1))
    with pytest.raises(InvalidRequest):
        fragment_from_json({**document, "row_id_meta": {"Inline": value}})


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
