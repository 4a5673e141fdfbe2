"""Health of tables whose figures are known by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import StorageError
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    FragmentList,
    encode_fragment,
)
from tablewright.format.manifest import Manifest
from tablewright.format.naming import manifest_path
from tablewright.format.schema import Schema
from tablewright.format.wire import encode_varint
from tablewright.operations.health import HealthOptions, measure_health
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.testing.faulty_store import FailBefore, FaultyStore, at_call
from tablewright.testing.worlds import memory_world
from tablewright.world import World

FILE = 10_000


def _sizes(path: Path, directory: str) -> int:
    return sum(file.stat().st_size for file in (path / directory).rglob("*") if file.is_file())


def test_rows_and_bytes_of_deletions(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": np.arange(30_000)}, tmp_path, max_rows_per_file=10_000)
    ds.delete("id < 1500")
    health = ds.health(sample=False)
    assert (health.rows.live, health.rows.deleted, health.rows.deleted_share) == (28_500, 1500, 0.05)
    assert health.bytes.data == _sizes(tmp_path, "data")
    assert health.bytes.deletion_files == _sizes(tmp_path, "_deletions")
    first = health.fragments.to_pylist()[0]
    assert first["deleted_share"] == 0.15
    assert first["dead_bytes"] == health.bytes.dead_rows == round(0.15 * first["data_bytes"])
    assert health.bytes.dead_columns == 0
    assert (health.shape.count, health.shape.small, health.shape.with_deletions, health.shape.over_limit) == (
        3,
        3,
        1,
        1,
    )
    assert health.versions.bytes_on_disk == _sizes(tmp_path, ".")
    assert health.bytes.missing_files == 0


@pytest.mark.parametrize(("workload", "expected"), [("read", ("compact",)), ("mixed", ()), ("write", ())])
def test_the_workload_sets_the_limit(workload: str, expected: tuple[str, ...]) -> None:
    ds = tw.write_dataset({"id": range(1000)}, f"memory://health-workload-{workload}", mode="overwrite")
    ds.delete("id < 80")
    health = ds.health(workload=workload, sample=False)
    assert tuple(action for action in health.actions() if action == "compact") == expected
    assert health.deletion_limit == {"read": 0.05, "mixed": 0.1, "write": 0.2}[workload]


def test_a_share_at_the_limit_is_not_over_it() -> None:
    ds = tw.write_dataset({"id": range(1000)}, "memory://health-limit", mode="overwrite")
    ds.delete("id < 100")
    assert ds.health(sample=False).shape.over_limit == 0


def test_columns_that_were_replaced_or_dropped_are_dead(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(4096), "a": np.random.default_rng(1).random(4096), "b": np.arange(4096) * 3.0})
    ds = tw.write_dataset(rows, tmp_path)
    whole = ds.stats.data_stats().fields
    ds.update({"a": "a + 1"}, write_mode="rewrite_columns")
    health = ds.health(sample=False)
    assert health.bytes.dead_columns == whole[1].bytes_on_disk
    assert (health.bytes.columns_dead, health.bytes.columns_measured) == (1, 1)
    ds.drop_columns(["b"])
    assert ds.health(sample=False).bytes.dead_columns == whole[1].bytes_on_disk + whole[2].bytes_on_disk
    ds.delete("id < 2048")
    health = ds.health(sample=False)
    live = health.bytes.data - health.bytes.dead_columns
    assert health.bytes.dead_rows == round(live / 2)
    assert "compact" in health.actions()


def test_dead_columns_of_many_files_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.operations.health.dead_columns._FILES_MAX", 3)
    rows = pa.table({"id": np.arange(1000), "b": np.arange(1000) * 3.0})
    ds = tw.write_dataset(rows, tmp_path, max_rows_per_file=100)
    dead = ds.stats.data_stats().fields[1].bytes_on_disk
    ds.drop_columns(["b"])
    health = ds.health(sample=False)
    assert (health.bytes.columns_dead, health.bytes.columns_measured) == (10, 3)
    assert health.bytes.dead_columns == pytest.approx(dead, rel=0.05)
    assert "measured in 3 of 10 files" in str(health)


def test_an_empty_table() -> None:
    schema = pa.schema([("id", pa.int64())])
    ds = tw.write_dataset(schema.empty_table(), "memory://health-empty", mode="overwrite", schema=schema)
    health = ds.health()
    assert (health.rows.live, health.bytes.data, health.shape.count, health.fragments.num_rows) == (0, 0, 0, 0)
    assert (health.rows.deleted_share, health.bytes.dead_share, health.bytes.deletion_share) == (0, 0, 0)
    assert health.read_overhead is None
    assert health.actions() == ()
    json.dumps(health.to_dict())


def test_all_rows_deleted() -> None:
    ds = tw.write_dataset({"id": [1, 2]}, "memory://health-all", mode="overwrite")
    ds.delete("true")
    assert ds.health().rows.live == 0


def test_small_fragments_against_the_target() -> None:
    uri = "memory://health-small"
    ds = tw.write_dataset({"id": range(120)}, uri, mode="overwrite", max_rows_per_file=10)
    assert ds.health(sample=False).shape.small == 12
    assert ds.health(sample=False, target_rows_per_fragment=10).shape.small == 0
    assert ds.health(sample=False).actions() == ("compact",)
    assert ds.health(sample=False, workload="write").actions() == ()
    ds.update_config({"lance.compaction.target_rows_per_fragment": "10"})
    assert ds.health(sample=False).shape.target_rows == 10


def test_a_size_that_is_not_recorded_is_listed(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(100)}, tmp_path)
    snapshot = table_of(ds).snapshot
    (fragment,) = snapshot.fragments
    unknown = fragment.with_files(tuple(replace(file, file_size_bytes=0) for file in fragment.files))
    manifest = replace(snapshot.manifest, version=2, fragments=FragmentList.of([unknown]))
    open_store(str(tmp_path)).put(manifest_path(2), encode_manifest_file(manifest, b""))
    assert tw.dataset(tmp_path).health(sample=False).bytes.data == _sizes(tmp_path, "data")


def test_missing_files_are_counted(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(100), "b": range(100)}, tmp_path, max_rows_per_file=50)
    ds.drop_columns(["b"])
    next((tmp_path / "data").iterdir()).unlink()
    health = tw.dataset(tmp_path).health()
    assert health.bytes.missing_files == 1
    assert "missing files" in str(health)


def test_an_older_version_is_measured_as_it_is() -> None:
    ds = tw.write_dataset({"id": range(100)}, "memory://health-older", mode="overwrite")
    first = ds.version
    ds.delete("id < 50")
    health = ds.checkout_version(first).health(sample=False)
    assert (health.version, health.rows.deleted, health.versions.latest) == (first, 0, ds.version)


def test_stable_row_ids_fill_the_manifest() -> None:
    ds = tw.write_dataset({"id": range(2000)}, "memory://health-ids", mode="overwrite", enable_stable_row_ids=True)
    ds.update({"id": "id"}, where="id % 2 = 0", write_mode="rewrite_columns")
    manifest = ds.health(sample=False).manifest
    assert manifest.version_sequences > 0
    assert manifest.row_ids > 0


def _fragment(number: int) -> Fragment:
    """Two data files, one of them with a dead column, and up to 19 deleted rows."""
    kinds: dict[str, Any] = {"file_major_version": 2, "file_minor_version": 2, "file_size_bytes": FILE}
    deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=1, num_deleted_rows=number % 20)
    return Fragment(
        id=number,
        files=(
            DataFile(path=f"a{number:09d}.lance", fields=(0, -2), column_indices=(0, 1), **kinds),
            DataFile(path=f"b{number:09d}.lance", fields=(1,), column_indices=(0,), **kinds),
        ),
        physical_rows=100,
        deletion=deletion if number % 20 else None,
    )


def _many(count: int, versions: int) -> World:
    """A table of manifests alone. Fragments are made from twenty samples, because encoding each takes its time."""
    first = 1 << 14
    samples = [encode_fragment(_fragment(first + number)) for number in range(20)]
    raw = []
    for number in range(first, first + count):
        sample = first + (number - first) % 20
        data = samples[sample - first].replace(b"%09d.lance" % sample, b"%09d.lance" % number)
        raw.append(data.replace(encode_varint(sample), encode_varint(number), 1))
    fragments = FragmentList(raw)
    assert fragments[count - 1] == replace(
        _fragment(first + count - 1), deletion=_fragment(first + (count - 1) % 20).deletion
    )
    world = memory_world()
    schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("x", pa.string())]))
    for version in range(1, versions + 1):
        manifest = Manifest(
            schema=schema, fragments=fragments, version=version, max_fragment_id=first + count, timestamp_ns=10**18
        )
        world.store.put(manifest_path(version), encode_manifest_file(manifest, b""))
    return world


def test_a_hundred_thousand_fragments_take_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _many(100_000, 3)
    store = FaultyStore(world.store)
    snapshot = open_snapshot(replace(world, store=store))
    before = len(store.calls)
    monkeypatch.setattr("tablewright.format.fragment.sequence.decode_fragment", None)
    health = measure_health(snapshot, HealthOptions(sample=False, versions=2))
    calls = [call.method for call in store.calls[before:]]
    assert calls.count("get") == 2
    assert calls.count("list") <= 10
    assert len(calls) < 300  # 256 footers are tried, and none is there
    assert health.shape.count == 100_000
    assert health.rows.deleted == 5000 * sum(range(20))
    assert health.bytes.data == 2 * FILE * 100_000
    assert health.bytes.missing_files == 295_000
    assert (health.bytes.columns_dead, health.bytes.columns_measured) == (100_000, 0)
    assert [growth.rows_added for growth in health.growth] == [0, 0]
    assert len(str(health).splitlines()) < 40
    assert health.fragments.num_rows == 100_000


def test_a_store_that_fails_at_any_call_is_a_storage_error() -> None:
    world = memory_world()
    ds = tw.write_dataset({"id": range(40), "x": range(40)}, world, max_rows_per_file=20)
    ds.tags.create("first", 1)
    ds.delete("id < 9")
    ds.create_branch("dev")
    ds.drop_columns(["x"])
    store = FaultyStore(world.store)
    measure_health(open_snapshot(replace(world, store=store)), HealthOptions())
    count = len(store.calls)
    assert count > 10
    for number in range(count):
        faulty = FaultyStore(world.store, at_call(number, FailBefore()))
        try:
            health = measure_health(open_snapshot(replace(world, store=faulty)), HealthOptions())
        except StorageError:
            continue
        assert health.rows.live == 31
