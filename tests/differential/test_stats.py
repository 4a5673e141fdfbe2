"""``ds.stats``: the same keys and values as pylance's, on tables of both; and health of tables that pylance wrote."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.referee import lance, numbers, ours
from tests.unit.operations.statistics.test_display import CASES

GOLDEN = Path(__file__).parents[1] / "golden" / "lance-blob"
BLOBS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


def _same(left: Any, right: Any) -> bool:
    """Equal, floats up to the last digit: pylance reads JSON numbers with a rounding error."""
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-14)
    return bool(left == right)


def _fields(ds: Any) -> list[tuple[int, int]]:
    return [(field.id, field.bytes_on_disk) for field in ds.stats.data_stats().fields]


def _compare(uri: str | Path) -> Any:
    """Both libraries on the same table; returns our dataset."""
    mine, theirs = ours.dataset(str(uri)), lance.dataset(str(uri))
    for rows in (0, 1, 100, 1024):
        expected = theirs.stats.dataset_stats(rows)
        found = mine.stats.dataset_stats(max_rows_per_group=rows)
        assert {key: found[key] for key in expected} == expected
    assert _fields(mine) == _fields(theirs)
    for name in {index["name"] for index in mine.list_indices()}:
        found, expected = mine.stats.index_stats(name), theirs.stats.index_stats(name)
        assert list(found) == list(expected)
        assert _same(found, expected), (found, expected)
    return mine


def _nested(rows: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "s": pa.array([{"a": i, "b": {"x": str(i), "y": i / 2}} for i in range(rows)]),
            "l": pa.array([[{"p": i}] * (i % 3) for i in range(rows)]),
            "v": pa.array(np.arange(rows * 4, dtype="f4").reshape(rows, 4).tolist(), pa.list_(pa.float32(), 4)),
            "n": pa.array([None] * rows, pa.string()),
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", [lance, ours], ids=["pylance", "ours"])
def test_data_of_several_files_and_nested_columns(writer: Any, version: str, tmp_path: Path) -> None:
    ds = writer.write_dataset(_nested(500), str(tmp_path), max_rows_per_file=200, data_storage_version=version)
    _compare(tmp_path)
    ds.add_columns({"z": "id * 2"})
    ds.delete("id < 7")
    _compare(tmp_path)
    ds.drop_columns(["l", "s.a"])
    _compare(tmp_path)
    if version != "2.0":
        writer.dataset(str(tmp_path)).alter_columns({"path": "id", "data_type": pa.int32()})
        _compare(tmp_path)


@pytest.mark.parametrize("stable", [False, True])
def test_after_updates_in_place(stable: bool, tmp_path: Path) -> None:
    ds = ours.write_dataset(numbers(0, 500), str(tmp_path), max_rows_per_file=200, enable_stable_row_ids=stable)
    ds.update({"x": "x + 1"}, where="id > 3", write_mode="rewrite_columns")
    ds.update({"x": "x + 1"}, where="id = 3", write_mode="rewrite_rows")
    health = _compare(tmp_path).health(sample=False)
    on_disk = sum(size for _, size in _fields(lance.dataset(str(tmp_path))))
    assert health.bytes.data - health.bytes.dead_columns > on_disk  # live columns, and the ends of files


@pytest.mark.parametrize("name", BLOBS)
def test_blob_tables(name: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / name / "table", tmp_path / "table")
    health = _compare(tmp_path / "table").health()
    beside = sum(file.stat().st_size for file in (tmp_path / "table" / "data").rglob("*") if file.is_file())
    assert health.bytes.missing_files == 0
    assert health.bytes.data <= beside
    if health.versions.count == 1:
        assert health.bytes.data == beside


def test_an_empty_table(tmp_path: Path) -> None:
    lance.write_dataset(numbers(0, 0), str(tmp_path))
    assert _compare(tmp_path).health().rows.live == 0


def _indexed(path: Path, *, stable: bool) -> Any:
    rows = 600
    vectors = np.random.default_rng(7).random((rows, 8), np.float32)
    table = pa.table(
        {
            "id": pa.array(range(rows)),
            "k": pa.array([i % 7 for i in range(rows)]),
            "t": pa.array([f"word{i % 50} text {i}" for i in range(rows)]),
            "l": pa.array([[str(i % 5)] for i in range(rows)]),
            "v": pa.array(vectors.tolist(), pa.list_(pa.float32(), 8)),
        }
    )
    ds = lance.write_dataset(table, str(path), max_rows_per_file=300, enable_stable_row_ids=stable)
    scalar = {"id": ["BTREE", "ZONEMAP"], "k": ["BITMAP", "BLOOMFILTER"], "l": ["LABEL_LIST"]}
    scalar["t"] = ["INVERTED", "NGRAM"]
    for column, kinds in scalar.items():
        for kind in kinds:
            ds.create_scalar_index(column, kind, name=f"{column}_{kind}")
    for kind, metric in (("IVF_PQ", "cosine"), ("IVF_FLAT", "dot"), ("IVF_SQ", "l2"), ("IVF_HNSW_SQ", "l2")):
        options = {"num_sub_vectors": 2} if kind == "IVF_PQ" else {}
        ds.create_index("v", kind, metric=metric, num_partitions=2, name=kind, **options)
    return lance.write_dataset(table.slice(0, 50), str(path), mode="append")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_indices_of_every_kind(stable: bool, tmp_path: Path) -> None:
    ds = _indexed(tmp_path, stable=stable)
    ds.delete("id < 4")
    health = _compare(tmp_path).health()
    recorded = {each.name: each for each in ds.describe_indices()}
    for index in health.indices:
        assert index.bytes == recorded[index.name].total_size_bytes
        assert (index.indexed_rows, index.unindexed_rows) == (596, 46)
        stats = ds.stats.index_stats(index.name)
        assert index.indexed_rows == stats["num_indexed_rows"]
    assert health.actions() == ()
    read_heavy = ours.dataset(str(tmp_path)).health(workload="read", sample=False)
    assert read_heavy.actions() == ("compact", "optimize_indices")
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    ds = lance.dataset(str(tmp_path))
    ds.delete("id < 15")
    health = _compare(tmp_path).health()
    assert {index.segments for index in health.indices} == {2}
    assert {index.unindexed_rows for index in health.indices} == {0}


def test_indices_after_compaction_and_without_rows(tmp_path: Path) -> None:
    ds = lance.write_dataset(numbers(0, 100), str(tmp_path), max_rows_per_file=50)
    ds.create_scalar_index("id", "BTREE")
    ds.create_scalar_index("s", "BITMAP")
    ds.create_scalar_index("x", "BTREE", name="untrained", train=False)
    _compare(tmp_path)
    ds.optimize.compact_files()
    _compare(tmp_path)
    ds.delete("true")
    _compare(tmp_path)
    lance.write_dataset(numbers(0, 10), str(tmp_path), mode="append")
    _compare(tmp_path)


def test_bounds_of_every_type(tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array([value], kind) for number, (value, kind, _) in enumerate(CASES)}
    columns = {name: each for name, each in columns.items() if each.type not in (pa.large_binary(), pa.time32("s"))}
    ds = lance.write_dataset(pa.table(columns), str(tmp_path))
    made = 0
    for name in columns:
        try:
            ds.create_scalar_index(name, "BTREE")
        except (OSError, ValueError, TypeError, NotImplementedError):
            continue
        made += 1
    assert made > 15
    _compare(tmp_path)


def test_pages_of_nulls(tmp_path: Path) -> None:
    columns = {
        "half": pa.array([None] * 6000 + list(range(4000))),
        "none": pa.array([None] * 10_000, pa.int64()),
        "text": pa.array(["x" * (i % 9) for i in range(10_000)]),
    }
    table = pa.table(columns)
    ds = lance.write_dataset(table, str(tmp_path))
    for name in columns:
        ds.create_scalar_index(name, "BTREE")
    _compare(tmp_path)


@pytest.mark.parametrize("name", ["nope", "", 1, None], ids=repr)
def test_an_unknown_index(name: Any, tmp_path: Path) -> None:
    lance.write_dataset(numbers(0, 10), str(tmp_path))
    with pytest.raises((KeyError, TypeError)) as theirs:
        lance.dataset(str(tmp_path)).stats.index_stats(name)
    with pytest.raises(theirs.type):
        ours.dataset(str(tmp_path)).stats.index_stats(name)


def test_health_of_a_branch_and_of_tags_of_pylance(tmp_path: Path) -> None:
    ds = lance.write_dataset(numbers(0, 100), str(tmp_path))
    ds.tags.create("one", 1)
    ds.delete("id < 10")
    branch = ds.create_branch("dev")
    lance.write_dataset(numbers(0, 5), str(tmp_path), mode="overwrite")
    versions = ours.dataset(str(tmp_path)).health().versions
    assert (versions.kept, versions.tagged, versions.reclaimable) == (3, 1, ())
    mine = ours.dataset(str(tmp_path)).checkout_version(("dev", None))
    assert mine.health().rows.live == branch.count_rows() == 90
    assert {key: mine.stats.dataset_stats()[key] for key in ("num_deleted_rows", "num_fragments")} == {
        "num_deleted_rows": 10,
        "num_fragments": 1,
    }
    assert mine.stats.dataset_stats()["deletion_file_size_bytes"] > 0
