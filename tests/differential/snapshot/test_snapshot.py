"""Versions that pylance wrote: rows, deletions, row ids, times, shallow clones."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tablewright.errors import CorruptTable, VersionNotFound
from tablewright.format.fragment import DeletionFileType
from tablewright.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


@pytest.fixture(params=[True, False], ids=["V2", "V1"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Version 4: one fragment without deletions, one with an array of them, one with a bitmap."""
    data = pa.table({"a": range(30_000)})
    ds = lance.write_dataset(
        data, str(tmp_path / "t"), max_rows_per_file=10_000, enable_v2_manifest_paths=request.param
    )
    ds.delete("a >= 10000 and a % 1000 = 7")
    ds.delete("a >= 23000")
    ds.delete("a = 20000")
    return ds


@pytest.fixture
def world(ds: lance.LanceDataset) -> World:
    return World(open_store(ds.uri))


def test_latest_and_numbered(ds: lance.LanceDataset, world: World) -> None:
    snapshot = open_snapshot(world)
    assert snapshot.version == ds.version == 4
    assert snapshot.manifest.live_rows == ds.count_rows()
    assert snapshot.schema.to_arrow() == ds.schema
    assert snapshot.branch is None
    assert snapshot.location.uri == ds.uri
    for version in range(1, 5):
        opened = open_snapshot(world, version)
        assert opened.version == version
        assert opened.manifest.live_rows == ds.checkout_version(version).count_rows()


def test_deletion_vectors(ds: lance.LanceDataset, world: World) -> None:
    snapshot = open_snapshot(world)
    kinds = [None if fragment.deletion is None else fragment.deletion.file_type for fragment in snapshot.fragments]
    assert kinds == [None, DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP]
    assert snapshot.deletion_vector(snapshot.fragments[0]) is None
    for position, fragment in enumerate(snapshot.fragments):
        vector = snapshot.deletion_vector(fragment)
        table = ds.get_fragment(fragment.id).to_table()
        live = range(10_000) if vector is None else vector.absent(10_000)
        assert [position * 10_000 + offset for offset in live] == table["a"].to_pylist()
        assert snapshot.deletion_vector(fragment) is vector


def test_row_ids(tmp_path: Path) -> None:
    uri = str(tmp_path / "stable")
    ds = lance.write_dataset(pa.table({"a": range(10)}), uri, max_rows_per_file=4, enable_stable_row_ids=True)
    snapshot = open_snapshot(World(open_store(uri)))
    ids = [snapshot.row_ids(fragment) for fragment in snapshot.fragments]
    assert [value for sequence in ids if sequence is not None for value in sequence.to_numpy()] == ds.to_table(
        with_row_id=True
    )["_rowid"].to_pylist()
    assert snapshot.row_ids(snapshot.fragments[1]) is ids[1]
    assert snapshot.row_ids(replace(snapshot.fragments[0], row_ids=None)) is None
    with pytest.raises(CorruptTable):
        snapshot.row_ids(replace(snapshot.fragments[0], row_ids=b"\xff\xff"))


def test_time_travel(ds: lance.LanceDataset, world: World) -> None:
    for version in ds.versions():
        for delta_us in (-5, 5):  # pylance rounds its times, so on the very microsecond it may differ from itself
            asof = version["timestamp"] + timedelta(microseconds=delta_us)
            asof_ns = round(asof.timestamp() * 1_000_000) * 1000
            try:
                expected = lance.dataset(ds.uri, asof=asof).version
            except ValueError:
                with pytest.raises(VersionNotFound, match="earlier than the first version of this dataset"):
                    open_snapshot(world, asof_ns=asof_ns)
            else:
                assert open_snapshot(world, asof_ns=asof_ns).version == expected
    assert open_snapshot(world, asof_ns=2**62).version == 4


def test_shallow_clones_of_pylance(ds: lance.LanceDataset, tmp_path: Path) -> None:
    clone = ds.shallow_clone(str(tmp_path / "clone"), 4)
    snapshot = open_snapshot(World(open_store(tmp_path / "clone")))
    assert snapshot.manifest.live_rows == clone.count_rows()
    store, path = snapshot.data_place(snapshot.fragments[0].files[0])
    assert store.location.uri == ds.uri
    assert store.head(path).size == snapshot.fragments[0].files[0].file_size_bytes
    vector = snapshot.deletion_vector(snapshot.fragments[1])
    assert vector is not None and len(vector) == 10
