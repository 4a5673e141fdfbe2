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
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, StorageError, TablewrightError, UnsupportedFeature
from tablewright.format.envelope import decode_manifest_file, encode_manifest_file
from tablewright.format.naming import manifest_path
from tablewright.format.schema import Schema
from tablewright.storage import open_store


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [3, 1, 2], "s": ["c", "a", None]}, f"memory://{uuid.uuid4()}", max_rows_per_file=2)


class TestDrop:
    def test_a_table_goes_with_everything(self, tmp_path: Path) -> None:
        place = tmp_path / "t.lance"
        tw.write_dataset({"id": [1]}, place)
        tw.LanceDataset.drop(place)
        assert not place.exists() or list(place.rglob("*")) == []

    def test_a_directory_that_is_no_table_is_left_alone(self, tmp_path: Path) -> None:
        precious = tmp_path / "sub" / "precious"
        precious.parent.mkdir()
        precious.write_text("mine")
        with pytest.raises(InvalidRequest, match="Refusing to drop"):
            tw.LanceDataset.drop(tmp_path, ignore_not_found=True)
        assert precious.read_text() == "mine"

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="Not found"):
            tw.LanceDataset.drop(tmp_path / "nowhere")
        tw.LanceDataset.drop(tmp_path / "nowhere", ignore_not_found=True)

    @pytest.mark.parametrize("wrong", [None, 3, ""])
    def test_what_is_no_address(self, wrong: Any) -> None:
        with pytest.raises(TablewrightError):
            tw.LanceDataset.drop(wrong)


class TestPyarrowsVerbs:
    def test_filter_sort_and_join(self, ds: tw.LanceDataset) -> None:
        assert ds.filter(pc.field("id") > 1).to_table()["id"].to_pylist() == [3, 2]
        assert ds.sort_by("id").to_table()["id"].to_pylist() == [1, 2, 3]
        right = pa.table({"id": [1], "n": [10]})
        for other in (right, pads.dataset(right)):
            assert ds.join(other, "id", join_type="inner").to_table().to_pylist() == [{"id": 1, "s": "a", "n": 10}]

    def test_their_cpp_side_reads_the_version(self, ds: tw.LanceDataset, tmp_path: Path) -> None:
        scan = pads.Scanner.from_dataset(ds, filter=pc.field("id") > 1)
        assert scan.to_table()["id"].to_pylist() == [3, 2]
        ds.insert({"id": [9], "s": ["z"]})
        assert scan.to_table()["id"].to_pylist() == [3, 2]
        assert pads.Scanner.from_dataset(ds).count_rows() == 4
        pads.write_dataset(ds, tmp_path / "x", format="parquet")
        written = pads.dataset(tmp_path / "x").to_table()["id"].to_pylist()
        assert sorted(written) == [1, 2, 3, 9]  # pyarrow's writer keeps no order

    def test_it_reads_a_large_table_in_parts(self, tmp_path: Path) -> None:
        rows = pa.table({"id": range(300_000), "kind": pa.array(["a", "b"] * 150_000).dictionary_encode()})
        ds = tw.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=70_000)
        ds.delete("id % 1000 = 7")
        assert len(list(pads.Dataset.get_fragments(ds))) == 3
        assert pads.Scanner.from_dataset(ds).to_table().equals(ds.to_table())

    def test_what_it_can_not_hold_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tablewright.api.arrow_dataset._PART_BYTES_MAX", 100)
        ds = tw.write_dataset({"id": range(100)}, tmp_path / "t.lance")
        with pytest.raises(UnsupportedFeature, match=r"too large for pyarrow's C\+\+ scanner.*to_reader"):
            pads.Scanner.from_dataset(ds).to_table()

    def test_options_of_theirs_are_hints(self, ds: tw.LanceDataset) -> None:
        assert ds.to_table(use_threads=False, cache_metadata=True).num_rows == 3
        assert ds.scanner(filter="id > 1", use_threads=True).to_table().num_rows == 2

    def test_fragments_take_their_arguments(self, tmp_path: Path) -> None:
        ds = tw.write_dataset({"id": [3, 1, 2], "s": ["c", "a", "b"]}, tmp_path / "t.lance")
        fragment = ds.get_fragments(pc.field("id") > 100)[0]
        assert fragment.scanner(ds.schema, columns=["id"], filter=pc.field("id") > 1).to_table().num_rows == 2
        assert fragment.scanner(["id"], "id > 1").to_table().to_pydict() == {"id": [3, 2]}
        for wrong in ((pa.schema([("x", pa.int8())]),), (["id"], "id > 1", 3)):
            with pytest.raises(InvalidRequest):
                fragment.scanner(*wrong)
        with pytest.raises(InvalidRequest, match="takes a pyarrow Expression"):
            ds.get_fragments("id > 1")


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


class TestSql:
    @pytest.mark.parametrize(
        "query", ["drop table dataset", "create table x as select 1", "copy dataset to '/tmp/never.csv' stored as csv"]
    )
    def test_only_queries_run(self, ds: tw.LanceDataset, query: str) -> None:
        with pytest.raises(InvalidRequest):
            ds.sql(query).build().to_batch_records()

    def test_errors_while_it_runs_are_ours(self, ds: tw.LanceDataset) -> None:
        query = ds.sql("select id / (id - 1) from dataset").build()
        with pytest.raises(InvalidRequest, match="Columns of dataset: id, s"):
            query.to_batch_records()
        with pytest.raises((InvalidRequest, pa.ArrowException)):
            query.to_stream_reader().read_all()

    def test_streams(self, ds: tw.LanceDataset) -> None:
        reader = ds.sql("select id from t where s is not null order by id").table_name("t").build().to_stream_reader()
        assert reader.read_all().to_pydict() == {"id": [1, 3]}


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
