"""Rows and changes of the schema, made from a version whose columns went, came or were described anew meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, SchemaMismatch

Change = Callable[[Any], object]


def _rows(id: int, x: int) -> pa.Table:
    s = pa.array([{"a": x}], pa.struct({"a": pa.int32()}))
    return pa.table({"id": pa.array([id], pa.int64()), "s": s, "x": pa.array([x], pa.int32())})


def _compact(ds: Any) -> None:
    lance.dataset(ds.uri).optimize.compact_files()
    ds.checkout_latest()


SUCCESSORS: dict[str, Change] = {
    "cast and renamed at once": lambda ds: ds.alter_columns({"path": "x", "name": "y", "data_type": pa.int64()}),
    "a member cast and renamed": lambda ds: ds.alter_columns({"path": "s.a", "name": "b", "data_type": pa.int64()}),
    "renamed, then cast": lambda ds: (
        ds.alter_columns({"path": "x", "name": "y"}),
        ds.alter_columns({"path": "y", "data_type": pa.int64()}),
    ),
    "a struct renamed, its member cast": lambda ds: (
        ds.alter_columns({"path": "s", "name": "t"}),
        ds.alter_columns({"path": "t.a", "data_type": pa.int64()}),
    ),
    "copied and dropped": lambda ds: (ds.add_columns({"y": "x + 1"}), ds.drop_columns(["x"])),
}
"""Columns that live on under a new name and a new field id."""

SAME_ID: dict[str, Change] = {
    "of one type": lambda ds: (ds.drop_columns(["x"]), _compact(ds), ds.add_columns({"y": "cast(id as int)"})),
    "of another type": lambda ds: (ds.drop_columns(["x"]), _compact(ds), ds.add_columns({"y": "cast(id as string)"})),
    "and name": lambda ds: (ds.drop_columns(["x"]), _compact(ds), ds.add_columns({"x": "cast(id as string)"})),
    "in an empty table": lambda ds: (
        ds.delete("true"),
        ds.drop_columns(["x"]),
        ds.add_columns(pa.field("y", pa.int32())),
    ),
}
"""The last column is dropped, no file holds its field id any more, and the next column gets it."""


@pytest.mark.parametrize("rival", [tw, lance], ids=["ours", "pylance"])
@pytest.mark.parametrize("name", [*SUCCESSORS, *SAME_ID])
def test_values_of_a_column_that_others_succeed_are_neither_lost_nor_put_there(
    tmp_path: Path, name: str, rival: Any
) -> None:
    uri = str(tmp_path / "t")
    tw.write_dataset(pa.concat_tables([_rows(1, 5), _rows(2, 6)]), uri, max_rows_per_file=1)
    stale = tw.dataset(uri)
    append = tw.LanceOperation.Append(tw.fragment.write_fragments(_rows(4, 8), stale))
    (SUCCESSORS | SAME_ID)[name](rival.dataset(uri))
    before = lance.dataset(uri).to_table()
    with pytest.raises(SchemaMismatch, match="Append with different schema"):
        stale.insert(_rows(3, 7))
    with pytest.raises(CommitConflict, match="replaced by other columns"):
        tw.LanceDataset.commit(uri, append, read_version=1)
    assert lance.dataset(uri).to_table() == before == tw.dataset(uri).to_table()


def test_a_column_that_comes_does_not_disturb_an_insert(tmp_path: Path) -> None:
    ds = tw.write_dataset(_rows(1, 5), str(tmp_path / "t"))
    stale = tw.dataset(ds.uri)
    ds.add_columns({"y": "x + 1"})
    ds.alter_columns({"path": "x", "name": "z"})
    stale.insert(_rows(2, 6))
    rows = lance.dataset(ds.uri).to_table(columns=["id", "z", "y"]).to_pylist()
    assert rows == [{"id": 1, "z": 5, "y": 6}, {"id": 2, "z": 6, "y": None}]


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_a_change_is_found_under_the_name_that_it_was_made_for(tmp_path: Path, verb: str, mode: str) -> None:
    """The column was renamed, and another one has its name now."""
    ds = tw.write_dataset(pa.concat_tables([_rows(1, 5), _rows(2, 6)]), str(tmp_path / "t"))
    stale = tw.dataset(ds.uri)
    ds.alter_columns({"path": "x", "name": "old"})
    ds.add_columns({"x": "cast(old + 1 as int)"})
    if verb == "update":
        stale.update({"x": "70"}, where="id = 1", write_mode=mode)
    else:
        merge = stale.merge_insert("id").when_matched_update_all().write_mode(mode)
        merge.execute({"id": [1], "x": pa.array([70], pa.int32())})
    rows = lance.dataset(ds.uri).to_table(columns=["id", "old", "x"]).to_pylist()
    assert sorted(map(tuple, map(dict.values, rows))) == [(1, 5, 70), (2, 6, 7)]


@pytest.mark.parametrize("rival", [tw, lance], ids=["ours", "pylance"])
@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds.drop_columns(["x"]),
        lambda ds: ds.alter_columns({"path": "x", "name": "y"}),
        lambda ds: ds.alter_columns({"path": "id", "nullable": False}),
    ],
    ids=["drop", "rename", "nullable"],
)
def test_metadata_that_came_meanwhile_stay(tmp_path: Path, change: Change, rival: Any) -> None:
    uri = str(tmp_path / "t")
    tw.write_dataset(_rows(1, 5), uri)
    stale = tw.dataset(uri)
    rival.dataset(uri).update_schema_metadata({"owner": "me"})
    rival.dataset(uri).update_field_metadata({"id": {"unit": "m"}})
    change(stale)
    schema = lance.dataset(uri).schema
    assert schema.metadata == {b"owner": b"me"} and schema.field("id").metadata == {b"unit": b"m"}


@pytest.mark.parametrize(
    "rival", [lambda ds: ds.alter_columns({"path": "x", "name": "old"}), lambda ds: ds.drop_columns(["x"])]
)
def test_new_columns_have_the_order_of_the_source_past_a_change_of_the_schema(tmp_path: Path, rival: Any) -> None:
    """A column that the source gives for one of the table becomes a new one, in its own place."""
    ds = tw.write_dataset({"id": [1, 2], "x": [1, 2]}, tmp_path / "t")
    stale = tw.dataset(ds.uri)
    rival(ds)
    before = tw.dataset(ds.uri).schema.names
    merge = stale.merge_insert("id", schema_evolution=True).when_matched_update_all()
    merge.execute({"id": [1], "n": [5], "x": [6], "a": [7]})
    made = tw.dataset(ds.uri)
    assert made.schema.names == [*before, "n", "x", "a"]
    assert made.to_table(["id", "n", "x", "a"], filter="id = 1").to_pylist() == [{"id": 1, "n": 5, "x": 6, "a": 7}]
