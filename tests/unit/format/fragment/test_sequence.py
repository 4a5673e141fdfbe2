from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.unit.format.samples import DELETION, fragment

from tablewright.errors import CorruptTable, WrongType
from tablewright.format.fragment import (
    Fragment,
    FragmentList,
    decode_fragment,
    encode_fragment,
)
from tablewright.format.proto import table_pb2

STRANGER = b"\xc2\xbb\x01\x03abc"


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

    def test_rows_and_places(self) -> None:
        found = self._list()
        assert found.live_rows.tolist() == [one.live_rows for one in found]
        assert found.first_rows.tolist() == [sum(one.live_rows for one in found[:place]) for place in range(3)]
        assert [found.position(one.id) for one in found] == [0, 1, 2]
        with pytest.raises(KeyError):
            found.position(2)
        assert FragmentList().first_rows.tolist() == FragmentList().live_rows.tolist() == []

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
