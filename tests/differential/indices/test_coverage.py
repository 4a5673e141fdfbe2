"""What indices cover after each change, by ours and by pylance; nothing is lost on tables with stable row ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.differential.indices.test_compaction import ROWS, assert_right, made, rows, snapshot_of

import tablewright as tw

STABLE_KINDS = {"k": "BTREE", "c": "BITMAP", "tags": "LABEL_LIST", "t": "NGRAM"}
NAMES = [f"{column}_idx" for column in STABLE_KINDS]


def stable_table(path: Path) -> None:
    """Indices of ours, which store row ids on a table with stable row ids."""
    tw.write_dataset(rows(0, ROWS), str(path), max_rows_per_file=400, enable_stable_row_ids=True)
    for column, kind in STABLE_KINDS.items():
        tw.dataset(str(path)).create_scalar_index(column, kind)


def index_files(path: Path) -> set[Path]:
    return {file for file in (path / "_indices").rglob("*") if file.is_file()}


def unindexed(path: Path) -> dict[str, int]:
    """By pylance's own count."""
    dataset = lance.dataset(path)
    return {name: dataset.stats.index_stats(name)["num_unindexed_rows"] for name in NAMES}


def coverage(path: Path) -> dict[str, list[int]]:
    return {index.name: sorted(index.coverage or ()) for index in snapshot_of(path).manifest.indices}


def test_an_update_of_another_column_leaves_nothing_unindexed_and_writes_no_index_byte(tmp_path: Path) -> None:
    stable_table(tmp_path)
    before = index_files(tmp_path)
    tw.dataset(str(tmp_path)).update({"other": "other + 1"}, where="id % 10 = 1")
    assert set(unindexed(tmp_path).values()) == {0}
    assert index_files(tmp_path) == before
    assert_right(tmp_path, used=tuple(STABLE_KINDS))


def test_a_merge_of_another_column_leaves_nothing_unindexed_and_writes_no_index_byte(tmp_path: Path) -> None:
    stable_table(tmp_path)
    before = index_files(tmp_path)
    ids = list(range(1, ROWS, 10))
    source = pa.table({"id": ids, "other": [0] * len(ids)})
    tw.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().execute(source)
    assert set(unindexed(tmp_path).values()) == {0}
    assert index_files(tmp_path) == before
    assert_right(tmp_path, used=tuple(STABLE_KINDS))


def test_rows_that_a_merge_moved_stay_indexed_beside_rows_that_it_inserted(tmp_path: Path) -> None:
    """On the key, which does not change where rows match: only the new rows are not indexed."""
    stable_table(tmp_path)
    tw.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    before = index_files(tmp_path)
    source = pa.concat_tables([rows(100, 60), rows(50_000, 25)])
    merge = tw.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(source)
    assert lance.dataset(tmp_path).stats.index_stats("id_idx")["num_unindexed_rows"] == 25
    assert index_files(tmp_path) == before
    assert_right(tmp_path, used=tuple(STABLE_KINDS))


@pytest.mark.parametrize("library", [lance, tw], ids=["pylance", "ours"])
def test_T6_an_update_of_a_struct_does_not_extend_an_index_on_its_member(tmp_path: Path, library: Any) -> None:
    values = pa.table({"id": range(400), "a": [{"b": n % 5, "x": n} for n in range(400)]})
    tw.write_dataset(values, str(tmp_path), max_rows_per_file=100, enable_stable_row_ids=True)
    tw.dataset(str(tmp_path)).create_scalar_index("a.b", "BITMAP")
    source = pa.table({"id": [1, 2, 150], "a": [{"b": 99, "x": 0}] * 3})
    library.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().execute(source)
    for text in ("a.b = 99", "a.b = 1", "a.b = 2", "a.b = 0"):
        dataset = lance.dataset(tmp_path)
        plain = dataset.to_table(filter=text, use_scalar_index=False).num_rows
        assert dataset.count_rows(text) == plain == tw.dataset(str(tmp_path)).count_rows(text), text
    live = set(snapshot_of(tmp_path).fragments.ids.tolist())
    (covered,) = coverage(tmp_path).values()
    assert live - set(covered), "the rows with new values are not covered"


def test_T7_zones_and_addresses_are_never_extended(tmp_path: Path) -> None:
    made(tmp_path, stable=True)  # by pylance: its BTREE has addresses
    before = coverage(tmp_path)
    tw.dataset(str(tmp_path)).update({"other": "0"}, where="id % 10 = 1")
    after = coverage(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {"c_idx", "tags_idx", "t_idx"}
    for _ in range(2):
        dataset = tw.dataset(str(tmp_path))
        assert dataset.update({"other": "1"}, where="k = 777")["num_rows_updated"] == 1
        assert_right(tmp_path)
    tw.dataset(str(tmp_path)).optimize.compact_files()
    assert tw.dataset(str(tmp_path)).update({"other": "1"}, where="k = 777")["num_rows_updated"] == 1
    assert_right(tmp_path, used=["k", "c"])


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_T3_T5_merge_compact_optimize_and_look_up(tmp_path: Path, stable: bool) -> None:
    """Entries filtered by what looks like a fragment id would be lost; rows of an index and of a scan would double."""
    made(tmp_path, stable=stable)
    for _ in range(2):
        source = rows(90, 40, c="new")
        tw.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().execute(source)
        assert_right(tmp_path)
    tw.dataset(str(tmp_path)).optimize.compact_files()
    assert_right(tmp_path)
    tw.dataset(str(tmp_path)).optimize.optimize_indices()
    assert_right(tmp_path, used=["k", "c"])
    assert [tw.dataset(str(tmp_path)).count_rows(f"k = {key}") for key in (90, 91, 1500, 2399)] == [1, 1, 1, 1]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("library", [lance, tw], ids=["pylance", "ours"])
def test_T16_entries_of_a_rewritten_column_stay_dead(tmp_path: Path, stable: bool, library: Any) -> None:
    made(tmp_path, stable=stable, kinds=["k", "c"])
    source = pa.table({"id": list(range(400)), "c": ["new"] * 400})
    tw.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().execute(source)
    assert_right(tmp_path)
    for _ in range(2):
        library.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=900)
        assert_right(tmp_path)
        library.dataset(str(tmp_path)).optimize.optimize_indices()
        assert_right(tmp_path, used=["k", "c"])


def test_T17_the_bitmap_names_what_was_indexed(tmp_path: Path) -> None:
    made(tmp_path, stable=False, kinds=["k"])
    tw.write_dataset(rows(10_000, 100), str(tmp_path), mode="append")
    tw.dataset(str(tmp_path)).optimize.optimize_indices(num_indices_to_merge=0)
    found = [sorted(index.coverage or ()) for index in snapshot_of(tmp_path).manifest.indices]
    assert found == [[0, 1, 2, 3, 4, 5], [6]]
    assert_right(tmp_path, used=["k"])


def test_T21_segments_do_not_meet_in_one_group(tmp_path: Path) -> None:
    made(tmp_path, stable=False, kinds=["k"])
    tw.write_dataset(rows(10_000, 100), str(tmp_path), mode="append")
    tw.dataset(str(tmp_path)).optimize.optimize_indices(num_indices_to_merge=0)
    tw.write_dataset(rows(20_000, 100), str(tmp_path), mode="append")
    tw.write_dataset(rows(30_000, 100), str(tmp_path), mode="append")
    tw.dataset(str(tmp_path)).optimize.compact_files()
    found = [sorted(index.coverage or ()) for index in snapshot_of(tmp_path).manifest.indices]
    assert sorted(found) == [
        [6],
        [9],
    ]  # fragment 10 holds the rows without index
    assert_right(tmp_path, used=["k"])


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_T18_ids_of_fragments_are_not_given_again(tmp_path: Path, stable: bool) -> None:
    made(tmp_path, stable=stable, kinds=["k", "c"])
    tw.dataset(str(tmp_path)).delete("true")
    tw.write_dataset(rows(5000, 800), str(tmp_path), mode="append", max_rows_per_file=400)
    assert min(snapshot_of(tmp_path).fragments.ids.tolist()) > 5
    assert_right(tmp_path)
    tw.dataset(str(tmp_path)).optimize.compact_files()
    assert_right(tmp_path)


@pytest.mark.parametrize("way", ["remap", "defer"])
def test_a_restore_across_a_compaction(tmp_path: Path, way: str) -> None:
    made(tmp_path, stable=False, kinds=["k", "c", "z"])
    before = tw.dataset(str(tmp_path)).version
    tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=way == "defer")
    compacted = tw.dataset(str(tmp_path)).version
    tw.dataset(str(tmp_path), version=before).restore()
    assert_right(tmp_path, used=["k", "c", "z"])
    tw.dataset(str(tmp_path), version=compacted).restore()
    assert_right(tmp_path, used=["k", "c", "z"])


def test_a_dropped_column_takes_its_index_along(tmp_path: Path) -> None:
    made(tmp_path, stable=False, kinds=["k", "c", "z"])
    tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    tw.dataset(str(tmp_path)).drop_columns(["z"])
    assert set(coverage(tmp_path)) == {"k_idx", "c_idx", "__lance_frag_reuse"}
    assert_right(tmp_path, used=["k", "c"])


def test_a_column_that_changed_in_place_after_a_deferred_compaction(tmp_path: Path) -> None:
    """The bitmap named old fragments when the new one changed; pylance's and our record would translate it back."""
    made(tmp_path, stable=False, kinds=["k", "c", "z"])
    lance.dataset(tmp_path).optimize.compact_files(defer_index_remap=True)
    source = pa.table({"id": list(range(2000)), "c": ["new"] * 2000})
    tw.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().execute(source)
    assert_right(tmp_path, used=["k"])
    tw.dataset(str(tmp_path)).optimize.compact_files()
    assert_right(tmp_path)
