from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.reading.indexed import indexed_table, snapshot_of

import tablewright as tw
from tablewright.data.read import FragmentReader
from tablewright.format.row_set import RowSet
from tablewright.operations.scan import ScanOptions, plan_scan
from tablewright.reading import run
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


ROWS = 30_000
QUESTIONS: list[dict[str, Any]] = [
    {"filter": "id = 7 AND v >= 0"},
    {"filter": "id = 7 AND v < 0"},
    {"filter": "id > 70 AND id < 80 AND id != 74", "columns": ["v"]},
    {"filter": "id = 7 OR id = 29000", "with_row_id": True},
    {"filter": "id = 7", "limit": 1},
    {"filter": "id BETWEEN 100 AND 400 AND v % 2 = 0", "limit": 20, "offset": 3, "with_row_address": True},
    {"filter": "id < 500", "columns": {"twice": "v * 2", "at": "_rowid"}},
    {"filter": "id < 500 AND _rowaddr >= 0", "columns": ["_rowaddr"]},
]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_few_rows_of_numbers_need_no_codec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    ids = np.random.default_rng(3).permutation(ROWS)
    data = pa.table({"id": ids, "v": ids * 3 - 5})
    ds = tw.write_dataset(data, tmp_path, max_rows_per_file=10_000, enable_stable_row_ids=stable)
    ds.create_scalar_index("id", "BTREE")
    ds.delete("id % 10 = 1")
    scans = [ds.scanner(**asked, use_scalar_index=False) for asked in QUESTIONS]
    expected = [scan.to_table() for scan in scans]
    assert [table.num_rows for table in expected] == [1, 0, 7, 2, 1, 20, 450, 450]
    taken = ds.take([5, 17_000, 3])

    def opened(*given: object) -> None:
        raise AssertionError("the codec was asked")

    monkeypatch.setattr(FragmentReader, "__init__", opened)
    for asked, table in zip(QUESTIONS, expected, strict=True):
        scan = ds.scanner(**asked, use_scalar_index=True)
        if "limit" in asked:  # which rows is not said, but here it is those of a scan
            assert scan.to_table().to_pylist() == table.to_pylist()
        else:
            assert scan.to_table() == table and scan.count_rows() == table.num_rows
    assert ds.take([5, 17_000, 3]) == taken
    with pytest.raises(AssertionError, match="the codec was asked"):
        ds.scanner(filter="id < 3000 AND v % 2 = 0", use_scalar_index=True).to_table()


def test_threads_read_ahead_from_the_first_fragment_on_that_needs_the_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third of six fragments has a null, so the codec reads it; the others are numbers alone."""
    for number in range(6):
        ids = np.arange(number, 60_000, 6)
        values = pa.array(ids * 2, mask=(ids == 2) if number == 2 else None)
        tw.write_dataset(pa.table({"id": ids, "v": values}), tmp_path, mode="append")
    ds = tw.dataset(tmp_path)
    ds.create_scalar_index("id", "BTREE")
    ahead: list[int] = []

    def noted(function: Any, items: Any) -> Any:
        left = list(items)
        ahead.append(len(left))
        return map(function, left)

    monkeypatch.setattr(run, "prefetch", noted)
    question: dict[str, Any] = {"filter": "id < 480 AND id % 100 < 50", "use_scalar_index": True}
    assert ds.scanner(**question, columns=["v"]).to_table()["v"].to_pylist() == [
        None if id == 2 else id * 2 for number in range(6) for id in range(number, 480, 6) if id % 100 < 50
    ]
    assert ahead == [3]
    assert ds.scanner(**question, columns=["id"]).count_rows() == 250
    assert ahead == [3]
    monkeypatch.setattr(run, "FEW_ROWS", 400)
    assert ds.scanner(**question, columns=["id"]).count_rows() == 250
    assert ahead == [3, 6]
