from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.reading.indexed import indexed_table, snapshot_of

from tablewright.format.row_set import RowSet
from tablewright.operations.scan import ScanOptions, plan_scan
from tablewright.reading.chosen import ChosenRows
from tablewright.reading.match import find_matches, plan_match
from tablewright.reading.run import count_matches, run_reads


@pytest.fixture(scope="module")
def table() -> Any:
    return indexed_table(changed=False)


def test_exact_rows_are_returned_and_others_judged(table: Any) -> None:
    snapshot = snapshot_of(table)
    chosen = {1: ChosenRows(RowSet.of([0, 3, 4]), True), 3: ChosenRows(RowSet.of([0, 1, 2, 49]), False)}
    plan = plan_scan(snapshot, ScanOptions(columns=["v", "word"], filter="v % 2 = 0", with_row_address=True))
    whole = plan.whole
    some = replace(whole, fragments=whole.fragments.at([1, 3]), first_rows=whole.first_rows[1:4:2])
    read = run_reads(snapshot, some.reads, some.fragments, some.first_rows, chosen=chosen)
    assert [value for batch in read for value in batch["v"].to_pylist()] == [50, 53, 54, 150, 152]
    counting = some.reads.counting()
    assert count_matches(snapshot, counting, some.fragments, some.first_rows, chosen) == 5


def test_unchosen_fragments_are_scanned_in_between(table: Any) -> None:
    snapshot = snapshot_of(table)
    plan = plan_scan(snapshot, ScanOptions(columns=["v"], filter="v % 25 = 0"))
    whole = plan.whole
    chosen = {2: ChosenRows(RowSet.of([25, 26]), False)}
    read = run_reads(snapshot, whole.reads, whole.fragments, whole.first_rows, chosen=chosen)
    values = [value for batch in read for value in batch["v"].to_pylist()]
    assert values == [0, 25, 50, 75, 125, 150, 175, 200, 225, 250, 275]


def test_matches_of_chosen_rows(table: Any) -> None:
    snapshot = snapshot_of(table)
    task = replace(
        plan_match(snapshot, "v % 25 = 0"),
        chosen={0: ChosenRows(RowSet.of([7]), True), 1: ChosenRows(RowSet.of([1, 25]), False)},
    )
    found = find_matches(task, snapshot)
    assert found.rows[0] == RowSet.of([7]) and found.rows[1] == RowSet.of([25]) and found.rows[2] == RowSet.of([0, 25])
