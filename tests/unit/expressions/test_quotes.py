"""A column's name in double quotes: refused where it is compared as a text and nothing else is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import compile_filter
from tablewright.expressions.sql import compile_sql

TEXT, NUMBER = pa.string(), pa.int64()
SCHEMA = pa.schema(
    {"id": NUMBER, "s": TEXT, "name": TEXT, "my col": TEXT, "st": pa.struct({"a": TEXT}), "b": pa.bool_(), "x.y": TEXT}
)


@pytest.mark.parametrize(
    "misread",
    [
        "\"s\" != 'a'",
        "\"S\" = 'a'",
        '"s" is null',
        'id > 0 and "s" is not null',
        "id > 0 or \"s\" like 'a%'",
        "starts_with(\"s\", 'a')",
        "not \"s\" in ('a', 'b')",
        "\"s\" between 'a' and 'b'",
        "\"my col\" > 'x'",
        "\"st.a\" = 'q'",
        "\"ST.a\" = 'q'",
        "\"x.y\" = 'q'",
        "case when \"s\" = 'a' then b else false end",
        '"s" = "name"',
        "lower(\"s\") = 'a'",
        "b and not (\"s\" = 'x' or b)",
        '"b"',
        'b and "b"',
        "\"_rowid\" = '1'",
        '"id" > 0',
        "regexp_match(\"s\", 'a')",
    ],
)
def test_what_reads_no_column_is_refused(misread: str) -> None:
    with pytest.raises(InvalidRequest, match=r"in double quotes is a text, not the column .* in backticks"):
        compile_filter(misread, SCHEMA)


@pytest.mark.parametrize(
    "meant",
    [
        'name = "s"',
        's = "name"',
        's in ("id", "name")',
        "'s' != 'a'",
        "\"zed\" = 'a'",
        'case when id > 1 then "s" else "t" end = \'s\'',
        "s || \"s\" = 'as'",
        "st.a = \"name\" and `my col` = 'x'",
        "true",
    ],
)
def test_a_text_is_a_text(meant: str) -> None:
    compile_filter(meant, SCHEMA)


def test_a_value_may_be_a_name() -> None:
    assert compile_sql('"s"', SCHEMA).evaluate(pa.record_batch({"id": [1]})).to_pylist() == ["s"]


@pytest.mark.parametrize(
    ("misread", "hint"),
    [
        ("\"S\" = 'a'", "Write s without quotes or `s` in backticks for the column, 'S' in single quotes for the text"),
        ("\"my col\" = 'a'", "Write `my col` in backticks"),
        ("\"st.a\" = 'a'", "Write st.a without quotes or `st`.`a` in backticks"),
        ("\"x.y\" = 'a'", "Write `x.y` in backticks"),
    ],
)
def test_the_hint_can_be_copied(misread: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as told:
        compile_filter(misread, SCHEMA)
    assert hint in str(told.value)
    compile_filter(f"`{hint.split('`', 1)[1].split('` in')[0]}` = 'a'", SCHEMA)


class TestEveryVerb:
    @pytest.fixture
    def ds(self) -> tw.LanceDataset:
        return tw.write_dataset({"id": [1, 2], "s": ["a", "b"]}, "memory://quotes", mode="overwrite")

    def test_changes_change_nothing(self, ds: tw.LanceDataset) -> None:
        version, merge = ds.version, ds.merge_insert("id")
        for change in (
            lambda: ds.delete("\"s\" != 'a'"),
            lambda: ds.update({"id": "0"}, where="\"s\" != 'a'"),
            lambda: ds.update({"id": "case when \"s\" = 'a' then 1 else 2 end"}),
            lambda: merge.when_matched_update_all("\"s\" = 'a'").execute({"id": [1], "s": ["z"]}),
            lambda: merge.when_matched_update_all("source.id > 0 and \"target.s\" != 'a'").execute(
                {"id": [1], "s": ["z"]}
            ),
            lambda: merge.when_not_matched_by_source_delete("\"s\" != 'a'").execute({"id": [1], "s": ["z"]}),
            lambda: ds.get_fragment(0).delete("\"s\" != 'a'"),
        ):
            with pytest.raises(InvalidRequest, match="in double quotes"):
                change()
        ds.checkout_latest()
        assert (ds.version, ds.to_table().to_pydict()) == (version, {"id": [1, 2], "s": ["a", "b"]})

    def test_reads_return_nothing(self, ds: tw.LanceDataset) -> None:
        for read in (ds.to_table, ds.count_rows, lambda filter: ds.scanner(filter=filter).to_table()):
            with pytest.raises(InvalidRequest, match="in double quotes"):
                read(filter="\"s\" != 'a'")

    def test_an_update_to_a_text_that_is_a_name(self, ds: tw.LanceDataset) -> None:
        ds.update({"s": '"id"'}, where='s = "a"')
        assert ds.to_table()["s"].to_pylist() == ["b", "id"]
