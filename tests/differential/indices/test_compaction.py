"""Indices past compactions, in three ways, by ours and by pylance: used by pylance's plans, and right, at every step.

Each history has an index of every kind. After each step pylance answers filters with and without its indices; the
answers are equal, and its plan says which indices it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.depth import deep

import tablewright as tw
from tablewright.snapshot import open_snapshot
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.world import World

ROWS = 2400
KINDS = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
COMPACTORS = pytest.mark.parametrize("theirs", [False, True], ids=["ours", "pylance"])

COLUMNS = {"k": "BTREE", "c": "BITMAP", "z": "ZONEMAP", "b": "BLOOMFILTER", "tags": "LABEL_LIST", "t": "NGRAM"}
FILTERS = {
    "k": ["k = 777", "k BETWEEN 100 AND 190", "k IN (3, 5, 1500, 99999)", "k IS NULL"],
    "c": ["c = 'c3'", "c IN ('c1', 'new')", "c IS NULL"],
    "z": ["z = 555", "z > 2200", "z IS NULL"],
    "b": ["b = 'b17'", "b = 'none'"],
    "tags": ["array_has(tags, 'x2')", "array_has_any(tags, ['x1', 'new'])"],
    "t": ["contains(t, 'row 12')"],
}


def rows(begin: int, count: int, **fixed: Any) -> pa.Table:
    numbers = np.arange(begin, begin + count)
    values = {
        "k": pa.array([None if n % 97 == 0 else int(n) for n in numbers], pa.int64()),
        "c": pa.array([None if n % 31 == 0 else f"c{n % 9}" for n in numbers]),
        "z": pa.array([None if n % 53 == 0 else int(n) for n in numbers], pa.int64()),
        "b": pa.array([f"b{n % 200}" for n in numbers]),
        "tags": pa.array([[f"x{n % 5}", f"y{n % 7}"] for n in numbers], pa.list_(pa.string())),
        "t": pa.array([f"row {n}" for n in numbers]),
        "id": pa.array(numbers, pa.int64()),
        "other": pa.array(numbers * 2, pa.int64()),
    }
    return pa.table(values | {name: pa.array([value] * count) for name, value in fixed.items()})


def made(path: Path, *, stable: bool, kinds: Sequence[str] = tuple(COLUMNS)) -> None:
    dataset = lance.write_dataset(rows(0, ROWS), path, max_rows_per_file=400, enable_stable_row_ids=stable)
    for column in kinds:
        dataset.create_scalar_index(column, COLUMNS[column])
    lance.dataset(path).delete("id % 10 = 3")


def compact(path: Path, theirs: bool, **options: Any) -> None:
    library: Any = lance if theirs else tw
    library.dataset(str(path)).optimize.compact_files(**options)


def snapshot_of(path: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(path))))


def uses(path: Path, column: str) -> bool:
    """Whether pylance's plan asks the index for some rows."""
    return "ScalarIndexQuery" in lance.dataset(path).scanner(filter=FILTERS[column][0]).explain_plan()


def assert_right(path: Path, used: Sequence[str] = (), unused: Sequence[str] = ()) -> None:
    """Every filter answers as without indices, with rows fetched and counted; ``used`` ones are in pylance's plans."""
    dataset = lance.dataset(path)
    dataset.validate()
    ours = tw.dataset(str(path))
    for column, filters in FILTERS.items():
        if column not in dataset.schema.names:
            continue
        for text in filters:
            plain = dataset.to_table(filter=text, use_scalar_index=False).sort_by("id")
            assert dataset.to_table(filter=text).sort_by("id") == plain, text
            assert dataset.count_rows(text) == plain.num_rows, text
            assert ours.to_table(filter=text).sort_by("id") == plain, text
        if column in used:
            assert uses(path, column), f"{COLUMNS[column]} is not used"
        if column in unused:
            assert not uses(path, column), f"{COLUMNS[column]} is used"


def index_uuids(path: Path) -> dict[str, str]:
    return {index.name: str(index.uuid) for index in snapshot_of(path).manifest.indices}


ROW_KINDS = ("k", "c", "tags", "t")


# ------------------------------------------------------------------------------------------------------- each way alone
def test_addresses_all_kinds_are_remapped_in_the_same_commit(tmp_path: Path) -> None:
    made(tmp_path, stable=False)
    before = index_uuids(tmp_path)
    metrics = tw.dataset(str(tmp_path)).optimize.compact_files()
    after = index_uuids(tmp_path)
    assert before.keys() == after.keys() and not set(before.values()) & set(after.values())
    assert metrics.index_bytes_written > 0
    for index in snapshot_of(tmp_path).manifest.indices:
        assert sorted(index.coverage or ()) == [6]
    assert_right(tmp_path, used=tuple(COLUMNS))


def test_stable_row_ids_files_with_row_ids_are_not_touched(tmp_path: Path) -> None:
    made(tmp_path, stable=True)
    before = index_uuids(tmp_path)
    metrics = tw.dataset(str(tmp_path)).optimize.compact_files()
    after = index_uuids(tmp_path)
    kept = {name for name in before if before[name] == after[name]}
    assert kept == {"c_idx", "tags_idx", "t_idx"}  # pylance's BTREE has addresses (version 1), zones too
    assert metrics.index_bytes_written == sum(
        file.size_bytes
        for index in snapshot_of(tmp_path).manifest.indices
        if index.name not in kept
        for file in index.files
    )
    assert_right(tmp_path, used=tuple(COLUMNS))


def test_stable_row_ids_with_our_btree_no_index_byte_is_written(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, ROWS), tmp_path, max_rows_per_file=400, enable_stable_row_ids=True)
    tw.dataset(str(tmp_path)).create_scalar_index("k", "BTREE")
    before = index_uuids(tmp_path)
    assert tw.dataset(str(tmp_path)).optimize.compact_files().index_bytes_written == 0
    assert index_uuids(tmp_path) == before
    assert_right(tmp_path, used=["k"])


def test_deferred_files_stay_and_the_move_is_recorded(tmp_path: Path) -> None:
    made(tmp_path, stable=False)
    before = index_uuids(tmp_path)
    metrics = tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    after = index_uuids(tmp_path)
    assert metrics.index_bytes_written == 0
    assert after.keys() - before.keys() == {"__lance_frag_reuse"} and before.items() <= after.items()
    assert_right(tmp_path, used=tuple(COLUMNS))


def test_deferred_is_refused_on_stable_row_ids_with_pylances_words(tmp_path: Path) -> None:
    made(tmp_path, stable=True, kinds=["c"])
    words = "Cannot compact with defer_index_remap: the dataset uses stable row IDs"
    for library in (lance, tw):
        with pytest.raises(Exception, match=words):
            library.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)


def test_a_deferred_compaction_of_rows_without_index_records_nothing(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 800), tmp_path, max_rows_per_file=400)
    lance.dataset(tmp_path).create_scalar_index("k", "BTREE")
    for begin in (800, 1200):
        lance.write_dataset(rows(begin, 400), tmp_path, mode="append")
    excluded = {"excluded_fragment_ids": [0, 1]}
    tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True, **excluded)
    assert set(index_uuids(tmp_path)) == {"k_idx"}
    assert_right(tmp_path, used=["k"])


# ------------------------------------------------------------------------------------------------------------ histories
def append(path: Path, library: Any) -> None:
    library.write_dataset(rows(10_000, 300, c="new"), str(path), mode="append")


def delete(path: Path, library: Any) -> None:
    library.dataset(str(path)).delete("id % 7 = 2")


def update(path: Path, library: Any) -> None:
    library.dataset(str(path)).update({"c": "'new'", "k": "k + 1"}, where="id % 11 = 5")


def update_other(path: Path, library: Any) -> None:
    library.dataset(str(path)).update({"other": "other + 1"}, where="id % 11 = 6")


def merge(path: Path, library: Any) -> None:
    source = pa.concat_tables([rows(90, 40, c="new"), rows(20_000, 40)])
    dataset = library.dataset(str(path))
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


def optimize(path: Path, library: Any) -> None:
    library.dataset(str(path)).optimize.optimize_indices()


CHANGES = [update, merge, append, delete, optimize, update_other][: deep(2, 6)]
WAYS = pytest.mark.parametrize("way", ["remap", "defer", "stable"])


def _options(way: str) -> dict[str, Any]:
    return {"defer_index_remap": True} if way == "defer" else {}


@WAYS
@COMPACTORS
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_T7_T14_answers_before_and_after_each_change(
    tmp_path: Path, way: str, theirs: bool, change: Callable[[Path, Any], None]
) -> None:
    """compact, change by the one, compact, change by the other, compact, optimize: right after each step."""
    made(tmp_path, stable=way == "stable")
    one, other = (lance, tw) if theirs else (tw, lance)
    compact(tmp_path, theirs, **_options(way))
    used = ROW_KINDS if theirs and way != "defer" else tuple(COLUMNS)  # pylance leaves zones behind
    assert_right(tmp_path, used=used)
    change(tmp_path, other)
    assert_right(tmp_path)
    compact(tmp_path, theirs, target_rows_per_fragment=800, **_options(way))
    assert_right(tmp_path)
    change(tmp_path, one)
    compact(tmp_path, not theirs, **_options(way))
    assert_right(tmp_path)
    optimize(tmp_path, one)
    assert_right(tmp_path, used=["k", "c"])
