from __future__ import annotations

from typing import Any

import pytest
from tests.unit.reading.indexed import indexed_table, rows, snapshot_of

import tablewright as tw
from tablewright.expressions.conditions import normal_form
from tablewright.expressions.filters import compile_filter
from tablewright.expressions.sql_conditions import conditions_of
from tablewright.reading.index_filter import AskedTree, Every, plan_index_query, scalar_indices


@pytest.fixture(scope="module")
def table() -> Any:
    return indexed_table()


def planned(table: Any, sql: str) -> AskedTree | str:
    snapshot = snapshot_of(table)
    tree = normal_form(conditions_of(compile_filter(sql, snapshot.schema), snapshot.schema))
    return plan_index_query(tree, snapshot, snapshot.schema)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("id = 5", "[id = 5]@id_idx(BTree)"),
        ("id between 1 and 5", "[id >= 1 && id <= 5]@id_idx(BTree)"),
        ("id = 5 and few = 1", "AND([id = 5]@id_idx(BTree),[few = 1]@few_idx(Bitmap))"),
        ("id = 5 or few = 1", "OR([id = 5]@id_idx(BTree),[few = 1]@few_idx(Bitmap))"),
        ("few != 1", "NOT([few = 1]@few_idx(Bitmap))"),
        ("few is not null", "NOT([few IS NULL]@few_idx(Bitmap))"),
        ("zone > 3", "[zone > 3]@zone_idx(ZoneMap)"),
        ("contains(word, 'number 1')", "[contains(word, 'number 1')]@word_idx(NGram)"),
        ("word like '%number%'", "[contains(word, 'number')]@word_idx(NGram)"),
        ("array_has(tags, 'a')", "[array_has_any(tags, ['a'])]@tags_idx(LabelList)"),
        ("hash in ('h1', 'h2')", "[hash IN ['h1','h2']]@hash_idx(BloomFilter)"),
        ("st.x = 3", "[st.x = 3]@st.x_idx(BTree)"),
        ("id = 5 and v > 3", "[id = 5]@id_idx(BTree)"),
    ],
)
def test_which_index_answers_what(table: Any, sql: str, text: str) -> None:
    found = planned(table, sql)
    assert str(found) == text
    assert not isinstance(found, str) and found.known


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("v = 5", "no index is on a column"),
        ("id = 5 or v = 3", "an OR with v = 3, which no index answers"),
        ("id = 5 or v % 2 = 0", "an OR with a part that no index can be asked for"),
        ("zone != 3", "does not know which rows are not zone = 3"),
        ("hash > 'h1'", "index hash_idx (BLOOMFILTER) does not answer hash > 'h1'"),
    ],
)
def test_why_no_index_answers(table: Any, sql: str, reason: str) -> None:
    found = planned(table, sql)
    assert isinstance(found, str) and reason in found


def test_exact_where_no_part_is_missing(table: Any) -> None:
    exact, partial, zones = planned(table, "id = 5"), planned(table, "id = 5 and v > 3"), planned(table, "zone > 3")
    assert not isinstance(exact, str) and exact.exact == exact.known
    assert isinstance(partial, Every) and not partial.exact and partial.known
    assert not isinstance(zones, str) and not zones.exact


def test_fragments_that_only_one_index_of_an_and_covers_are_known(table: Any) -> None:
    few, zone, both = planned(table, "few = 1"), planned(table, "zone = 1"), planned(table, "few = 1 and zone = 1")
    either = planned(table, "few = 1 or zone = 1")
    assert not any(isinstance(found, str) for found in (few, zone, both, either))
    assert few.known != zone.known
    assert both.known == few.known | zone.known
    assert either.known == few.known & zone.known


def test_an_exact_kind_comes_first() -> None:
    ds = tw.write_dataset(rows(0, 50), "memory://index-filter-two-kinds")
    ds.create_scalar_index("id", "ZONEMAP", name="zones")
    ds.create_scalar_index("id", "BTREE", name="sorted")
    assert str(planned(ds, "id = 5")) == "[id = 5]@sorted(BTree)"


def test_tables_without_indices() -> None:
    assert not scalar_indices(snapshot_of(tw.write_dataset(rows(0, 5), "memory://index-filter-none")))
