"""The rows that versions append, and what is no append."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.locate import open_world
from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.fragment import FragmentList
from tablewright.operations.appended import appended_scans
from tablewright.operations.scan import ScanOptions, run_scan_task
from tablewright.snapshot.snapshot import open_snapshot


def ids(ds: tw.LanceDataset, begin: int, end: int, **options: object) -> list[int]:
    world = open_world(ds.uri)
    newest = open_snapshot(world, end)
    scans = appended_scans(newest, begin, end, ScanOptions(columns=["id"], **options))
    return [
        id
        for scan in scans
        for task in scan.tasks
        for batch in run_scan_task(task, world)
        for id in batch["id"].to_pylist()
    ]


@pytest.fixture
def ds(tmp_path: Path) -> tw.LanceDataset:
    ds = tw.write_dataset(pa.table({"id": pa.array([1, 2], pa.int64())}), tmp_path / "t.lance")
    ds.insert([{"id": 3}])
    ds.insert([{"id": 4}])
    return ds


def test_versions_one_by_one_and_together(ds: tw.LanceDataset) -> None:
    assert ids(ds, 0, 1) == [1, 2]
    assert ids(ds, 1, 2) == [3]
    assert ids(ds, 0, 3) == [1, 2, 3, 4]
    assert ids(ds, 3, 3) == []
    assert ids(ds, 0, 3, filter="id > 2") == [3, 4]


def test_what_changes_no_row_is_passed(ds: tw.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE")
    ds.update_config({"a": "b"})
    ds.add_columns({"double": "id * 2"})
    ds.optimize.compact_files()
    ds.insert([{"id": 5, "double": 10}])
    ds.drop_columns(["double"])
    assert ids(ds, 3, ds.version) == [5]
    assert ids(ds, 0, ds.version) == [1, 2, 3, 4, 5]


def test_fragments_that_are_not_the_last_are_found_too(ds: tw.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another writer puts new fragments is its own choice."""
    append = FragmentList.appended
    monkeypatch.setattr(FragmentList, "appended", lambda self, new: append(FragmentList(), (*new, *self)))
    ds.insert([{"id": 5}])
    assert [fragment.fragment_id for fragment in ds.get_fragments()] == [3, 0, 1, 2]
    assert ids(ds, 3, 4) == [5]


def test_a_merge_that_only_inserts_appends(ds: tw.LanceDataset) -> None:
    ds.merge_insert("id").when_not_matched_insert_all().execute({"id": [4, 5, 6]})
    assert sorted(ids(ds, 3, ds.version)) == [5, 6]


@pytest.mark.parametrize("change", ["delete", "update", "merge", "overwrite", "restore"])
def test_other_changes_are_an_error_that_says_what_to_do(ds: tw.LanceDataset, change: str) -> None:
    match change:
        case "delete":
            ds.delete("id = 1")
        case "update":
            ds.update({"id": "id + 100"}, where="id = 1")
        case "merge":
            ds.merge_insert("id").when_matched_update_all().execute({"id": [1]})
        case "overwrite":
            tw.write_dataset({"id": [9]}, ds, mode="overwrite")
        case "restore":
            ds.checkout_version(1).restore()
    message = "Version 4 .* changed rows that were there before.*changes=true.*start_version=5"
    with pytest.raises(InvalidRequest, match=message):
        ids(ds, 2, 4)
    assert ids(ds, 2, 3) == [4]


def test_a_version_that_was_cleaned_up_is_an_error_that_names_it(ds: tw.LanceDataset) -> None:
    ds.cleanup_old_versions(versions=[2])
    with pytest.raises(VersionNotFound, match="Version 2"):
        ids(ds, 1, 3)
    assert ids(ds, 0, 1) == [1, 2]
    assert ids(ds, 2, 3) == [4]  # what a version brought is known without the one before it
