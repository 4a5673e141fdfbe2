from __future__ import annotations

from typing import Any

import pytest
from pyroaring import FrozenBitMap
from tests.unit.reading.indexed import indexed_table

from tablewright.format.row_set import RowSet
from tablewright.reading.index_rows import Answer

PREDICATES = [
    "id = 5", "id in (1, 2, 3, 250, 7)", "id between 10 and 60", "id < 20 or id > 280", "not (id < 290)", "id != 7",
    "id is null", "id is not null", "few = 3", "few != 3", "few not in (1, 2)", "few in (1, null)", "few is null",
    "zone = 5", "zone > 15", "zone is null", "zone is not null", "zone in (1, 103, 106)", "not (zone < 106)",
    "contains(word, 'number 1')", "word like '%number 19'", "array_has(tags, 'c')", "not array_has(tags, 'c')",
    "array_has_any(tags, ['b', 'c'])", "array_has_all(tags, ['a', 'b'])", "hash = 'h3'", "hash in ('h1', 'h2')",
    "hash is null", "st.x = 3", "st.x is null", "not (st.x > 3)", "id > 50 and few = 1",
    "id > 50 and few = 1 and v > 90",
    "id = 7 or few = 1 or zone = 2", "(few = 1 or zone = 3) and not (st.x = 4)", "id > 50 and v % 2 = 0", "few = 9",
    "id > 5 and id < 3", "v = 7 and few = 2", "_rowid = 7 and few = 2",
]  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def table(request: Any) -> Any:
    return indexed_table(stable=request.param)


@pytest.mark.parametrize("sql", PREDICATES)
def test_rows_by_index_are_those_of_a_scan_in_the_same_order(table: Any, sql: str) -> None:
    def found(use: bool, **options: Any) -> Any:
        return table.scanner(filter=sql, use_scalar_index=use, with_row_id=True, **options).to_table().to_pylist()

    expected = found(False)
    assert found(True) == expected
    assert found(True, columns=["v"]) == found(False, columns=["v"])
    assert found(True, limit=3, offset=1) == expected[1:4]
    assert found(True, late_materialization=False) == expected
    assert found(True, order_by=["v"]) == sorted(expected, key=lambda row: row["v"])
    assert table.scanner(filter=sql, use_scalar_index=True).count_rows() == len(expected)


def test_an_exact_count_reads_no_data(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablewright.data import read

    expected = table.scanner(filter="few = 3", use_scalar_index=False, fragments=[1]).count_rows()

    def refuse(*_: Any) -> None:
        raise AssertionError("a fragment was read")

    monkeypatch.setattr(read.FragmentReader, "read", refuse)
    monkeypatch.setattr(read.FragmentReader, "take", refuse)
    assert table.scanner(filter="few = 3", use_scalar_index=True, fragments=[1]).count_rows() == expected > 0


def test_fragments_have_scanners_of_their_own(table: Any) -> None:
    for fragment in table.get_fragments():
        flat = fragment.scanner(filter="id > 20 and few = 1", use_scalar_index=False).to_table()
        assert fragment.scanner(filter="id > 20 and few = 1", use_scalar_index=True).to_table() == flat


def test_deleted_rows_are_shown_without_an_index(table: Any) -> None:
    options = {"filter": "id < 30", "with_row_id": True, "include_deleted_rows": True}
    assert "Index" not in table.scanner(use_scalar_index=True, **options).explain_plan()


def answer(rows: dict[int, list[int]], known: list[int], exact: list[int] | None = None) -> Answer:
    sets = {id: RowSet.of(offsets) for id, offsets in rows.items()}
    return Answer(rows=sets, known=FrozenBitMap(known), exact=FrozenBitMap(known if exact is None else exact))


def test_and_intersects_where_both_know_and_keeps_what_one_knows() -> None:
    both = answer({1: [1, 2], 2: [5], 3: [9]}, [1, 2, 3]).and_(answer({1: [2, 3], 4: [7]}, [1, 2, 4]))
    assert both == answer({1: [2], 3: [9], 4: [7]}, [1, 2, 3, 4], [1, 2])


def test_or_unites_where_both_know() -> None:
    either = answer({1: [1], 2: [5], 3: [9]}, [1, 2, 3]).or_(answer({1: [3]}, [1, 2], [1]))
    assert either == answer({1: [1, 3], 2: [5]}, [1, 2], [1])
