"""Merge insert as people call it: every combination of clauses against a model in plain Python."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from tests.unit.operations.merge_insert.merge_model import (
    CASES,
    GONE,
    KEYS,
    SCHEMA,
    Case,
    TableRow,
    builder,
    clashing,
    expected,
    sorted_rows,
    source,
    target,
)

import tablewright as tw
from tablewright.operations.merge_insert.limits import MergeLimits, SourceLimits
from tablewright.storage import open_store

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
_numbers = itertools.count()


SMALL_PARTS = MergeLimits(source=SourceLimits(part_bytes=1))
"""Every batch of a source stays a part of its own."""


def new_uri() -> str:
    return f"memory://merge-insert-{next(_numbers)}"


@functools.cache
def _written(stable: bool, empty: bool) -> dict[str, bytes]:
    """The files of the model's table: fragments of six rows, two with deleted rows, and one that is all gone."""
    rows = SCHEMA.empty_table() if empty else target()
    ds = tw.write_dataset(rows, new_uri(), max_rows_per_file=6, enable_stable_row_ids=stable)
    ds.delete(GONE)
    return {entry.path: ds._world.store.get(entry.path) for entry in ds._world.store.list("")}


def new_table(stable: bool = False, empty: bool = False) -> tw.LanceDataset:
    """A copy of the model's table, or of one without rows."""
    uri = new_uri()
    store = open_store(uri)
    for path, content in _written(stable, empty).items():
        store.put(path, content)
    return tw.dataset(uri)


def rows_of(ds: tw.LanceDataset) -> list[TableRow]:
    table = ds.to_table(with_row_id=True)
    return [TableRow({k: v for k, v in row.items() if k != "_rowid"}, row["_rowid"]) for row in table.to_pylist()]


def files(ds: tw.LanceDataset) -> set[str]:
    return {entry.path for entry in ds._world.store.list("") if not entry.path.endswith("latest_version_hint.json")}


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_combination_of_clauses(case: Case, stable: bool) -> None:
    ds = new_table(stable)
    before = rows_of(ds)
    outcome = expected(case, before, source(case).to_pylist())
    merge = case.configure(builder(ds, _on(case), SMALL_PARTS))
    if case.matched == "fail":
        there = files(ds)
        with pytest.raises(OSError, match="found matching row with key values: ") as caught:
            merge.execute(clashing(case))
        assert isinstance(caught.value, tw.errors.InvalidRequest)
        assert files(ds) == there and ds.latest_version == ds.version == 2
    result = merge.execute(source(case).to_reader(max_chunksize=4))
    assert {name: result[name] for name in COUNTS} == outcome.counts
    assert (result["num_attempts"], result["version"]) == (1, ds.version)
    after = rows_of(ds)
    assert sorted_rows([row.values for row in after]) == sorted_rows(outcome.rows)
    if stable:
        kept = {row.identity: row.values for row in outcome.kept}
        assert {row.identity: row.values for row in after if row.identity in kept} == kept
        new = [row.identity for row in after if row.identity not in kept]
        assert len(new) == len(outcome.inserted) and all(id >= target().num_rows for id in new)
    ds.validate()
    assert isinstance(ds.get_transactions(1)[0].operation, tw.LanceOperation.Update)  # type: ignore[union-attr]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("sides", ["no source", "no table", "nothing"])
def test_no_rows_on_one_side_or_both(sides: str, key: str) -> None:
    """All clauses, too; a partial source on a composite key."""
    for case in (case for case in CASES if case.key == key and case.partial == (key == "composite")):
        ds = new_table(empty=sides != "no source")
        data = source(case) if sides == "no table" else source(case).slice(0, 0)
        outcome = expected(case, rows_of(ds), data.to_pylist())
        result = case.configure(builder(ds, _on(case), SMALL_PARTS)).execute(data)
        assert {name: result[name] for name in COUNTS} == outcome.counts, str(case)
        assert sorted_rows([row.values for row in rows_of(ds)]) == sorted_rows(outcome.rows), str(case)


def test_there_are_all_combinations() -> None:
    """Five things to do with matches, two with new rows, three with the rest, except nothing at all, in six forms."""
    assert len(set(CASES)) == (5 * 2 * 3 - 1) * len(KEYS) * 2


def _on(case: Case) -> Any:
    return KEYS[case.key][0] if len(KEYS[case.key]) == 1 else KEYS[case.key]


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("case", [c for c in CASES if c.matched.startswith("update") and c.inserts], ids=str)
def test_both_ways_of_writing_mean_the_same(case: Case, stable: bool, mode: str) -> None:
    ds = new_table(stable)
    outcome = expected(case, rows_of(ds), source(case).to_pylist())
    result = case.configure(builder(ds, _on(case), SMALL_PARTS)).write_mode(mode).execute(source(case))
    assert {name: result[name] for name in COUNTS} == outcome.counts
    assert sorted_rows([row.values for row in rows_of(ds)]) == sorted_rows(outcome.rows)
    update = ds.get_transactions(1)[0].operation  # type: ignore[union-attr]
    in_place = mode == "rewrite_columns" and outcome.counts["num_updated_rows"] > 0
    assert isinstance(update, tw.LanceOperation.Update)
    assert update.update_mode == ("rewrite_columns" if in_place else "rewrite_rows")
    ds.validate()
