from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import KindStats, process_cache
from tablewright.data import small
from tablewright.data.shape import ReadShape
from tablewright.data.small import SmallFragments
from tablewright.data.small_runs import small_runs
from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.schema import Schema
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import identity, open_store
from tablewright.world import World

KIND, BLOCKS = "small fragments", "blocks of small fragments"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(identity, "SETTLED_NS", 0)
    before = process_cache().bytes_max
    process_cache().clear()
    yield
    process_cache().resize(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = pa.table({"a": range(100), "s": [f"text {number}" for number in range(100)]})
    tw.write_dataset(rows, tmp_path / "t", max_rows_per_file=10)
    return tmp_path / "t"


def _snapshot(path: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(path))))


def _read(path: Path, *columns: str) -> dict[str, list[object]]:
    snapshot = _snapshot(path)
    fragments, table = snapshot.fragments, snapshot.schema
    wanted = table.project_ids([table.resolve(name).id for name in columns])
    files = SmallFragments(snapshot, ReadShape(table, wanted), fragments)
    return files.read(0, len(fragments)).batch.to_pydict()


def _entries() -> int:
    return process_cache().stats().kinds.get(KIND, KindStats()).entries


def _opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The fragments that are read from now on, with the codec or without."""
    opened: list[object] = []
    whole, numbers = small.read_whole, small.read_number_rows

    def read_whole(context: Any, fragment: Any, shape: Any) -> Any:
        opened.append(fragment.id)
        return whole(context, fragment, shape)

    def read_number_rows(context: Any, fragment: Any, shape: Any, offsets: Any) -> Any:
        found = numbers(context, fragment, shape, offsets)
        if found is not None:
            opened.append(fragment.id)
        return found

    monkeypatch.setattr(small, "read_whole", read_whole)
    monkeypatch.setattr(small, "read_number_rows", read_number_rows)
    return opened


@pytest.mark.parametrize("few", [0, 4], ids=["by the codec", "without it"])
@pytest.mark.parametrize("deleted", [None, "a = 1001"])
def test_few_fragments_of_numbers(path: Path, few: int, deleted: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few fragments of numbers are read without the codec: the same rows, kept in the same way."""
    monkeypatch.setattr(small, "_FEW", few)
    _read(path, "a")
    ds = tw.dataset(path)
    ds.insert(pa.table({"a": [1000, 1001], "s": ["x", None]}))
    ds.insert(pa.table({"a": pa.array([None, 1002], pa.int64()), "s": ["y", "z"]}))
    if deleted is not None:
        ds.delete(deleted)
        process_cache().clear()
        _read(path, "a")
    expected = [*range(100), 1000, *([] if deleted else [1001]), None, 1002]
    joined: list[int] = []
    real = small.read_joined
    monkeypatch.setattr(small, "read_joined", lambda *given: joined.append(len(given[1])) or real(*given))
    ds.insert(pa.table({"a": [5000], "s": ["w"]}))
    assert _read(path, "a")["a"] == [*expected, 5000]
    assert _read(path, "s")["s"][-1] == "w", "texts are left to the codec"
    opened = _opened(monkeypatch)
    assert _read(path, "a")["a"] == [*expected, 5000]
    assert opened == [], "what was read is kept"
    assert joined, "the texts"


def test_columns_are_kept_one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = _opened(monkeypatch)
    assert _read(path, "a", "s")["a"] == list(range(100))
    assert len(opened) == 10
    assert _read(path, "s")["s"] == [f"text {number}" for number in range(100)]
    assert _read(path, "a")["a"] == list(range(100))
    assert len(opened) == 10
    process_cache().clear()
    _read(path, "a")
    _read(path, "s")
    assert _read(path, "s", "a")["a"] == list(range(100))
    assert len(opened) == 30


def _hits(kind: str) -> int:
    return process_cache().stats().kinds.get(kind, KindStats()).hits


def _whole(path: Path, column: str = "a") -> SmallFragments:
    snapshot = _snapshot(path)
    table = snapshot.schema
    return SmallFragments(snapshot, ReadShape(table, table.project_ids([table.resolve(column).id])), snapshot.fragments)


def test_most_are_kept_by_a_sample(path: Path) -> None:
    files = _whole(path)
    assert not files.are_mostly_kept(0, 10)
    files.read(0, 3)
    before = process_cache().stats()
    assert files.are_mostly_kept(0, 3) and files.are_mostly_kept(1, 4)
    assert not files.are_mostly_kept(0, 10)
    assert process_cache().stats() == before, "it is no use of what is there"
    process_cache().resize(0)
    assert not _whole(path).are_mostly_kept(0, 3)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    rows = pa.table({"a": range(200), "s": [f"text {number}" for number in range(200)]})
    tw.write_dataset(rows, tmp_path / "tiny", max_rows_per_file=2)
    return tmp_path / "tiny"


def test_tiny_fragments_are_found_in_blocks(tiny: Path) -> None:
    assert _read(tiny, "a")["a"] == list(range(200))
    assert process_cache().stats().kinds[BLOCKS].entries == 3, "100 fragments, and the last four are no block"
    one_by_one, blocks = _hits(KIND), _hits(BLOCKS)
    assert _read(tiny, "a")["a"] == list(range(200))
    assert (_hits(KIND) - one_by_one, _hits(BLOCKS) - blocks) == (4, 3)
    tw.dataset(tiny).delete("a = 70")
    assert _read(tiny, "a")["a"] == [number for number in range(200) if number != 70]
    one_by_one, blocks = _hits(KIND), _hits(BLOCKS)
    assert _read(tiny, "a")["a"] == [number for number in range(200) if number != 70]
    assert (_hits(KIND) - one_by_one, _hits(BLOCKS) - blocks) == (4, 3), "the block of that fragment was made again"
    files = _whole(tiny)
    for start, stop in ((0, 33), (5, 70), (31, 96), (64, 96), (96, 100)):
        expected = [number for number in range(2 * start, 2 * stop) if number != 70]
        found = files.read(start, stop)
        assert found.batch.to_pydict()["a"] == expected
        assert found.counts.sum() == len(expected) and found.offsets.tolist() == [number % 2 for number in expected]
    assert _read(tiny, "s")["s"][:2] == ["text 0", "text 1"], "other columns are another block"


def test_a_change_in_a_block_is_seen(tiny: Path, tmp_path: Path) -> None:
    for _ in range(2):
        _read(tiny, "a")
    tw.dataset(tiny).delete("a IN (3, 4, 5, 190)")
    for _ in range(2):
        assert _read(tiny, "a")["a"] == [number for number in range(200) if number not in (3, 4, 5, 190)]
    lost = tiny / "data" / _snapshot(tiny).fragments[40].files[0].path
    shutil.move(lost, tmp_path / "lost")
    with pytest.raises(CorruptTable):
        _read(tiny, "a")
    shutil.copy(tmp_path / "lost", lost)
    assert len(_read(tiny, "a")["a"]) == 196
    deletion = next((tiny / "_deletions").iterdir())
    deletion.unlink()
    with pytest.raises(CorruptTable):
        _read(tiny, "a")


def test_files_that_changed_just_now_are_in_no_block(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    identity.written.clear()  # as if another process had written them
    for _ in range(2):
        assert _read(tiny, "a")["a"] == list(range(200))
    assert BLOCKS not in process_cache().stats().kinds or not process_cache().stats().kinds[BLOCKS].entries


def test_larger_fragments_make_no_block(tmp_path: Path) -> None:
    rows = pa.table({"a": range(32 * 400)})
    tw.write_dataset(rows, tmp_path / "t", max_rows_per_file=400)
    for _ in range(2):
        assert _read(tmp_path / "t", "a")["a"] == list(range(32 * 400))
    assert _entries() == 32
    assert process_cache().stats().kinds[BLOCKS].entries == 0, "they would take twice their bytes"


def test_a_commit_leaves_other_fragments_in_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _read(path, "a")
    tw.dataset(path).delete("a in (3, 50, 51)")
    tw.write_dataset(pa.table({"a": [100], "s": ["x"]}), path, mode="append")
    opened = _opened(monkeypatch)
    assert _read(path, "a")["a"] == [number for number in range(101) if number not in (3, 50, 51)]
    assert opened == [10], "0 and 5 have only got a deletion file"


@pytest.mark.parametrize("settled_ns", [0, 10**15], ids=["settled", "young"])
def test_deletions_change_and_the_columns_stay(path: Path, monkeypatch: pytest.MonkeyPatch, settled_ns: int) -> None:
    """A loop of deletes leaves one entry per fragment, also while deletion files are too young to be kept."""
    _read(path, "a")
    monkeypatch.setattr(identity, "SETTLED_NS", settled_ns)
    opened = _opened(monkeypatch)
    left = list(range(100))
    for number in (3, 50, 4, 55, 99, 5):
        tw.dataset(path).delete(f"a = {number}")
        left.remove(number)
        assert _read(path, "a")["a"] == left == _read(path, "a")["a"]
    tw.dataset(path, version=1).restore()
    assert _read(path, "a")["a"] == list(range(100))
    assert opened == []
    assert _entries() == 10


def test_a_deletion_file_that_is_lost_is_seen(path: Path) -> None:
    _read(path, "a")
    tw.dataset(path).delete("a = 3")
    for file in (path / "_deletions").iterdir():
        file.unlink()
    with pytest.raises(CorruptTable, match="missing"):
        _read(path, "a")


def test_a_data_file_that_changed_is_read_with_other_deletions(path: Path, tmp_path: Path) -> None:
    """The fragment is the same but for its deletions, its file is not: as after a table was copied over another."""
    rows = pa.table({"a": range(100, 200), "s": [f"text {number}" for number in range(100)]})
    tw.write_dataset(rows, tmp_path / "u", max_rows_per_file=10)
    assert _read(path, "a")["a"] == list(range(100))
    tw.dataset(path).delete("a = 3")
    first, other = (_snapshot(place).fragments[0].files[0] for place in (path, tmp_path / "u"))
    assert first.file_size_bytes == other.file_size_bytes
    shutil.copy2(tmp_path / "u" / "data" / other.path, path / "data" / first.path)
    assert _read(path, "a")["a"] == [100, 101, 102, *range(104, 110), *range(10, 100)]


@pytest.mark.parametrize("budget", [0, 1500, 4000])
def test_without_a_cache_and_with_a_tiny_one(path: Path, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    process_cache().resize(budget)
    opened = _opened(monkeypatch)
    for _ in range(3):
        assert _read(path, "a", "s")["a"] == list(range(100))
        assert process_cache().stats().bytes_used <= budget
    assert len(opened) == 30


def test_a_read_larger_than_half_the_budget_keeps_nothing(path: Path) -> None:
    process_cache().resize(20_000)
    process_cache().keep(("kept", 1), "x", 5000)
    assert _entries() == 0 and _read(path, "a")["a"] == list(range(100))
    assert process_cache().find(("kept", 1)) == "x"
    assert _entries() == 0


def test_a_store_in_memory_is_not_cached() -> None:
    ds = tw.write_dataset(pa.table({"a": range(20)}), "memory://small-fragments", max_rows_per_file=5)
    for _ in range(2):
        assert ds.to_table()["a"].to_pylist() == list(range(20))
    assert _entries() == 0


def _damage(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.seek(-8, os.SEEK_END)
        opened.write(b"\xff" * 4)


def test_damage_and_loss_are_seen_after_a_read(path: Path) -> None:
    _read(path, "a")
    file, other = sorted((path / "data").iterdir())[:2]
    bytes_before = file.read_bytes()
    _damage(file)
    with pytest.raises(CorruptTable):
        _read(path, "a")
    file.write_bytes(bytes_before)
    assert _read(path, "a")["a"] == list(range(100))
    other.unlink()
    with pytest.raises(CorruptTable, match="missing"):
        _read(path, "a")


def test_a_file_that_changed_just_now_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    identity.written.clear()  # as if another process had written them
    opened = _opened(monkeypatch)
    for _ in range(2):
        _read(path, "a")
    assert len(opened) == 20


def test_a_file_that_this_process_has_written_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    ds = tw.dataset(path)
    ds.delete("a = 55")
    ds.insert(pa.table({"a": [1000], "s": ["new"]}))
    expected = [*range(55), *range(56, 100), 1000]
    opened = _opened(monkeypatch)
    for _ in range(3):
        assert _read(path, "a")["a"] == expected
    assert opened == [10], "the delete has read the others"


def test_loops_of_changes_read_each_new_fragment_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 10**15)
    ds = tw.dataset(path)
    opened = _opened(monkeypatch)
    for number in range(5):
        rows = pa.table({"a": [number, 200 + number], "s": ["x", "y"]})
        ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    assert len(opened) == len(set(opened)), "what a change wrote is read by the next one, and kept"
    assert sorted(_read(path, "a")["a"]) == [*range(100), *range(200, 205)]


def test_another_table_at_the_same_path_with_the_same_names(path: Path, tmp_path: Path) -> None:
    """All bytes of the manifest are the same; only the data differ, as with seeded ids."""
    assert _read(path, "a")["a"] == list(range(100))
    shutil.rmtree(path)
    tw.write_dataset(pa.table({"a": range(100, 200)}), tmp_path / "u", max_rows_per_file=10)
    names = [file.path for fragment in _snapshot(tmp_path / "u").fragments for file in fragment.files]
    shutil.copytree(tmp_path / "u", path)
    assert _read(path, "a")["a"] == list(range(100, 200))
    for old, new in zip(names, reversed(names), strict=True):
        shutil.copy2(tmp_path / "u" / "data" / old, path / "data" / new)
    assert _read(path, "a")["a"] == [number for start in range(190, 90, -10) for number in range(start, start + 10)]


def test_another_schema_is_another_column(path: Path) -> None:
    assert _read(path, "a")["a"] == list(range(100))
    tw.dataset(path).alter_columns({"path": "a", "name": "s2"}, {"path": "s", "name": "a"})
    assert _read(path, "a")["a"] == [f"text {number}" for number in range(100)]
    assert _read(path, "s2")["s2"] == list(range(100))


# ------------------------------------------------------------------------------------------------------------- runs
def _list(*fragments: tuple[int, int], ids: Sequence[int] | None = None) -> FragmentList:
    """Fragments of these rows and bytes; their ids count from 0 on, unless given."""
    file = {"fields": (0, 1), "column_indices": (0, 1), "file_major_version": 2, "file_minor_version": 2}
    return FragmentList.of(
        Fragment(id=number, files=(DataFile(path=f"{number}.lance", file_size_bytes=size, **file),), physical_rows=rows)
        for number, (rows, size) in zip(ids or range(len(fragments)), fragments, strict=True)
    )


TEXT = Schema.from_arrow(pa.schema({"a": pa.int64(), "s": pa.string()}))
NUMBERS = TEXT.project_ids([0])


def test_runs_are_cut() -> None:
    shape = ReadShape(TEXT, TEXT)
    assert list(small_runs(FragmentList(), shape)) == []
    many = list(small_runs(_list(*[(1, 500)] * 200), shape))
    assert many == [(0, 8, True), (8, 24, True), (24, 64, True), (64, 128, True), (128, 192, True), (192, 200, True)]
    mixed = _list((10, 500), (10, 1 << 20), (10, 1 << 20), (10, 0), (10, 600), (0, 100), (10, 600))
    assert list(small_runs(mixed, shape)) == [(0, 1, True), (1, 4, False), (4, 5, True), (5, 6, False), (6, 7, True)]
    heavy = list(small_runs(_list(*[(1000, 60_000)] * 100), shape))
    assert max(stop - start for start, stop, _ in heavy) <= 35
    assert [start for start, _, _ in heavy[1:]] == [stop for _, stop, _ in heavy[:-1]]


def test_runs_end_where_blocks_end() -> None:
    """Blocks are by id; ids have gaps, and a list may begin within a block."""
    ids = [*range(20, 90, 3), *range(200, 400)]
    fragments = _list(*[(1, 500)] * len(ids), ids=ids)
    starts = [start for start, _, _ in small_runs(fragments, ReadShape(TEXT, TEXT))]
    assert starts[:2] == [0, 8]
    for start in starts[3:]:
        assert ids[start] // 32 != ids[start - 1] // 32


def test_runs_in_the_cache_are_joined() -> None:
    shape, some = ReadShape(TEXT, TEXT), _list(*[(1, 500)] * 3000)

    def runs(fragments: FragmentList, kept: range, **options: bool) -> list[tuple[int, int, bool]]:
        asked = lambda start, stop: start in kept and stop - 1 in kept  # noqa: E731
        found = list(small_runs(fragments, shape, asked, **options))
        assert [start for start, _, _ in found[1:]] == [stop for _, stop, _ in found[:-1]]
        assert (found[0][0], found[-1][1]) == (0, len(fragments))
        return found

    everything = range(3000)
    assert runs(some, everything, all_wanted=True) == [(0, 2048, True), (2048, 3000, True)]
    grown = runs(some, everything)
    assert grown[:3] == [(0, 8, True), (8, 24, True), (24, 64, True)] and len(grown) < 12
    assert all(stop - start <= max(64, start) for start, stop, _ in grown)
    assert runs(some, range(0)) == runs(some, range(0), all_wanted=True) == list(small_runs(some, shape))
    part = runs(some, range(500, 1500), all_wanted=True)
    assert (512, 1472, True) in part and max(stop - start for start, stop, _ in part if stop != 1472) <= 64
    heavy = runs(_list(*[(1000, 60_000)] * 300), everything, all_wanted=True)
    assert 4 << 20 < max(stop - start for start, stop, _ in heavy) * 60_000 + 60_000 <= (4 << 20) + 120_000
    mixed = runs(_list(*[(1, 500)] * 40, (10, 1 << 20), *[(1, 500)] * 40), everything, all_wanted=True)
    assert mixed == [(0, 40, True), (40, 41, False), (41, 81, True)]


def test_narrow_columns_of_larger_files_are_small() -> None:
    fragments = _list((10_000, 1 << 24), (100_000, 1 << 24))
    assert [each[2] for each in small_runs(fragments, ReadShape(TEXT, TEXT))] == [False]
    assert [each[2] for each in small_runs(fragments, ReadShape(TEXT, NUMBERS))] == [True, False]


def test_many_equal_values_in_a_small_file_are_not_small() -> None:
    fragments = _list(*[(1_000_000, 333)] * 3, (1000, 333))
    for wanted in (TEXT, NUMBERS):
        assert list(small_runs(fragments, ReadShape(TEXT, wanted))) == [(0, 3, False), (3, 4, True)]
    none = TEXT.project_ids([])
    runs = list(small_runs(_list(*[(100_000, 333)] * 60), ReadShape(TEXT, none)))
    assert max(stop - start for start, stop, _ in runs) <= 3  # offsets take memory, too


def test_dictionaries_are_read_one_by_one() -> None:
    schema = Schema.from_arrow(pa.schema({"d": pa.dictionary(pa.int8(), pa.string())}))
    assert [each[2] for each in small_runs(_list((1, 500), (1, 500)), ReadShape(schema, schema))] == [False]


def test_rows_by_fragment(path: Path) -> None:
    tw.dataset(path).delete("a in (0, 11, 12, 25)")
    snapshot = _snapshot(path)
    files = SmallFragments(snapshot, ReadShape(snapshot.schema, NUMBERS), snapshot.fragments)
    rows = files.read(1, 4)
    assert rows.counts.tolist() == [8, 9, 10] and len(rows) == 27
    found = [
        (at, places.tolist(), rows.offsets[places].tolist()) for at, places in rows.by_fragment(np.array([1, 7, 17]))
    ]
    assert found == [(1, [1, 7], [3, 9]), (3, [17], [0])]
    assert list(rows.by_fragment(np.zeros(0, np.int64))) == []
