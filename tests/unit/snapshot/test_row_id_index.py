"""The row-id index against a plain dictionary, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.snapshot import row_id_index
from tablewright.snapshot.row_id_index import RowIdIndex

_FILE = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)


def _fragment(fragment_id: int, ids: RowIdSequence, deleted: int = 0) -> Fragment:
    deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=1, num_deleted_rows=deleted)
    return Fragment(
        id=fragment_id,
        files=(_FILE,),
        physical_rows=len(ids),
        row_ids=encode_row_ids(ids),
        deletion=deletion if deleted else None,
    )


def _list(*fragments: Fragment) -> FragmentList:
    """As it comes from a manifest: bytes, nothing decoded."""
    return FragmentList(list(FragmentList.of(fragments).raw), "a manifest")


class _History:
    """A table whose rows are appended, moved and deleted at random; the model is a dictionary from id to address."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.ids: dict[int, RowIdSequence] = {}
        self.deleted: dict[int, set[int]] = {}
        self.model: dict[int, int] = {}
        self.next_id = int(self.chance.choice([0, 0, 2**33]))

    def append(self) -> None:
        rows = int(self.chance.integers(1, 40))
        fragment = len(self.ids)
        self.ids[fragment] = RowIdSequence.from_range(self.next_id, self.next_id + rows)
        self.deleted[fragment] = set()
        self.model |= {self.next_id + row: fragment << 32 | row for row in range(rows)}
        self.next_id += rows + int(self.chance.integers(0, 3))

    def delete(self) -> None:
        self.hide(self.some())

    def hide(self, ids: list[int]) -> None:
        for number in ids:
            address = self.model.pop(number)
            self.deleted[address >> 32].add(address & 0xFFFFFFFF)

    def some(self) -> list[int]:
        share = float(self.chance.choice([0.05, 0.3, 0.9]))
        return [number for number in self.model if self.chance.random() < share]

    def move(self) -> None:
        moved = self.some()
        if not moved:
            return
        if self.chance.random() < 0.3:
            moved = self.chance.permutation(moved).tolist()
        self.hide(moved)
        fragment = len(self.ids)
        ids = RowIdSequence.from_values(np.array(moved, np.uint64))
        if self.chance.random() < 0.3:
            cut = len(moved) // 2
            ids = ids.slice(0, cut).concat(ids.slice(cut, len(moved)))
        if self.chance.random() < 0.5:
            ids = ids.concat(RowIdSequence.from_range(self.next_id, self.next_id + 4))
            self.model |= {self.next_id + row: fragment << 32 | len(moved) + row for row in range(4)}
            self.next_id += 4
        self.ids[fragment], self.deleted[fragment] = ids, set()
        self.model |= {number: fragment << 32 | row for row, number in enumerate(moved)}

    def compact(self) -> None:
        gone = [f for f in self.ids if len(self.deleted[f]) == len(self.ids[f]) and len(self.ids[f])]
        for fragment in gone[:1]:
            self.ids[fragment], self.deleted[fragment] = RowIdSequence(), set()

    def fragments(self) -> FragmentList:
        return _list(*(_fragment(f, ids, len(self.deleted[f])) for f, ids in self.ids.items() if len(ids)))

    def vector(self, fragment: Fragment) -> RowSet:
        return RowSet.of(self.deleted[fragment.id])

    def check(self, index: RowIdIndex) -> None:
        asked = np.arange(max(0, self.next_id - 400), self.next_id + 3, dtype=np.uint64)
        asked = self.chance.permutation(np.concatenate([asked, asked[:5], np.array([0, 2**64 - 1], np.uint64)]))
        addresses, found = index.locate(asked, self.vector)
        assert found.tolist() == [number in self.model for number in asked.tolist()]
        assert addresses.tolist() == [self.model.get(number, 0) for number in asked.tolist()]


@pytest.mark.parametrize("pieces_max", [2, 4096])
def test_it_answers_as_a_dictionary_does(pieces_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_id_index, "_PIECES_PER_SEGMENT_MAX", pieces_max)
    for seed in range(15):
        history = _History(seed)
        history.append()
        index = RowIdIndex.of(history.fragments(), "v1")
        for _ in range(12):
            step = [history.append, history.move, history.compact, history.delete]
            step[int(history.chance.integers(0, 4))]()
            index = index.extended(history.fragments(), "next")
            history.check(index)
        history.check(RowIdIndex.of(history.fragments(), "anew"))


def test_contiguous_ids_cost_one_piece_per_fragment_and_no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 20
    fragments = _list(*(_fragment(i, RowIdSequence.from_range(i * rows, (i + 1) * rows)) for i in range(100)))
    with monkeypatch.context() as patch:
        patch.setattr(FragmentList, "__getitem__", None)
        index = RowIdIndex.of(fragments, "a manifest")
        assert index.num_pieces == 100
        ids = np.random.default_rng(1).integers(0, 100 * rows, 1000).astype(np.uint64)
        addresses, found = index.locate(ids, lambda _: pytest.fail("there are no deletions"))
    assert found.all()
    assert np.array_equal(addresses, ids // np.uint64(rows) << np.uint64(32) | ids % np.uint64(rows))
    half = np.arange(0, 2 * rows, 2, dtype=np.uint64)
    assert RowIdIndex.of(_list(_fragment(0, RowIdSequence.from_values(half))), "").num_pieces == 1


def test_pieces_lie_in_as_many_layers_as_there_are_above_each_other() -> None:
    """Rows of a window that moves on are updated again and again: each fragment overlaps those around it."""
    steps, rows = 300, 70
    windows = [RowIdSequence.from_range(10 * step, 10 * step + rows) for step in range(steps)]
    index = RowIdIndex.of(_list(*(_fragment(step, ids, deleted=60) for step, ids in enumerate(windows))), "a manifest")
    hidden = {step: RowSet.of(range(10, rows)) for step in range(steps - 1)}
    ids = np.arange(10 * steps)
    addresses, found = index.locate(ids, lambda fragment: hidden.get(fragment.id))
    assert found.all()
    assert np.array_equal(addresses, (ids // 10 << 32 | ids % 10).astype(np.uint64))
    assert len(index._layers) == rows // 10
    assert sum(map(len, index._layers)) == steps


@pytest.mark.parametrize("longest", [1, 4, 40, 400])
def test_layers_of_ranges_anywhere(longest: int) -> None:
    chance = np.random.default_rng(longest)
    firsts = chance.integers(0, 2000, 300)
    ends = firsts + chance.integers(1, longest + 1, 300)
    fragments = [
        _fragment(number, RowIdSequence.from_range(*bounds), deleted=1)
        for number, bounds in enumerate(zip(firsts.tolist(), ends.tolist(), strict=True))
    ]
    layers = RowIdIndex.of(_list(*fragments), "a manifest")._layers
    deepest = max(int(np.count_nonzero((firsts <= number) & (number < ends))) for number in range(2400))
    assert len(layers) == deepest
    assert all(np.all(layer.firsts[1:] > layer.lasts[:-1]) for layer in layers)
    assert sorted(int(number) for layer in layers for number in layer.fragments) == list(range(300))


def test_the_next_version_reads_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _list(*(_fragment(i, RowIdSequence.from_range(i * 10, i * 10 + 10)) for i in range(50)))
    index = RowIdIndex.of(before, "before")
    scattered = RowIdSequence.from_values([31, 5, 498])
    deleted = {0: [5], 3: [1], 49: [8]}
    changed = {i: replace(before.by_id(i), deletion=_fragment(i, scattered, 1).deletion) for i in deleted}
    after = before.replaced(changed, [7]).appended([_fragment(50, scattered)])
    read: list[int] = []
    real = row_id_index.row_id_ranges
    monkeypatch.setattr(row_id_index, "row_id_ranges", lambda raw: read.append(len(raw)) or real(raw))
    newer = index.extended(after, "after")
    assert read == [4]
    assert newer.extended(after, "after") is newer
    addresses, found = newer.locate([5, 6, 31, 75, 498, 499], lambda fragment: RowSet.of(deleted[fragment.id]))
    assert found.tolist() == [True, True, True, False, True, True]
    assert addresses[found].tolist() == [50 << 32 | 1, 6, 50 << 32, 50 << 32 | 2, 49 << 32 | 9]


def test_ids_of_two_live_rows_and_wrong_counts_are_damage() -> None:
    twice = _list(_fragment(0, RowIdSequence.from_range(0, 10)), _fragment(1, RowIdSequence.from_range(9, 12)))
    with pytest.raises(CorruptTable, match="several live rows have the row ids 9"):
        RowIdIndex.of(twice, "a manifest")
    hidden = _list(_fragment(0, RowIdSequence.from_range(0, 10), 1), _fragment(1, RowIdSequence.from_range(9, 12)))
    index = RowIdIndex.of(hidden, "a manifest")
    assert index.locate([9], lambda _: RowSet.of([9]))[0].tolist() == [1 << 32]
    with pytest.raises(CorruptTable, match="several live rows have the row ids 9"):
        index.locate([3, 9, 9], lambda _: RowSet.of([4]))
    short = replace(_fragment(0, RowIdSequence.from_range(0, 10)), physical_rows=11)
    with pytest.raises(CorruptTable, match="10 row ids for 11 rows"):
        RowIdIndex.of(_list(short), "a manifest")
