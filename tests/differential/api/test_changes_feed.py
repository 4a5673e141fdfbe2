"""The change feed over versions that pylance made: its compactions, casts and renamed columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.unit.api.test_changes_feed import PER_VERSION, history, told

import tablewright as tw


def test_compaction_tells_none(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    history(uri)
    lance.dataset(uri).optimize.compact_files()
    ds = tw.dataset(uri)
    assert told(ds.changes(1)) == PER_VERSION
    assert told(ds.changes(5)) == told(ds.changes(6)) == told(ds.changes(6, 6, net=True)) == []
    assert told(ds.changes(2, 4)) == [each for each in PER_VERSION if 2 < each[0] <= 4]
    net = ds.changes(1, net=True)
    assert sorted(told(net, "_change_type", "id", "n")) == sorted(
        [
            ("delete", 2, 20),
            ("delete", 5, 50),
            *(("update_preimage", id, id * 10) for id in (0, 1, 3)),
            *(("update_postimage", id, id * 10 + 1) for id in (0, 1, 3)),
            ("insert", 12, 120),
        ]
    )
    assert ds.changes(1).explain_plan().splitlines()[-1] == f"  version {ds.version}: no rows changed"


@pytest.mark.parametrize("library", [tw, lance])
def test_columns_that_were_renamed_and_cast_have_their_values(tmp_path: Path, library: Any) -> None:
    uri = str(tmp_path / "t")
    rows = {"id": [1, 2], "a": [1, 2], "b": [10, 20], "st": [{"x": 5}, {"x": 6}]}
    tw.write_dataset(rows, uri, enable_stable_row_ids=True).delete("id = 1")
    library.dataset(uri).alter_columns({"path": "a", "name": "c", "data_type": pa.int32()})
    library.dataset(uri).alter_columns({"path": "b", "name": "a"})
    library.dataset(uri).alter_columns({"path": "a", "data_type": pa.int16()})
    tw.dataset(uri).alter_columns({"path": "st.x", "name": "y", "data_type": pa.int8()})
    ds = tw.dataset(uri)
    found = told(ds.changes(1, filter="_change_type <> 'update_postimage'"), "id", "c", "a", "st")
    assert found == [(1, 1, 10, {"y": 5}), *[(2, 2, 20, {"y": 6})] * 3]
    assert told(ds.changes(1, net=True, filter="c = 1 and st.y = 5"), "id", "a") == [(1, 10)]


@pytest.mark.parametrize("own_file", [False, True])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int32()])
@pytest.mark.parametrize("compacted", [False, True])
def test_a_column_dropped_and_added_under_its_name_is_another(
    tmp_path: Path, own_file: bool, kind: pa.DataType, compacted: bool
) -> None:
    """In a file of its own it leaves no trace, and the new one gets its field id."""
    made = tw.write_dataset(
        {"id": [1, 2]} if own_file else {"id": [1, 2], "x": [1, 2]}, str(tmp_path / "t"), enable_stable_row_ids=True
    )
    if own_file:
        made.add_columns({"x": "id"})
    begin = made.version
    made.update({"x": "5"}, where="id = 2", write_mode="rewrite_columns")
    made.drop_columns(["x"])
    made.add_columns(pa.schema({"x": kind}))
    if compacted:
        made.delete("id = 1")
        lance.dataset(made.uri).optimize.compact_files()
        made.checkout_latest()
    for feed in (made.changes(0), made.changes(begin), made.changes(begin - 1), made.changes(begin, net=True)):
        assert set(told(feed, "x")) <= {(None,)}
    replayed = {
        row["_rowid"]: row["x"] for row in made.changes(0, filter="_change_type <> 'delete'").to_table().to_pylist()
    }
    table = made.to_table(columns=["_rowid", "x"]).to_pylist()
    assert all(replayed[row["_rowid"]] == row["x"] for row in table)
    assert told(made.changes(begin, begin + 1), "x") == [(2,), (5,)]
