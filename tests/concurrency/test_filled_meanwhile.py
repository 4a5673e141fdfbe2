"""A column that a fragment has no file for is null in all its rows. Values that another writer puts there are a change.

Such fragments come of `add_columns` with a schema, and of inserts of partial rows.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import CommitConflict

MODES = ["auto", "rewrite_rows", "rewrite_columns"]


def _bare(path: Path, *, stable: bool) -> str:
    """Ten rows in one fragment; of `c` there is no value, and no file."""
    ds = tw.write_dataset(pa.table({"id": range(10), "x": [0] * 10}), str(path), enable_stable_row_ids=stable)
    ds.add_columns(pa.schema([("c", pa.int64())]))
    return str(path)


def _values(uri: str, column: str = "c") -> list[int | None]:
    ours, theirs = (library.dataset(uri).to_table(columns=["id", column]) for library in (tw, lance))
    assert ours.sort_by("id").equals(theirs.sort_by("id"))
    values: list[int | None] = ours.sort_by("id").column(column).to_pylist()
    return values


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
def test_two_writers_fill_one_column(tmp_path: Path, first: str, second: str, stable: bool) -> None:
    uri = _bare(tmp_path, stable=stable)
    late = tw.dataset(uri)
    tw.dataset(uri).update({"c": "1"}, where="id < 3", write_mode=first)
    late.update({"c": "2"}, where="id > 6", write_mode=second)
    assert _values(uri) == [1, 1, 1, None, None, None, None, 2, 2, 2]


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_both_change_are_changed_in_turn(tmp_path: Path, mode: str) -> None:
    """The second one reads what the first one wrote: in the same column, and in the condition."""
    uri = _bare(tmp_path, stable=True)
    late, later = tw.dataset(uri), tw.dataset(uri)
    tw.dataset(uri).update({"c": "id"}, where="id < 5", write_mode="rewrite_columns")
    late.update({"c": "coalesce(c, 100) + 1"}, where="id < 8", write_mode=mode)
    assert _values(uri) == [1, 2, 3, 4, 5, 101, 101, 101, None, None]
    later.update({"x": "1"}, where="c is null", write_mode=mode)
    assert _values(uri, "x") == [0] * 8 + [1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_the_condition_of_a_merge_is_asked_again(tmp_path: Path, mode: str) -> None:
    uri = _bare(tmp_path, stable=True)
    rows = pa.table({"id": [1, 2], "x": [7, 7], "c": [5, 5]})
    late = tw.dataset(uri)
    newer = late.merge_insert("id").when_matched_update_all("source.c > target.c").write_mode(mode)
    tw.dataset(uri).update({"c": "id * 4"}, where="id < 3", write_mode="rewrite_columns")
    assert newer.execute(rows)["num_updated_rows"] == 1
    assert _values(uri) == [0, 5, 8, *[None] * 7]


def test_what_is_no_change_of_ours_passes(tmp_path: Path) -> None:
    """A column that the table did not have, or values for other rows: a delete goes past both as it is."""
    uri = _bare(tmp_path, stable=False)
    late = tw.dataset(uri)
    deletion, _ = late.prepare_delete("id = 9").execute_uncommitted()
    tw.dataset(uri).add_columns({"d": "id"})
    tw.dataset(uri).update({"c": "2"}, where="id < 2", write_mode="rewrite_columns")
    tw.CommitBuilder(late).execute(deletion)
    assert _values(uri) == [2, 2, *[None] * 7]
    refused, _ = late.prepare_delete("id = 1").execute_uncommitted()
    with pytest.raises(CommitConflict, match="both modified 1 rows"):
        tw.CommitBuilder(late).execute(refused)


@pytest.mark.parametrize("replacement", ["overwrite", "restore"])
def test_values_of_a_stream_are_not_lost_with_the_rows_of_a_replaced_table(tmp_path: Path, replacement: str) -> None:
    """The rename asks for a new plan, on a version where the rows of the stream are gone."""
    ds = tw.write_dataset({"id": [1, 2], "x": [1, 2]}, tmp_path / "t")
    ds.insert({"id": [3], "x": [3]})
    stale = tw.dataset(ds.uri)
    ds.alter_columns({"path": "x", "name": "y"})
    if replacement == "overwrite":
        tw.write_dataset({"id": [7, 8]}, ds, mode="overwrite")
    else:
        ds.checkout_version(1).restore()
    before = tw.dataset(ds.uri).to_table()
    with pytest.raises(CommitConflict, match="replaced the rows"):
        stale.add_columns(pa.table({"v": [10, 20, 30]}))
    assert tw.dataset(ds.uri).to_table() == before
