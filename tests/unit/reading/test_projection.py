"""A choice of columns: what has to be read for it, and what comes of rows as read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest, WrongType
from tablewright.format.schema import Schema
from tablewright.reading.projection import RowLayout, Selection, extend_selection, select_columns, select_members

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", pa.string(), metadata={"k": "v"}),
        pa.field("st", pa.struct({"p": pa.int8(), "q": pa.struct({"z": pa.string()})})),
    ],
    metadata={"m": "1"},
)
TABLE = Schema.from_arrow(ARROW)
ROWS = pa.record_batch(
    {
        "id": pa.array([1, 2]),
        "s": ["x", "y"],
        "st": pa.array([{"p": 5, "q": {"z": "u"}}, None], ARROW.field("st").type),
        "_rowid": pa.array([7, 8], pa.uint64()),
    }
)


@pytest.mark.parametrize(
    ("columns", "options", "names", "paths"),
    [
        (None, {}, ["id", "s", "st"], [("id",), ("s",), ("st",)]),
        (["s", "id"], {}, ["s", "id"], [("s",), ("id",)]),
        (["st.q.z"], {}, ["st.q.z"], [("st", "q", "z")]),
        (["`s`", "_rowid"], {}, ["`s`", "_rowid"], [("s",), ("_rowid",)]),
        (["_rowid", "id"], {"with_row_id": True}, ["id", "_rowid"], [("id",), ("_rowid",)]),
        (
            ["id"],
            {"with_row_address": True, "with_row_id": True},
            ["id", "_rowid", "_rowaddr"],
            [("id",), ("_rowid",), ("_rowaddr",)],
        ),
        ({"n": "id + 1", "z": "st.q.z"}, {}, ["n", "z"], [("id",), ("st", "q", "z")]),
        ([], {}, [], []),
    ],
    ids=str,
)
def test_names_and_what_is_read_for_them(
    columns: Any, options: dict[str, bool], names: list[str], paths: list[tuple[str, ...]]
) -> None:
    found = select_columns(TABLE, columns, **options)
    assert found.schema.names == names
    assert list(found.paths) == paths
    assert found.schema.metadata == {b"m": b"1"}


def test_rows_as_asked_for() -> None:
    found = select_columns(TABLE, ["_rowid", "st.q.z", "id"]).shape(ROWS)
    assert found.to_pydict() == {"_rowid": [7, 8], "st.q.z": ["u", None], "id": [1, 2]}
    computed = select_columns(TABLE, {"twice": "id * 2", "s": "s"}).shape(ROWS)
    assert computed.to_pydict() == {"twice": [2, 4], "s": ["x", "y"]}
    assert Selection.nothing().shape(ROWS).num_rows == 2


def test_types_nullability_and_metadata_of_columns() -> None:
    schema = select_columns(TABLE, ["id", "s", "st.p", "_rowid"]).schema
    assert [schema.field(name).nullable for name in schema.names] == [False, True, True, True]
    assert schema.field("s").metadata == {b"k": b"v"}


def test_members_stay_in_their_struct() -> None:
    found = select_members(TABLE, ["st.p", "id", "st.p"])
    assert found.schema.names == ["st", "id"]
    assert found.schema.field("st").type == pa.struct({"p": pa.int8()})
    assert found.paths == (("st", "p"), ("id",))
    assert select_members(TABLE, {"a": "id"}).schema.names == ["a"]


def test_fields_after_a_selection() -> None:
    some = select_columns(TABLE, ["s"])
    assert extend_selection(some, TABLE, {}) is some
    more = extend_selection(some, TABLE, {"key": ("st", "p")})
    assert more.schema.names == ["s", "key"] and more.paths == (("s",), ("st", "p"))


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        (["id", "id"], InvalidRequest, "Duplicate column name: id"),
        (["nope"], InvalidRequest, "No field named nope"),
        (["ID"], InvalidRequest, "No field named ID"),
        (["st.nope"], InvalidRequest, r"No field named st\.nope"),
        ("id", WrongType, "got text"),
        ([1], WrongType, "a column's name is text, not int"),
        ({"a": 1}, TypeError, "expression of column 'a'"),
    ],
    ids=str,
)
def test_what_is_refused(columns: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        select_columns(TABLE, columns)


def test_a_choice_of_whole_columns_is_resolved_once() -> None:
    names = list(TABLE.names[:2])
    assert select_columns(TABLE, names) is select_columns(TABLE, tuple(names))
    assert select_columns(TABLE, names[::-1]).schema.names == names[::-1]
    assert select_columns(TABLE, names, with_row_id=True).schema.names == [*names, "_rowid"]


def test_layouts() -> None:
    layout = RowLayout.of(TABLE, [("st", "q"), ("_rowaddr",), ("_rowid",), ("_rowaddr",)])
    assert layout.names == ("st", "_rowaddr", "_rowid")
    assert layout.fields.to_arrow().field("st").type == pa.struct({"q": pa.struct({"z": pa.string()})})
    covered = {
        path: layout.covers(TABLE, path) for path in [("st", "q"), ("st", "q", "z"), ("st",), ("_rowid",), ("id",)]
    }
    assert list(covered.values()) == [True, True, False, True, False]
