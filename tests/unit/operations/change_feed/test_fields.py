"""One id, one field? Told by what happened between two versions."""

from __future__ import annotations

import pyarrow as pa

import tablewright as tw
from tablewright.operations.change_feed.fields import FieldHistory


def _different(ds: tw.LanceDataset, source: int, end: int) -> frozenset[int]:
    before, after = (ds.checkout_version(version)._snapshot for version in (source, end))
    return FieldHistory(source, after).different(before, frozenset({1, 2}))


def test_ids_are_followed_through_the_versions() -> None:
    uri = "memory://feed-fields"
    ds = tw.write_dataset({"id": [1], "a": [1]}, uri, enable_stable_row_ids=True)
    ds.add_columns({"b": "a + 1"})
    ds.alter_columns({"path": "a", "name": "c"})
    ds.drop_columns(["b"])
    ds.add_columns(pa.schema({"d": pa.int64()}))
    assert ds.lance_schema.field("d").id() == 2  # what was b's
    tw.dataset(uri, version=3).restore()
    tw.write_dataset({"id": [1], "x": [1], "y": [1]}, uri, mode="overwrite")
    assert _different(ds, 2, 3) == frozenset()
    assert _different(ds, 2, 5) == {2}
    assert _different(ds, 5, 6) == {2}
    assert _different(ds, 2, 6) == frozenset()
    assert _different(ds, 6, 7) == {1, 2}
    assert ds.changes(5, 7).to_table().select(["x", "_change_type"]).to_pylist() == [
        {"x": None, "_change_type": "delete"},
        {"x": 1, "_change_type": "insert"},
    ]
