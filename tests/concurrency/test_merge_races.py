"""Two writers and one new key: whoever comes second finds the row of the first, and there is one row in the end.

Both start from the same version. *Theirs* commits first, then *ours* comes with what it found in the old version.
With and without a primary key, with and without an index; single, composite and text keys; whole and partial rows;
stable ids and addresses; we, pylance, or a plain append as the other writer. Where pylance comes second, the table
declares a primary key: without one pylance itself makes two rows.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw

KEYS = {"single": ["id"], "composite": ["id", "part"], "text": ["part"]}
_numbers = itertools.count()


def _rows(ids: list[int], mark: str) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": [f"part {i}" for i in ids],
            "x": [float(len(mark) + i) for i in ids],
            "by": [mark] * len(ids),
        }
    )


def _schema(key: list[str], declared: bool) -> pa.Schema:
    marked = {"lance-schema:unenforced-primary-key": "true"}
    fields = [
        field.with_metadata(marked).with_nullable(False) if declared and field.name in key else field
        for field in _rows([0], "").schema
    ]
    return pa.schema(fields)


def _table(uri: Any, key: list[str], *, declared: bool = False, stable: bool = False) -> str:
    rows = _rows(list(range(12)), "old").cast(_schema(key, declared))
    tw.write_dataset(rows, uri, max_rows_per_file=4, enable_stable_row_ids=stable)
    return str(uri)


def _upsert(dataset: Any, key: list[str], rows: pa.Table) -> Any:
    return builder(dataset, key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _lance_upsert(dataset: Any, key: list[str], rows: pa.Table) -> Any:
    return dataset.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)


OTHERS: dict[str, Callable[[str, list[str], pa.Table], Any]] = {
    "our upsert": lambda uri, key, rows: _upsert(tw.dataset(uri), key, rows),
    "our append": lambda uri, key, rows: tw.dataset(uri).insert(rows),
    "pylance's upsert": lambda uri, key, rows: _lance_upsert(lance.dataset(uri), key, rows),
    "pylance's append": lambda uri, key, rows: lance.write_dataset(rows, uri, mode="append"),
}


def _leftovers(uri: str) -> set[str]:
    root = Path(uri)
    paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def _by_id(uri: str) -> dict[int, str]:
    table = tw.dataset(uri).to_table()
    assert lance.dataset(uri).to_table().equals(table)
    assert max(Counter(table["id"].to_pylist()).values()) == 1
    return dict(zip(table["id"].to_pylist(), table["by"].to_pylist(), strict=True))


@pytest.mark.parametrize("partial", [False, True], ids=["full", "partial"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("declared", [False, True], ids=["no primary key", "primary key"])
@pytest.mark.parametrize("other", OTHERS)
def test_a_new_key_of_both_is_one_row(
    other: str, declared: bool, stable: bool, key: str, partial: bool, tmp_path: Path
) -> None:
    uri = _table(tmp_path / "t.lance", KEYS[key], declared=declared, stable=stable)
    if key == "single":
        lance.dataset(uri).create_scalar_index("id", "BTREE")
    stale = tw.dataset(uri)
    OTHERS[other](uri, KEYS[key], _rows([100, 101], "theirs").cast(_schema(KEYS[key], declared)))
    mine = _rows([3, 101, 102], "mine")
    result = _upsert(stale, KEYS[key], mine.select([*KEYS[key], "by"]) if partial else mine)
    if key == "text" and partial:  # these rows have no id
        assert (result["num_inserted_rows"], result["num_updated_rows"]) == (1, 2)
        return
    assert (result["num_inserted_rows"], result["num_updated_rows"], result["num_attempts"]) == (1, 2, 2)
    assert _by_id(uri) == dict.fromkeys(range(12), "old") | {3: "mine", 100: "theirs", 101: "mine", 102: "mine"}
    assert not _leftovers(uri)


@pytest.mark.parametrize("other", OTHERS)
def test_keys_of_one_writer_only_do_not_disturb(other: str, tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", ["id"])
    stale = tw.dataset(uri)
    theirs = [0, 100] if "upsert" in other else [100]
    OTHERS[other](uri, ["id"], _rows(theirs, "theirs"))
    result = _upsert(stale, ["id"], _rows([1, 5, 200], "mine"))
    assert (result["num_inserted_rows"], result["num_updated_rows"], result["num_attempts"]) == (1, 2, 1)
    expected = dict.fromkeys(range(12), "old") | dict.fromkeys(theirs, "theirs") | dict.fromkeys([1, 5, 200], "mine")
    assert _by_id(uri) == expected


def test_a_key_that_comes_by_an_update_in_place(tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", ["id"])
    for mode in ("rewrite_columns", "rewrite_rows"):
        stale = tw.dataset(uri)
        new = 500 if mode == "rewrite_columns" else 600
        tw.dataset(uri).update({"id": str(new)}, where=f"id = {new // 100}", write_mode=mode)
        result = _upsert(stale, ["id"], _rows([new], "mine"))
        assert (result["num_inserted_rows"], result["num_updated_rows"]) == (0, 1)
        assert _by_id(uri)[new] == "mine"


def test_a_condition_looks_again_at_rows_that_changed(tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", ["id"])
    for mode in ("rewrite_columns", "rewrite_rows"):
        stale = tw.dataset(uri)
        tw.dataset(uri).update({"x": "-1000"}, where="id = 7", write_mode=mode)
        merge = builder(stale, "id").when_matched_update_all("source.x > target.x")
        assert merge.execute(pa.table({"id": [7], "x": [-500.0]}))["num_updated_rows"] == 1


def test_find_or_create_and_fail(tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", ["id"])
    stale, other = tw.dataset(uri), tw.dataset(uri)
    _upsert(tw.dataset(uri), ["id"], _rows([100], "theirs"))
    result = builder(stale, "id").when_not_matched_insert_all().execute(_rows([100, 101], "mine"))
    assert result["num_inserted_rows"] == 1 and _by_id(uri)[100] == "theirs"
    with pytest.raises(OSError, match="found matching row with key values: id = 100"):
        builder(other, "id").when_matched_fail().when_not_matched_insert_all().execute(_rows([100], "mine"))
    assert not _leftovers(uri)


def test_null_keys_never_meet(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"id": pa.array([1], pa.int64()), "by": ["old"]}), uri)
    stale = tw.dataset(uri)
    nulls = pa.table({"id": pa.array([None, None], pa.int64()), "by": ["p", "q"]})
    tw.dataset(uri).insert(nulls)
    assert _upsert(stale, ["id"], nulls)["num_attempts"] == 1
    assert tw.dataset(uri).count_rows() == 5


def test_no_retries_is_a_conflict(tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", ["id"])
    stale = tw.dataset(uri)
    _upsert(tw.dataset(uri), ["id"], _rows([100], "theirs"))
    merge = builder(stale, "id").when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
    with pytest.raises(OSError, match="Retryable commit conflict"):
        merge.execute(_rows([100], "mine"))
    assert _by_id(uri)[100] == "theirs" and not _leftovers(uri)


@pytest.mark.parametrize("key", ["single", "composite"])
def test_pylance_second_on_a_primary_key(key: str, tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", KEYS[key], declared=True)
    stale = lance.dataset(uri)
    _upsert(tw.dataset(uri), KEYS[key], _rows([100, 101], "mine"))
    _lance_upsert(stale, KEYS[key], _rows([101, 102], "theirs").cast(_schema(KEYS[key], True)))
    assert _by_id(uri) == dict.fromkeys(range(12), "old") | {100: "mine", 101: "theirs", 102: "theirs"}


# ------------------------------------------------------------------------------------------------------- at random
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("other", ["ours", "pylance"])
def test_races_at_random(seed: int, other: str, tmp_path: Path) -> None:
    """Five races in a row of two threads that begin at once: each new key is one row, with a value that fits it."""
    chance = random.Random(seed)
    key = KEYS[chance.choice(list(KEYS))]
    declared = other == "pylance" or chance.random() < 0.5
    uri = _table(tmp_path / "t.lance", key, declared=declared, stable=chance.random() < 0.5)
    expected: dict[int, set[str]] = {i: {"old"} for i in range(12)}
    for turn in range(5):
        new = [1000 * (turn + 1) + i for i in range(4)]
        sides = [sorted(set(chance.sample(range(12), 3) + chance.sample(new, 3))) for _ in range(2)]
        marks = [f"{turn} ours", f"{turn} other"]
        rows = [_rows(ids, mark).cast(_schema(key, declared)) for ids, mark in zip(sides, marks, strict=True)]
        handles = [tw.dataset(uri), tw.dataset(uri) if other == "ours" else lance.dataset(uri)]
        merges = [_upsert, _upsert if other == "ours" else _lance_upsert]
        _at_once([lambda m=m, h=h, r=r: m(h, key, r) for m, h, r in zip(merges, handles, rows, strict=True)])
        for ids, mark in zip(sides, marks, strict=True):
            for i in ids:
                expected[i] = {mark} if i not in set(sides[0]) & set(sides[1]) else set(marks)
    found = _by_id(uri)
    assert found.keys() == expected.keys()
    assert all(found[i] in expected[i] for i in found)
    lance.dataset(uri).validate()


def _at_once(calls: list[Callable[[], Any]]) -> None:
    barrier, errors = threading.Barrier(len(calls)), []

    def run(call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
