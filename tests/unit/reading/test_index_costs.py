from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.reading.indexed import snapshot_of

import tablewright as tw
from tablewright.expressions.conditions import normal_form
from tablewright.expressions.filters import compile_filter
from tablewright.expressions.sql_conditions import conditions_of
from tablewright.reading import index_costs
from tablewright.reading.index_costs import Decision, IndexCosts, ScanCost, decide_use, rows_worth_taking
from tablewright.reading.index_filter import Asked, plan_index_query


@pytest.fixture(scope="module")
def table() -> Any:
    numbers = range(200)
    columns = {"id": numbers, "few": [n % 5 for n in numbers], "some": [n % 9 for n in numbers], "zone": numbers}
    ds = tw.write_dataset(
        pa.table({name: pa.array(values) for name, values in columns.items()}), "memory://index-costs"
    )
    for column, kind in {"id": "BTREE", "few": "BITMAP", "some": "BITMAP", "zone": "ZONEMAP"}.items():
        ds.create_scalar_index(column, kind)
    return ds


def decided(table: Any, sql: str, *, costs: IndexCosts | None = None, forced: bool = False, **scan: Any) -> Decision:
    snapshot = snapshot_of(table)
    tree = normal_form(conditions_of(compile_filter(sql, snapshot.schema), snapshot.schema))
    asked = plan_index_query(tree, snapshot, snapshot.schema)
    assert not isinstance(asked, str)
    scan = {"rows": 10**8, "nbytes": 8 * 10**8, **scan}
    return decide_use(snapshot, asked, ScanCost(**scan), forced=forced, costs=costs or IndexCosts())


def test_few_rows_are_looked_up_and_small_tables_scanned(table: Any) -> None:
    assert decided(table, "id = 5").tree is not None
    small = decided(table, "id = 5", rows=1000, nbytes=8000)
    assert small.tree is None and "a scan of 1000 rows costs less" in small.why
    assert decided(table, "id = 5", rows=1000, nbytes=8000, forced=True).tree is not None


def test_many_rows_are_scanned(table: Any) -> None:
    costs = IndexCosts(lookup_ns=1, take_row_ns=10_000)
    many = decided(table, "id > 5", rows=200, nbytes=1600, costs=costs)
    assert many.tree is None and "taken one by one" in many.why and many.hits > 100


def test_a_count_takes_no_rows(table: Any) -> None:
    costs = IndexCosts(lookup_ns=1, take_row_ns=10_000, hit_ns=1)
    assert decided(table, "id > 5", rows=200, nbytes=1600, costs=costs, counts_only=True).tree is not None
    assert decided(table, "zone > 5", rows=200, nbytes=1600, costs=costs, counts_only=True).tree is None


def test_a_scan_that_ends_early_is_cheap(table: Any) -> None:
    costs = IndexCosts(lookup_ns=1, take_row_ns=1, hit_ns=1)
    assert decided(table, "id > 5", rows=200, nbytes=1600, costs=costs).tree is not None
    assert decided(table, "id > 5", rows=200, nbytes=1600, costs=costs, rows_wanted=1).tree is None


def test_of_an_and_only_small_parts_are_asked(table: Any) -> None:
    costs = IndexCosts(lookup_ns=100, hit_ns=100, take_row_ns=1000)
    sql = "id > 1 and id < 190 and few = 1 and some = 3"
    decision = decided(table, sql, costs=costs, rows=200)
    assert str(decision.tree) == "AND([some = 3]@some_idx(Bitmap),[few = 1]@few_idx(Bitmap))"
    assert decision.tree is not None and not decision.tree.exact
    costs = IndexCosts(lookup_ns=100, hit_ns=10, take_row_ns=1000)
    counted = decided(table, sql, costs=costs, rows=200, counts_only=True)
    assert counted.tree is not None and counted.tree.exact == counted.tree.known


def test_rows_are_taken_as_long_as_a_scan_costs_more(table: Any) -> None:
    asked = decided(table, "id = 5").tree
    assert isinstance(asked, Asked)
    costs = IndexCosts(lookup_ns=1000, hit_ns=10, take_row_ns=90, scan_row_ns=1, scan_byte_ns=0)
    assert [rows_worth_taking(asked, rows, 0, costs) for rows in (500, 1099, 1100, 2000)] == [0, 0, 1, 10]


def test_one_condition_is_estimated_once(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    estimated = []
    own = index_costs.offered

    def offered(kind: Any) -> Any:
        functions = own(kind)
        return replace(functions, estimate=lambda *given: estimated.append(given) or functions.estimate(*given))

    monkeypatch.setattr(index_costs, "offered", offered)
    assert decided(table, "id = 5", counts_only=True).tree is not None
    assert len(estimated) == 1
