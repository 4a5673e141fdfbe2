"""One id, one field? Told by what happened between two versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import tablewright as tw
from tablewright.format.naming import manifest_path
from tablewright.operations.change_feed.fields import FieldHistory


def _different(ds: tw.LanceDataset, source: int, end: int) -> frozenset[int]:
    before, after = (ds.checkout_version(version)._snapshot for version in (source, end))
    return FieldHistory(source, after).different(before, frozenset({1, 2}))


def _origins(ds: tw.LanceDataset, source: int, end: int) -> dict[str, str]:
    """For columns of the last version that have another id in the source: their names there."""
    before, after = (ds.checkout_version(version)._snapshot for version in (source, end))
    ids = frozenset(node.id for node in after.schema.fields)
    found = FieldHistory(source, after).origins(before, ids)
    return {after.schema.path(new): before.schema.path(old) for new, old in found.items() if new != old}


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


def test_casts_are_followed_through_names_and_structs() -> None:
    rows = {"id": [1], "a": [1], "st": [{"x": 1, "y": "z"}], "b": [2]}
    ds = tw.write_dataset(rows, "memory://feed-casts", enable_stable_row_ids=True)
    ds.alter_columns({"path": "a", "name": "c", "data_type": pa.int32()}, {"path": "b", "data_type": pa.int16()})
    ds.alter_columns({"path": "b", "name": "a"})
    ds.alter_columns({"path": "st.x", "name": "w", "data_type": pa.int8()})
    ds.alter_columns({"path": "a", "data_type": pa.int64()})
    ds.drop_columns(["c"])
    ds.add_columns({"c": "5"})
    ds.checkout_version(1).restore()
    assert _origins(ds, 1, 2) == {"c": "a", "b": "b"}
    assert _origins(ds, 1, 5) == {"c": "a", "a": "b", "st.w": "st.x"}
    assert _origins(ds, 4, 5) == {"a": "a"}
    assert _origins(ds, 1, 7) == {"a": "b", "st.w": "st.x"}
    assert _origins(ds, 5, 8) == {"a": "c", "b": "a", "st.x": "st.w"}
    assert _origins(ds, 1, 8) == {}


def test_what_was_dropped_and_added_in_one_place_is_no_cast(tmp_path: Path) -> None:
    """Whether a field took the place of another is told from one version to the next only."""
    uri = str(tmp_path / "t")
    ds = tw.write_dataset({"id": [1], "a": [1]}, uri, enable_stable_row_ids=True)
    ds.add_columns(pa.schema({"b": pa.int32()}))
    ds.drop_columns(["a"])
    assert _origins(ds, 1, 3) == {}
    (tmp_path / "t" / manifest_path(2)).unlink()
    assert [each["version"] for each in ds.versions()] == [1, 3]
    assert _origins(ds, 1, 3) == {}


def test_past_versions_that_are_gone_the_name_decides(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1], "a": [1]}, str(tmp_path / "t"), enable_stable_row_ids=True)
    ds.alter_columns({"path": "a", "data_type": pa.int32()})
    ds.alter_columns({"path": "a", "data_type": pa.int16()})
    assert _origins(ds, 1, 3) == {"a": "a"}
    (tmp_path / "t" / manifest_path(2)).unlink()
    assert _origins(ds, 1, 3) == {"a": "a"}


def test_a_file_of_both_versions_shows_that_a_field_is_the_same(tmp_path: Path) -> None:
    """Then no version between is read."""
    ds = tw.write_dataset({"id": [1], "a": [1], "b": [1]}, str(tmp_path / "t"), enable_stable_row_ids=True)
    for number in (2, 3):
        ds.insert({"id": [number], "a": [1], "b": [1]})
    (tmp_path / "t" / manifest_path(2)).write_bytes(b"damaged")
    assert _different(ds, 1, 3) == frozenset()
