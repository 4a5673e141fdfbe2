"""Clauses of a merge as SQL has them: names, types, order, errors. What they mean is in ``tests/property``."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "v": pa.array([10, 20, None], pa.int32()),
        "s": ["a", "b", None],
        "st": pa.array([{"a": 1, "b": 2}, None, {"a": 3, "b": 4}], pa.struct({"a": pa.int64(), "b": pa.int64()})),
    }
)
SOURCE = pa.table({"id": [1, 2, 9], "v": pa.array([5, None, 7], pa.int32()), "op": ["u", "d", "i"]})


def created(data: Any = TABLE, **options: Any) -> tw.LanceDataset:
    return tw.write_dataset(data, f"memory://merge-clauses-{uuid.uuid4()}", **options)


def test_the_first_clause_that_holds_takes_the_row() -> None:
    ds = created()
    merge = ds.merge_insert("id").when_matched_delete("op = 'd'").when_matched_update({"v": "source.v + target.v"})
    merge = merge.when_not_matched_insert({"id": "source.id", "s": "upper(op)"}, "source.v > 3")
    merge = merge.when_not_matched_by_source_update({"s": "'left'"}, "v is null")
    result = merge.execute(SOURCE)
    counts = [result[f"num_{what}_rows"] for what in ("updated", "deleted", "inserted")]
    assert counts == [2, 1, 1] and result["version"] == ds.version == 2
    assert ds.to_table(["id", "v", "s"]).sort_by("id").to_pydict() == {
        "id": [1, 3, 9],
        "v": [15, None, None],
        "s": ["a", "left", "I"],
    }


def test_assignments_see_old_values() -> None:
    ds = created()
    ds.merge_insert("id").when_matched_update({"st": "null", "s": "cast(target.st.a as string)"}).execute(
        {"id": [1, 3]}
    )
    swap = ds.merge_insert("id").when_matched_update({"v": "target.id", "id": "target.v"})
    swap.execute({"id": [1]})
    assert ds.to_table(["id", "v", "s"]).sort_by("id").to_pylist() == [
        {"id": 2, "v": 20, "s": "b"},
        {"id": 3, "v": None, "s": "3"},
        {"id": 10, "v": 1, "s": "1"},
    ]


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_a_member_of_a_struct(mode: str) -> None:
    ds = created()
    ds.merge_insert("id").when_matched_update({"st.a": "source.n + coalesce(target.st.b, 0)"}).write_mode(mode).execute(
        {"id": [1, 2], "n": [100, 200]}
    )
    rows = {row["id"]: row["st"] for row in ds.to_table(["id", "st"]).to_pylist()}
    assert rows == {1: {"a": 102, "b": 2}, 2: {"a": 200, "b": None}, 3: {"a": 3, "b": 4}}


def test_a_new_row_with_a_member_of_a_struct() -> None:
    ds = created()
    ds.merge_insert("id").when_not_matched_insert({"id": "id", "st.a": "id * 2"}).execute({"id": [5]})
    assert ds.to_table(filter="id = 5").to_pylist() == [{"id": 5, "v": None, "s": None, "st": {"a": 10, "b": None}}]


def test_constants_take_the_type_of_the_column() -> None:
    ds = created({"id": [1], "d": [dt.date(2020, 1, 1)], "t": [dt.datetime(2020, 1, 1)], "f": [1.5]})
    ds.merge_insert("id").when_matched_update({"d": "'2024-02-29'", "t": "now()", "f": "3"}).execute({"id": [1]})
    (row,) = ds.to_table().to_pylist()
    assert (row["d"], row["f"]) == (dt.date(2024, 2, 29), 3.0) and row["t"].year >= 2024


@pytest.mark.parametrize("rows", [1, 2])
def test_only_the_columns_that_a_clause_changes_are_written(rows: int) -> None:
    """Two fragments, in each of which another clause applies: each gets a file with its own column."""
    ds = created(max_rows_per_file=2)
    merge = ds.merge_insert("id").when_matched_update({"v": "0"}, "target.id < 3").when_matched_update({"s": "'x'"})
    merge.write_mode("rewrite_columns").execute({"id": [1, 3][:rows]})
    written = [sorted(fragment.metadata.files[-1].fields) for fragment in ds.get_fragments()]
    assert written == [[1], [2] if rows == 2 else [0, 1, 2, 4, 5]]
    ds.validate()


def test_a_column_only_the_source_has_and_one_with_another_type() -> None:
    ds = created()
    texts = pa.table({"id": pa.array([1], pa.int32()), "v": ["41"], "extra": [1]})
    ds.merge_insert("id").when_matched_update({"v": "cast(source.v as int) + extra"}).execute(texts)
    assert ds.to_table(filter="id = 1")["v"].to_pylist() == [42]


def test_all_columns_beside_other_clauses() -> None:
    ds = created()
    merge = ds.merge_insert("id").when_matched_delete("op = 'd'").when_matched_update_all()
    merge.when_not_matched_insert_all("op = 'i'").execute(SOURCE)
    assert ds.to_table(["id", "v", "s"]).sort_by("id").to_pylist() == [
        {"id": 1, "v": 5, "s": "a"},
        {"id": 3, "v": None, "s": None},
        {"id": 9, "v": 7, "s": None},
    ]


def test_several_source_rows_that_delete_one_row() -> None:
    ds = created()
    assert ds.merge_insert("id").when_matched_delete().execute({"id": [1, 1, 2]})["num_deleted_rows"] == 2
    with pytest.raises(OSError, match="Ambiguous"):
        created().merge_insert("id").when_matched_delete("source.id > 0").execute({"id": [1, 1]})


def test_calls_of_pylance_replace_each_other_unless_they_have_conditions() -> None:
    source = {"id": [1, 2], "v": [0, 99]}
    ds = created()
    assert (
        ds.merge_insert("id").when_matched_update_all().when_matched_delete().execute(source)["num_updated_rows"] == 0
    )
    ds = created()
    both = ds.merge_insert("id").when_matched_update_all("source.v > target.v").when_matched_delete().execute(source)
    assert (both["num_updated_rows"], both["num_deleted_rows"]) == (1, 1)


def test_the_plan_says_the_clauses() -> None:
    merge = created().merge_insert("id").when_matched_delete("target.v > 1").when_matched_update({"v": "source.v"})
    text = merge.when_not_matched_by_source_update({"s": "'x'"}, "target.v < 0").explain_plan()
    assert "when_matched=[Delete if target.v > 1; Update(v = source.v)]" in text
    assert "when_not_matched_by_source=[Update(s = 'x') if target.v < 0]" in text
    assert "reads target [v] of matched rows only" in text
    analyzed = created().merge_insert("id").when_matched_update({"v": "source.v"}).analyze_plan(SOURCE)
    assert "num_updated_rows=2" in analyzed


BAD: list[tuple[Any, str]] = [
    (lambda m: m.when_matched_update({"nope": "1"}), 'Column "nope" does not exist'),
    (lambda m: m.when_matched_update({"v": "source.nope"}), "No field named source.nope"),
    (lambda m: m.when_matched_update({"v": "v + 1"}), "v is a column of the source and of the table"),
    (lambda m: m.when_matched_update({"v": "nope"}), "No field named nope"),
    (lambda m: m.when_matched_update({"v": "1", "V": "2"}), "are updated both"),
    (lambda m: m.when_matched_update({"st": "null", "st.a": "1"}), "are updated both"),
    (lambda m: m.when_matched_update({"v": "source.op"}), "can't safely take 'source.op' of type Utf8"),
    (lambda m: m.when_matched_update({"v": "source.v * 0.5"}), "can't safely take"),
    (lambda m: m.when_matched_update({"v": "1.5"}), "holds whole numbers"),
    (lambda m: m.when_matched_update({"v": "3000000000"}), "3000000000"),
    (lambda m: m.when_matched_update({"v": "source.id * 3000000000"}), "the value 3000000000 does not fit. Write cast"),
    (lambda m: m.when_matched_update({"v": "1"}, "source.v"), "does not return a boolean"),
    (lambda m: m.when_matched_update({"v": "1"}, "source.x > 1"), "No field named source.x"),
    (lambda m: m.when_matched_update({"_rowid": "1"}), "system column"),
    (lambda m: m.when_matched_update({}), "at least one column"),
    (lambda m: m.when_matched_update({"v": 1}), "must be SQL text"),
    (lambda m: m.when_matched_update("v = 1"), "takes a dict"),
    (lambda m: m.when_matched_update({"v": "1"}).when_matched_update({"v": "2"}), "follows Update"),
    (lambda m: m.when_matched_delete().when_matched_update({"v": "2"}), "follows Delete"),
    (lambda m: m.when_not_matched_insert_all().when_not_matched_insert({"id": "1"}), "follows InsertAll"),
    (
        lambda m: m.when_not_matched_by_source_delete().when_not_matched_by_source_update({"v": "1"}),
        "follows Delete",
    ),
    (lambda m: m.when_not_matched_insert({"id": "target.id"}), "there is no target.id here"),
    (lambda m: m.when_not_matched_insert({"s": "op"}), "non-nullable"),
    (lambda m: m.when_not_matched_by_source_update({"v": "source.v"}), "there is no source.v here"),
    (lambda m: m.when_not_matched_by_source_update({"v": "1"}, "source.v > 1"), "there is no source.v here"),
    (lambda m: m.when_matched_fail().when_matched_update({"v": "1"}), "when_matched_fail stands alone"),
    (lambda m: m.when_matched_update({"v": "1"}).schema_evolution(), "add_columns first"),
    (lambda m: m.when_matched_update({"v": "1"}).when_not_matched_insert_all(), "unexpected=\\[op\\]"),
    (lambda m: m.when_matched_update({"id": "null"}), "null"),
]


@pytest.mark.parametrize(("clauses", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_wrong_is_said_and_changes_nothing(clauses: Any, message: str) -> None:
    schema = TABLE.schema.set(0, TABLE.schema.field("id").with_nullable(False))
    ds = created(TABLE.cast(schema))
    with pytest.raises((InvalidRequest, OSError, TypeError), match=message):
        clauses(ds.merge_insert("id")).execute(SOURCE)
    assert ds.version == ds.latest_version == 1
