"""Merge insert as people call it: every combination of clauses against a model in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.unit.operations.merge_insert.merge_model import (
    CASES,
    Case,
    TableRow,
    builder,
    expected,
    sorted_rows,
    source,
    target,
)

import tablewright as tw

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
_numbers = itertools.count()


def new_uri() -> str:
    return f"memory://merge-insert-{next(_numbers)}"


def new_table(stable: bool = False) -> tw.LanceDataset:
    """The model's table in four fragments, one of which has deleted rows, and one of which is all gone."""
    ds = tw.write_dataset(target(), new_uri(), max_rows_per_file=6, enable_stable_row_ids=stable)
    ds.delete("s in ('row 1', 'row 8')")
    return ds


def rows_of(ds: tw.LanceDataset) -> list[TableRow]:
    table = ds.to_table(with_row_id=True)
    return [TableRow({k: v for k, v in row.items() if k != "_rowid"}, row["_rowid"]) for row in table.to_pylist()]


@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_combination_of_clauses(case: Case, stable: bool) -> None:
    ds = new_table(stable)
    before = rows_of(ds)
    outcome = expected(case, before, source(case).to_pylist())
    result = case.configure(builder(ds, _on(case))).execute(source(case))
    assert {name: result[name] for name in COUNTS} == outcome.counts
    assert (result["num_attempts"], result["version"]) == (1, ds.version)
    after = rows_of(ds)
    assert sorted_rows([row.values for row in after]) == sorted_rows(outcome.rows)
    if stable:
        kept = {row.identity: row.values for row in outcome.kept}
        assert {row.identity: row.values for row in after if row.identity in kept} == kept
        new = [row.identity for row in after if row.identity not in kept]
        assert len(new) == len(outcome.inserted) and all(id >= len(before) for id in new)
    ds.validate()
    assert isinstance(ds.get_transactions(1)[0].operation, tw.LanceOperation.Update)  # type: ignore[union-attr]


def _on(case: Case) -> Any:
    from tests.unit.operations.merge_insert.merge_model import KEYS

    return KEYS[case.key][0] if len(KEYS[case.key]) == 1 else KEYS[case.key]


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("case", [c for c in CASES if c.matched.startswith("update") and c.inserts], ids=str)
def test_both_ways_of_writing_mean_the_same(case: Case, stable: bool, mode: str) -> None:
    ds = new_table(stable)
    outcome = expected(case, rows_of(ds), source(case).to_pylist())
    result = case.configure(builder(ds, _on(case))).write_mode(mode).execute(source(case))
    assert {name: result[name] for name in COUNTS} == outcome.counts
    assert sorted_rows([row.values for row in rows_of(ds)]) == sorted_rows(outcome.rows)
    update = ds.get_transactions(1)[0].operation  # type: ignore[union-attr]
    in_place = mode == "rewrite_columns" and outcome.counts["num_updated_rows"] > 0
    assert isinstance(update, tw.LanceOperation.Update)
    assert update.update_mode == ("rewrite_columns" if in_place else "rewrite_rows")
    ds.validate()
