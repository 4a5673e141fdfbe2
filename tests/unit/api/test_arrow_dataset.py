"""The verbs of pyarrow's datasets."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, UnsupportedFeature


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset({"id": [3, 1, 2], "s": ["c", "a", None]}, f"memory://{uuid.uuid4()}", max_rows_per_file=2)


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


def test_an_insert_moves_what_arrow_sees(tmp_path: Path) -> None:
    """The rows of the new version, and the default options that Arrow's own scanner does not know."""
    tw.write_dataset({"id": [1, 2, 3]}, tmp_path / "t")
    plain = tw.dataset(tmp_path / "t")
    with_ids = tw.dataset(tmp_path / "t", default_scan_options={"with_row_id": True})
    for dataset in (plain, with_ids):
        dataset.insert(pa.table({"id": [4]}))
    assert pads.Scanner.from_dataset(plain).to_table()["id"].to_pylist() == [1, 2, 3, 4]
    with pytest.raises(UnsupportedFeature, match="with_row_id"):
        pads.Scanner.from_dataset(with_ids).to_table()
    assert with_ids.to_table().column_names == ["id", "_rowid"]
