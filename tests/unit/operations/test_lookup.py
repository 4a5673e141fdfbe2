"""Lookups of few values return what the scan returns, and are kept for one version only."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.config import cache_stats
from tablewright.api.pinned import table_of
from tablewright.cache import process_cache
from tablewright.data.encoder import DataFileReader
from tablewright.data.idle import process_readers
from tablewright.errors import InvalidRequest
from tablewright.operations import lookup
from tablewright.operations.lookup import lookup_table
from tablewright.operations.scan import ScanOptions
from tablewright.storage.identity import SETTLED_NS

ROWS = 30_000


def _kept() -> int:
    found = cache_stats().kinds.get("lookups")
    return 0 if found is None else found.hits


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def ds(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "tag": [f"t{n % 7500}" for n in range(ROWS)],
            "c": pa.array([n % 3 for n in range(ROWS)], pa.uint8()),
            "text": [f"row {n}" for n in range(ROWS)],
        }
    )
    made = tw.write_dataset(table, tmp_path / "t", max_rows_per_file=10_000, enable_stable_row_ids=request.param)
    made.create_scalar_index("id", "BTREE")
    made.create_scalar_index("tag", "BTREE")
    made.create_scalar_index("c", "BITMAP")
    return made


def _both(ds: Any, filter: str, **options: Any) -> list[dict[str, Any]]:
    """The rows by a lookup, which were compared with those of a scan."""
    scanned = ds.to_table(filter=filter, use_scalar_index=False, **options)
    found = [ds.to_table(filter=filter, use_scalar_index=True, **options) for _ in range(2)]
    for each in found:
        assert each.schema == scanned.schema and each.to_pylist() == scanned.to_pylist()
    counted = [ds.count_rows(filter, use_scalar_index=True) for _ in range(2)]
    assert counted == [scanned.num_rows] * 2
    return found[0].to_pylist()


def test_other_literals_use_what_was_kept(ds: Any) -> None:
    ds.to_table(filter="id = 3", columns=["text"], use_scalar_index=True)
    before = _kept()
    found = [
        ds.to_table(filter=f" ID={n} ".replace("ID", "id"), columns=["text"], use_scalar_index=True).to_pylist()
        for n in (0, 9_999, 10_000, 29_999, ROWS, -1)
    ]
    assert found == [[{"text": f"row {n}"}] for n in (0, 9_999, 10_000, 29_999)] + [[], []]
    assert _kept() - before == len(found)


@pytest.mark.parametrize(
    "filter",
    [
        "id = 12345",
        "id = -5",
        "ID = 007",
        "tag = 't17'",
        "tag = ''",
        "c = 2",
        "c = 5",
        "c = 300",
        "c = -1",
        "id IN (29999, 3, 12345, 3, -1)",
        "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)",
        "id >= 9995 AND id < 10005",
        "id > 9995 AND id <= 10005",
        "id BETWEEN 19990 AND 20010",
        "id BETWEEN 20010 AND 19990",
        "id > 29990",
        "id < 3",
        "id < -3",
        "id > 5000",
        "id >= 4090 AND id < 4100",
        "tag IN ('t3', 't4', 'none')",
        "tag >= 't17' AND tag < 't170'",
        "tag BETWEEN 't99' AND 't991'",
        "c IN (1, 5)",
        "c IN (5, 300)",
        "c > 1",
        "c < 300",
        "c BETWEEN 3 AND 9",
    ],
)
def test_lookups_equal_scans(ds: Any, filter: str) -> None:
    ds.to_table(filter="id = 1", use_scalar_index=True)
    _both(ds, filter)
    _both(ds, filter, columns=["text", "id"])
    _both(ds, filter, columns=["id", "_rowoffset"], with_row_id=True, with_row_address=True)


def test_lists_and_ranges_use_what_was_kept(ds: Any) -> None:
    for filter in ("id = 3", "id >= 3 AND id < 5"):
        ds.to_table(filter=filter, use_scalar_index=True)
    before = _kept()
    found = [
        [row["id"] for row in ds.to_table(filter=filter, use_scalar_index=True).to_pylist()]
        for filter in ("id IN (29999, 7, 12345)", "id >= 9999 AND id < 10002", "id BETWEEN 5 AND 6")
    ]
    assert found == [[7, 12345, 29999], [9999, 10000, 10001], [5, 6]]
    assert _kept() - before == 2, "the range with other operators is another shape"


def test_sets_of_a_bitmap_are_not_mixed_up(tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"c": [n % 1000 for n in range(ROWS)], "n": range(ROWS)}), tmp_path / "t")
    ds.create_scalar_index("c", "BITMAP")
    time.sleep(2 * SETTLED_NS / 1e9)
    for _ in range(2):
        for filter in ("c IN (3, 5)", "c = 3", "c IN (5, 3, 3, 7)", "c IN (5)", "c IN (1000, 2000)"):
            _both(ds, filter)


def test_a_range_of_many_rows_is_scanned(ds: Any) -> None:
    assert len(_both(ds, "id >= 100 AND id < 20000")) == 19_900
    assert len(_both(ds, "id >= 100 AND id < 613")) == 513
    assert len(_both(ds, "id >= 100 AND id < 612")) == 512


def test_rows_of_many_fragments(ds: Any) -> None:
    """Numbers are read together, whichever fragments they are in; other columns by the codec. Some rows are deleted."""
    ds.delete("id % 4000 = 17")
    ds.update({"c": "2"}, where="id % 10000 = 23")
    ids = ", ".join(str(id) for id in range(17, ROWS, 1000))
    for columns in (["id"], ["c", "id"], ["id", "text"], {"twice": "id * 2"}, [], None):
        for options in ({}, {"with_row_id": True}, {"with_row_address": True, "with_row_id": True}):
            for filter in (f"id IN ({ids})", "id BETWEEN 9000 AND 9300", f"id IN ({ids}, 23, 10023)"):
                _both(ds, filter, columns=columns, **options)


def test_a_version_that_the_index_does_not_cover_is_known_as_such(ds: Any) -> None:
    ds.insert(pa.table({"id": [ROWS], "tag": ["new"], "c": pa.array([1], pa.uint8()), "text": ["new"]}))
    before = _kept()
    for number in (5, ROWS, 6):
        assert [row["id"] for row in _both(ds, f"id = {number}")] == [number]
    assert _kept() > before
    ds.optimize.optimize_indices()
    assert [row["id"] for row in _both(ds, f"id IN (5, {ROWS})")] == [5, ROWS]


def test_small_tables_are_scanned_unless_the_index_is_asked_for(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": [1, 2, 3]}, tmp_path / "small")
    ds.create_scalar_index("id", "BTREE")
    before = _kept()
    assert ds.to_table(filter="id = 2").to_pylist() == ds.to_table(filter="id = 2").to_pylist() == [{"id": 2}]
    assert ds.count_rows("id > 1") == 2 and "Index: not used" in ds.scanner(filter="id = 2").explain_plan()
    assert ds.count_rows("id > 1", use_scalar_index=True) == 2
    assert _kept() > before


def test_a_column_that_changes_its_type_is_looked_up_in_its_new_one(ds: Any) -> None:
    assert len(_both(ds, "id IN (3, 70000)")) == 1
    ds.drop_index("id_idx")
    ds.alter_columns({"path": "id", "data_type": pa.int32()})
    ds.create_scalar_index("id", "BTREE")
    assert len(_both(ds, "id IN (3, 70000)")) == 1
    assert _both(ds, "id = 3000000000") == []


def test_deleted_and_moved_rows(ds: Any) -> None:
    assert _both(ds, "id = 7") and _both(ds, "tag = 't7'") and len(_both(ds, "id BETWEEN 6 AND 8")) == 3
    ds.delete("id = 7")
    assert _both(ds, "id = 7") == []
    assert [row["id"] for row in _both(ds, "id BETWEEN 6 AND 8")] == [6, 8]
    assert [row["id"] for row in _both(ds, "id IN (6, 7, 8)")] == [6, 8]
    assert [row["id"] for row in _both(ds, "tag = 't7'")] == [7507, 15007, 22507]
    ds.update({"text": "'new'"}, where="id = 8")
    assert [row["text"] for row in _both(ds, "id = 8")] == ["new"]
    ds.insert(ds.to_table(filter="id = 9"))
    assert len(_both(ds, "id = 9")) == 2  # a fragment that the index does not cover
    ds.optimize.compact_files()
    assert len(_both(ds, "id = 9")) == 2
    ds.optimize.optimize_indices()
    assert len(_both(ds, "id = 9")) == 2 and _both(ds, "id = 7") == []


def test_an_older_version_is_not_mixed_up(ds: Any) -> None:
    _both(ds, "id = 7")
    version = ds.version
    ds.delete("id = 7")
    assert _both(ds, "id = 7") == []
    assert len(_both(ds.checkout_version(version), "id = 7")) == 1


def test_options_and_errors_are_those_of_the_scan(ds: Any) -> None:
    _both(ds, "tag = 't5'")
    assert ds.to_table(filter="tag = 't5'", limit=2, use_scalar_index=True).num_rows == 2
    assert ds.to_table(filter="tag = 't5'", fragments=[ds.get_fragments()[1]]).num_rows == 1
    assert ds.to_table(filter="tag = 't5'", columns={"n": "id + 1"}, use_scalar_index=True).num_rows == 4
    for filter in ("nothing = 5", "nothing IN (5, 6)", "nothing < 5", 'tag = "t5'):
        with pytest.raises(InvalidRequest):
            ds.to_table(filter=filter)
    with pytest.raises(InvalidRequest):
        ds.to_table(filter="id = 5", columns=["nothing"])


def test_a_lookup_of_numbers_opens_four_files_and_none_by_the_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lookup and the pages of the index, these twice, and the data file; nothing was cached."""
    tw.write_dataset(pa.table({"id": list(range(50_000)), "v": [1.5] * 50_000}), tmp_path)
    tw.dataset(tmp_path).create_scalar_index("id", "BTREE")
    time.sleep(2 * SETTLED_NS / 1e9)
    ds = tw.dataset(tmp_path)
    process_cache().clear()
    process_readers.clear()
    opened: list[str] = []
    system_open = os.open
    monkeypatch.setattr(os, "open", lambda path, *how: opened.append(Path(path).name) or system_open(path, *how))
    monkeypatch.setattr(DataFileReader, "__init__", None)
    assert ds.to_table(filter="id = 777", use_scalar_index=True).to_pylist() == [{"id": 777, "v": 1.5}]
    (data_file,) = (tmp_path / "data").iterdir()
    assert opened == ["page_lookup.lance", "page_data.lance", "page_data.lance", data_file.name]
    opened.clear()
    assert ds.count_rows("id = 778", use_scalar_index=True) == 1
    assert opened == []


@pytest.mark.parametrize("order", ["ascending", "scattered"])
def test_wide_rows_come_in_small_batches(tmp_path: Path, order: str) -> None:
    """Texts of a batch have 2 GiB at most, and a row may have many megabytes."""
    numbers = np.arange(9000) if order == "ascending" else np.random.default_rng(1).permutation(9000)
    made = tw.write_dataset(pa.table({"id": numbers, "text": [f"row {n}" for n in numbers]}), tmp_path)
    made.create_scalar_index("id", "BTREE")
    found = made.to_table(filter="id BETWEEN 100 AND 399", columns=["text"], use_scalar_index=True)
    assert [len(chunk) for chunk in found["text"].chunks] == [64, 64, 64, 64, 44]
    assert len(_both(made, "id BETWEEN 100 AND 399", with_row_id=True)) == 300


def test_many_bytes_are_left_to_a_scan(ds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    filter, columns = "id BETWEEN 9900 AND 10199", ["id", "text"]
    snapshot, options = table_of(ds).snapshot, ScanOptions(columns=columns, filter=filter, use_scalar_index=True)
    found = lookup_table(snapshot, options)
    assert found is not None and found.num_rows == 300
    monkeypatch.setattr(lookup, "_BYTES_MAX", 1000)
    assert lookup_table(snapshot, options) is None
    assert ds.to_table(filter=filter, columns=columns, use_scalar_index=True).equals(found)


def test_rows_of_many_fragments_need_few_open_files(tmp_path: Path) -> None:
    """Files of 16 fragments are open at a time, and some that wait for the next read."""
    numbers = np.random.default_rng(1).permutation(320_000)
    data = pa.table({"id": numbers, "s": pa.array(numbers).cast(pa.string())})
    made = tw.write_dataset(data, tmp_path, max_rows_per_file=4000)
    for name, end in (("s2", "x"), ("s3", "y")):
        made.add_columns({name: f"concat(s, '{end}')"})
    made.create_scalar_index("id", "BTREE")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 180, hard))
    try:
        found = tw.dataset(tmp_path).to_table(filter="id BETWEEN 1000 AND 1399", use_scalar_index=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found.num_rows == 400
    assert found["s3"].to_pylist() == [f"{n}y" for n in found["id"].to_pylist()]
