"""Snapshot isolation, what it allows, and what `isolation="serializable"` adds."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.depth import deep

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.testing import interleave, seeded_world

from .stage import ADDRESS, new_store, on_stage, set_up, within

Rows = dict[int, int]


def _table(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64()), "n": pa.array(rows.values(), pa.int64())})


def _rows(ds: Any) -> Rows:
    table = ds.to_table()
    found = dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


def _find_or_create(ds: Any, rows: Rows, isolation: str) -> None:
    ds.merge_insert("id").when_not_matched_insert_all().isolation(isolation).execute(_table(rows))


def test_write_skew_is_allowed_by_snapshot_isolation() -> None:
    """The merge finds 1 and inserts 2; the delete looked before that. Neither order alone leaves just 2."""
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-skew")
    late = tw.dataset(ds.uri).prepare_delete("n = 0")
    planned, _ = late.execute_uncommitted()
    _find_or_create(ds, {1: 0, 2: 0}, "snapshot")
    tw.CommitBuilder(tw.dataset(ds.uri, version=1)).execute(planned)
    assert _rows(tw.dataset(ds.uri)) == {2: 0}


@pytest.mark.parametrize("library", [tw, lance], ids=["tablewright", "lance"])
def test_a_handle_does_not_see_a_transaction_that_was_committed_beside_it(tmp_path: Path, library: Any) -> None:
    """`commit` and the like return another handle. An update through the old one reads the old version."""
    uri = str(tmp_path / "t")
    ds = library.write_dataset(_table({1: 0}), uri)
    fragments = library.fragment.write_fragments(_table({2: 0}), uri, mode="append")
    after = library.LanceDataset.commit(ds, library.LanceOperation.Append(fragments), read_version=1)
    assert (ds.version, after.version) == (1, 2)
    assert ds.update({"n": "n + 1"}, where="id = 2")["num_rows_updated"] == 0
    replace = ds.checkout_version(1).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    replace.when_not_matched_by_source_delete("id > 1").execute(_table({1: 5, 3: 5}))
    for reader in (tw, lance):
        assert _rows(reader.dataset(uri)) == {1: 5, 2: 0, 3: 5}


@pytest.mark.parametrize("merge_is_ours", [False, True])
def test_write_skew_with_a_writer_of_pylance_is_not_excluded(tmp_path: Path, merge_is_ours: bool) -> None:
    """Ours is serializable and committed first; pylance's looked before that, and commits whatever it finds."""
    uri = str(tmp_path / "t")
    tw.write_dataset(_table({1: 0}), uri)
    mine, theirs = tw.dataset(uri), lance.dataset(uri)
    if merge_is_ours:
        _find_or_create(mine, {1: 0, 2: 0}, "serializable")
        theirs.delete("n = 0")
    else:
        mine.delete("n = 0", isolation="serializable")
        theirs.merge_insert("id").when_not_matched_insert_all().execute(_table({1: 0, 2: 0}))
    for reader in (tw, lance):
        assert _rows(reader.dataset(uri)) == {2: 0}


def test_a_merge_of_pylance_after_ours_may_double_a_key(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    tw.write_dataset(_table({1: 0}), uri)
    stale = lance.dataset(uri)
    _find_or_create(tw.dataset(uri), {2: 0}, "serializable")
    stale.merge_insert("id").when_not_matched_insert_all().execute(_table({2: 0}))
    assert sorted(tw.dataset(uri).to_table()["id"].to_pylist()) == [1, 2, 2]


def test_a_serializable_delete_sees_what_came_meanwhile() -> None:
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-delete")
    late = tw.dataset(ds.uri)
    _find_or_create(ds, {1: 0, 2: 0}, "snapshot")
    assert late.delete("n = 0", isolation="serializable") == {"num_deleted_rows": 2}
    assert _rows(late) == {}


def test_an_uncommitted_serializable_delete_is_a_conflict_also_after_a_journey() -> None:
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-journey")
    made, _ = tw.dataset(ds.uri).prepare_delete("n = 0", isolation="serializable").execute_uncommitted()
    ds.update_config({"k": "v"})
    ds.insert(_table({2: 0}))
    for transaction in (made, pickle.loads(pickle.dumps(made))):
        with pytest.raises(CommitConflict, match="since version 1, and isolation is serializable"):
            tw.CommitBuilder(tw.dataset(ds.uri, version=1)).execute(transaction)


def test_settings_of_others_are_no_conflict() -> None:
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-config")
    made, _ = tw.dataset(ds.uri).prepare_delete("n = 0", isolation="serializable").execute_uncommitted()
    ds.update_config({"k": "v"})
    assert tw.CommitBuilder(tw.dataset(ds.uri, version=1)).execute(made).count_rows() == 0


def test_a_serializable_merge_that_adds_columns() -> None:
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-columns")
    late = tw.dataset(ds.uri)
    ds.insert(_table({5: 5}))
    rows = pa.table({"id": [1, 2], "n": [7, 7], "more": ["a", "b"]})
    merge = late.merge_insert("id", schema_evolution=True).when_matched_update_all().when_not_matched_insert_all()
    merge.isolation("serializable").execute(rows)
    assert _rows(tw.dataset(ds.uri).checkout_version(late.version)) == {1: 7, 5: 5, 2: 7}


@pytest.mark.parametrize("level", ["repeatable", "", None, 1, "SERIALIZABLE"])
def test_other_levels_are_refused(level: Any) -> None:
    ds = tw.write_dataset(_table({1: 0}), "memory://isolation-names", mode="overwrite")
    for call in (
        lambda: ds.delete("n = 0", isolation=level),
        lambda: ds.update({"n": "1"}, isolation=level),
        lambda: ds.merge_insert("id").isolation(level),
    ):
        with pytest.raises(InvalidRequest, match="isolation must be one of snapshot, serializable"):
            call()


def _delete_zeros(ds: Any) -> None:
    ds.delete("n = 0", isolation="serializable")


def _mark(ds: Any) -> None:
    ds.update({"n": "1"}, where="n = 0", isolation="serializable")


OPERATIONS: dict[str, tuple[Callable[[Any], None], Callable[[Rows], Rows]]] = {
    "delete n=0": (_delete_zeros, lambda rows: {id: n for id, n in rows.items() if n}),
    "update n=0": (_mark, lambda rows: {id: n or 1 for id, n in rows.items()}),
    "find or create 1, 2": (
        lambda ds: _find_or_create(ds, {1: 0, 2: 0}, "serializable"),
        lambda rows: {1: 0, 2: 0} | rows,
    ),
    "find or create 1, 3": (
        lambda ds: _find_or_create(ds, {1: 5, 3: 0}, "serializable"),
        lambda rows: {1: 5, 3: 0} | rows,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("names", list(itertools.combinations(OPERATIONS, 3)), ids=", ".join)
def test_serializable_operations_switched_at_every_call(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    set_up(monkeypatch)
    for seed in range(deep(10, 100)):
        store = new_store()
        on_stage(store, lambda: tw.write_dataset(_table({1: 0, 9: 4}), ADDRESS), 500)

        def run(number: int, name: str, own: Any, seed: int = seed) -> None:
            with within(seeded_world(own, 1000 * seed + number)):
                OPERATIONS[name][0](tw.dataset(ADDRESS))

        tasks = [lambda own, n=n, name=name: run(n, name, own) for n, name in enumerate(names)]
        outcomes = interleave(store, tasks, seed)
        assert [outcome.error for outcome in outcomes] == [None] * len(names)
        found = on_stage(store, lambda: _rows(tw.dataset(ADDRESS)))
        expected = []
        for order in itertools.permutations(names):
            rows: Rows = {1: 0, 9: 4}
            for name in order:
                rows = OPERATIONS[name][1](rows)
            expected.append(rows)
        assert found in expected, f"seed {seed}: {found}"
