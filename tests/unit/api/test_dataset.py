"""The doorman's own care: what it refuses, and what it inherits from pyarrow."""

from __future__ import annotations

import copy
import pickle
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.naming import manifest_path
from tablewright.format.schema import Schema
from tablewright.storage import open_store


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [3, 1, 2], "s": ["c", "a", None]}, f"memory://{uuid.uuid4()}", max_rows_per_file=2)


def test_copies_and_pickles_are_the_same_version(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1]}, tmp_path / "t.lance")
    old = copy.copy(ds)
    ds.insert({"id": [2]})
    again = pickle.loads(pickle.dumps(ds))
    assert (old.version, ds.version, again.version, again.to_table()) == (1, 2, 2, ds.to_table())
    assert pickle.loads(pickle.dumps(ds.get_fragment(1))).to_table().to_pydict() == {"id": [2]}


def test_default_scan_options_do_not_reach_counts(ds: tw.LanceDataset) -> None:
    limited = tw.dataset(ds.uri, default_scan_options={"limit": 1, "filter": "id > 1"})
    assert (limited.count_rows(), limited.count_rows("id >= 1"), limited.to_table().num_rows) == (3, 3, 1)


class TestWrongArguments:
    @pytest.mark.parametrize(
        "options",
        [
            {"engine": "zzz"},
            {"engine": 3},
            {"default_scan_options": {"zzz": 1}},
            {"version": 1, "asof": "2024-01-01"},
        ],
    )
    def test_opening(self, ds: tw.LanceDataset, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidRequest):
            tw.dataset(ds.uri, **options)

    @pytest.mark.parametrize(
        "options",
        [
            {"engine": "LOCAL"},
            {"transaction_properties": {"a": 1}},
            {"transaction_properties": "abc"},
            {"commit_message": 3},
            {"auto_cleanup_options": 3},
            {"auto_cleanup_options": {"older_than_seconds": -1}},
            {"max_rows_per_file": "5"},
            {"max_rows_per_file": 1.5},
            {"schema": "abc"},
        ],
    )
    def test_writing(self, options: dict[str, Any]) -> None:
        place = f"memory://{uuid.uuid4()}"
        with pytest.raises(InvalidRequest):
            tw.write_dataset({"id": [1]}, place, **options)
        with pytest.raises(tw.errors.TableNotFound):
            tw.dataset(place)

    @pytest.mark.parametrize("name", ["", "a`b"])
    def test_names_that_can_not_be_read_back(self, name: str) -> None:
        with pytest.raises(InvalidRequest, match="can't be read back"):
            tw.write_dataset({name: [1], "c": [2]}, f"memory://{uuid.uuid4()}")

    def test_rows_without_columns(self) -> None:
        with pytest.raises(InvalidRequest, match="no columns"):
            tw.write_dataset(pa.table({"a": [1, 2]}).select([]), f"memory://{uuid.uuid4()}")

    @pytest.mark.parametrize(
        "options",
        [
            {"read_version": "1"},
            {"read_version": -1},
            {"max_retries": "x"},
            {"commit_timeout": 3},
            {"affected_rows": "x"},
            {"affected_rows": [-1]},
        ],
    )
    def test_committing(self, ds: tw.LanceDataset, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidRequest):
            tw.LanceDataset.commit(ds, tw.LanceOperation.Append([]), **{"read_version": 1, **options})
        for operation in (tw.LanceOperation.Restore(None), tw.LanceOperation.Overwrite(None, []), None):  # type: ignore[arg-type]
            with pytest.raises(InvalidRequest):
                tw.LanceDataset.commit(ds, operation, read_version=1)  # type: ignore[arg-type]
        assert ds.latest_version == 1
        assert tw.LanceDataset.commit(ds, tw.LanceOperation.Append([]), 1, commit_timeout=timedelta(1)).version == 2

    def test_no_operation_slips_past_the_conflict_checks_as_version_zero(self, ds: tw.LanceDataset) -> None:
        ds.insert({"id": [9], "s": ["z"]})
        metadata = ds.checkout_version(1).get_fragment(0).delete("id = 3")  # type: ignore[union-attr]
        delete = tw.LanceOperation.Delete([metadata], [], "id = 3")  # type: ignore[list-item]
        for target in (ds, ds.uri):
            with pytest.raises(InvalidRequest, match="at least 1"):
                tw.LanceDataset.commit(target, delete, read_version=0)
            with pytest.raises(InvalidRequest, match="at least 1"):
                tw.LanceDataset.commit(target, tw.Transaction(0, delete))
        assert (ds.latest_version, tw.dataset(ds.uri).count_rows()) == (2, 4)
        assert tw.LanceDataset.commit(ds.uri, tw.LanceOperation.Restore(1)).version == 3

    def test_metadata(self, ds: tw.LanceDataset) -> None:
        wrong: list[Any] = [None, [("a", "b")], {"a": 1}, {1: "a"}]
        for update in (ds.update_config, ds.update_metadata, ds.update_schema_metadata):
            for values in wrong:
                with pytest.raises(InvalidRequest):
                    update(values)
        for values in ({"id": None}, {"id": {"k": 1}}, {0: {"k": "v"}}, None):
            with pytest.raises(InvalidRequest):
                ds.update_field_metadata(values)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            ds.delete_config_keys("ab")
        assert ds.latest_version == 1

    @pytest.mark.parametrize("predicate", [None, 3, True])
    def test_deleting(self, ds: tw.LanceDataset, predicate: Any) -> None:
        with pytest.raises(InvalidRequest):
            ds.get_fragment(0).delete(predicate)  # type: ignore[union-attr]

    @pytest.mark.parametrize("offsets", [[1.5], ["x"], None, 3, [99]])
    def test_deleting_rows(self, ds: tw.LanceDataset, offsets: Any) -> None:
        with pytest.raises(InvalidRequest):
            ds.get_fragment(0).delete_rows(offsets)  # type: ignore[union-attr]


def test_transactions_newest_first(ds: tw.LanceDataset) -> None:
    ds.insert({"id": [9], "s": ["z"]})
    assert [t.read_version for t in ds.get_transactions()] == [1, 0]  # type: ignore[union-attr]
    assert (len(ds.get_transactions(1)), ds.get_transactions(0)) == (1, [])


def test_a_lock_that_fails_takes_the_files_with_it(tmp_path: Path) -> None:
    def lock(version: int) -> Any:
        raise RuntimeError("no lock today")

    with pytest.raises(RuntimeError, match="no lock"):
        tw.write_dataset({"id": [1]}, tmp_path / "t.lance", commit_lock=lock)
    assert list(tmp_path.rglob("*.lance/data/*")) == []


def test_a_table_with_a_type_that_we_do_not_know_is_opened() -> None:
    """Versions and counts need no types; whoever reads the column, by C++ too, is told."""
    store = open_store("memory://unknown-type")
    tw.write_dataset({"id": [1, 2], "q": [3, 4]}, "memory://unknown-type")
    path = manifest_path(1)
    file = decode_manifest_file(store.get(path), path)
    fields = tuple(
        replace(field, logical_type="quaternion") if field.name == "q" else field
        for field in file.manifest.schema.fields
    )
    store.put(path, encode_manifest_file(replace(file.manifest, schema=Schema(fields=fields)), b""))
    ds = tw.dataset("memory://unknown-type")
    assert (ds.version, ds.count_rows()) == (1, 2)
    for read in (ds.to_table, pads.Scanner.from_dataset(ds).to_table):
        with pytest.raises(UnsupportedFeature, match="quaternion"):
            read()
