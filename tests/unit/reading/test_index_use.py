from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.unit.reading.indexed import indexed_table, snapshot_of

from tablewright.expressions.filters import compile_filter
from tablewright.operations.scan import ScanOptions, plan_scan
from tablewright.reading.index_use import plan_index_use
from tablewright.reading.scan_task import narrowed


@pytest.fixture(scope="module")
def table() -> Any:
    return indexed_table()


def test_explain_names_the_query_the_coverage_and_the_reason(table: Any) -> None:
    text = table.scanner(filter="id = 5 and v > 0", use_scalar_index=True).explain_plan()
    (line,) = [line for line in text.splitlines() if "ScalarIndexQuery" in line]
    assert line.strip().startswith("ScalarIndexQuery: query=[id = 5]@id_idx(BTree), covered_fragments=")
    assert "scanned_fragments=" in line and "rechecked_fragments=" in line and "reason: " in line


def test_explain_says_why_no_index_is_asked(table: Any) -> None:
    def text(sql: str) -> str:
        return str(table.scanner(filter=sql).explain_plan())

    assert "Index: not used, as a scan of" in text("id = 5")
    assert "Index: not used, as no index is on a column of the filter" in text("v = 5")
    assert "Index" not in table.scanner(filter="id = 5", use_scalar_index=False).explain_plan()
    assert "Index" not in table.scanner().explain_plan()


def test_explain_asks_no_index(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablewright.reading import index_use

    def refuse(*_: Any) -> None:
        raise AssertionError("an index was asked")

    monkeypatch.setattr(index_use, "ask_few", refuse)
    monkeypatch.setattr(index_use, "ask_indices", refuse)
    for filter in ("id = 5", "id = 5 or id is null"):
        scanner = table.scanner(filter=filter, use_scalar_index=True)
        assert "ScalarIndexQuery" in scanner.explain_plan()
        with pytest.raises(AssertionError, match="an index was asked"):
            list(scanner.to_batches())


def test_few_rows_are_found_without_an_estimate(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablewright.reading import index_use

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the rows were estimated")

    monkeypatch.setattr(index_use, "decide_use", refuse)
    for filter in ("id = 5", "id in (5, 60, 250)", "id > 3 and id < 6"):
        expected = list(table.scanner(filter=filter, use_scalar_index=False).to_batches())
        plan = plan_scan(snapshot_of(table), ScanOptions(filter=filter, use_scalar_index=True))
        left = narrowed(plan.whole)
        found = list(table.scanner(filter=filter, use_scalar_index=True).to_batches())
        assert left.chosen and found == expected
    plan = plan_scan(snapshot_of(table), ScanOptions(filter="id >= 0", use_scalar_index=True))
    with pytest.raises(AssertionError, match="estimated"):
        narrowed(plan.whole)


def test_without_a_filter_or_if_not_wanted_there_is_nothing_to_ask(table: Any) -> None:
    snapshot = snapshot_of(table)
    predicate = compile_filter("id = 5", snapshot.schema)
    assert plan_index_use(snapshot, None, snapshot.schema, [0]) is None
    assert plan_index_use(snapshot, predicate, snapshot.schema, [0], False) is None
    outside = plan_index_use(snapshot, predicate, snapshot.schema, [4, 5])
    assert outside is not None and not outside.known


def test_tasks_carry_their_rows_and_no_index(table: Any) -> None:
    plan = plan_scan(snapshot_of(table), ScanOptions(filter="id in (5, 60, 250)", use_scalar_index=True))
    left = narrowed(plan.whole)
    assert left.index is None and set(left.chosen) == {0, 1}
    parts = list(left.split(1))
    assert all(part.index is None and set(part.chosen) <= set(part.fragment_ids) for part in parts)
    again = pickle.loads(pickle.dumps(parts))
    assert [part.chosen for part in again] == [part.chosen for part in parts]
    assert left.estimated_bytes < plan.whole.estimated_bytes
