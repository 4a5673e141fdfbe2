"""Foreign indices on golden tables of pylance: rewritten addresses, rows that leave, and what stays as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.format.roaring import decode_bitmap
from tablewright.indices import foreign
from tablewright.indices.foreign import files
from tablewright.indices.foreign.inverted import NO_FRAGMENT
from tablewright.indices.query import Ids
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

GOLDEN = Path(__file__).parents[3] / "golden" / "lance"
VECTORS = ["ivf_flat", "ivf_pq", "ivf_sq"]
TEXTS = ["inverted_v1_positions", "inverted_v2", "inverted_v2_positions"]
NEW = "_indices/new"
Opened = Callable[[str], tuple[World, Snapshot, IndexMetadata]]


@pytest.fixture
def golden(tmp_path: Path) -> Opened:
    def opened(name: str) -> tuple[World, Snapshot, IndexMetadata]:
        shutil.copytree(GOLDEN / name / "table", tmp_path / name)
        world = World(open_store(str(tmp_path / name)))
        snapshot = open_snapshot(world)
        (index,) = snapshot.manifest.indices
        return world, snapshot, index

    return opened


def all_moved(ids: Ids) -> tuple[Ids, np.ndarray]:
    return ids + np.uint64(7 << 32), np.ones(len(ids), np.bool_)


def some_gone(ids: Ids) -> tuple[Ids, np.ndarray]:
    return ids + np.uint64(7 << 32), ids % np.uint64(3) != 1


def read(world: World, path: str) -> tuple[pa.Table, dict[str, str], list[bytes]]:
    reader = DataFileReader(world.store, path)
    rows = pa.Table.from_batches(reader.read(0, reader.num_rows, 1000) if reader.num_rows else [], schema=reader.schema)
    metadata = {key.decode(): value.decode() for key, value in (reader.schema.metadata or {}).items()}
    return rows, metadata, [reader.buffer(number) for number in range(1, reader.num_buffers)]


def partitions(buffer: bytes) -> tuple[list[int], list[int]]:
    found = pb.Partitions.FromString(buffer)
    return list(found.offsets), list(found.lengths)


def codes(rows: pa.Table, lengths: list[int], column: str, transposed: bool) -> dict[int, list[Any]]:
    """What is stored for each row id."""
    found, start = {}, 0
    for length in lengths:
        part = rows.slice(start, length)
        start += length
        values = np.array(part[column].combine_chunks().flatten())
        values = values.reshape(-1, length).T if transposed else values.reshape(length, -1)
        found.update(dict(zip(part["_rowid"].to_pylist(), values.tolist(), strict=True)))
    return found


@pytest.mark.parametrize("translate", [all_moved, some_gone])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_stay_with_their_rows(name: str, translate: Any, golden: Opened) -> None:
    world, snapshot, index = golden(name)
    assert foreign.remappable(index)
    written = foreign.remap(snapshot, index, translate, world, NEW)
    assert (written.details_type_url, written.details_value) == (index.details_type_url, index.details_value)
    assert written.index_version == index.index_version
    assert {file.path: file.size_bytes for file in written.files} == {
        path: world.store.head(f"{NEW}/{path}").size for path in ("index.idx", "auxiliary.idx")
    }
    old = f"_indices/{index.uuid}"
    assert world.store.get(f"{NEW}/index.idx") == world.store.get(f"{old}/index.idx")
    rows, metadata, buffers = read(world, f"{old}/auxiliary.idx")
    new_rows, new_metadata, new_buffers = read(world, f"{NEW}/auxiliary.idx")
    assert new_rows.schema == rows.schema
    assert (new_metadata, new_buffers[1:]) == (metadata, buffers[1:])
    offsets, lengths = partitions(new_buffers[0])
    assert offsets == np.cumsum([0, *lengths])[:-1].tolist()
    assert sum(lengths) == new_rows.num_rows
    column = next(each for each in rows.schema.names if each != "_rowid")
    transposed = bool(json.loads(json.loads(metadata["storage_metadata"])[0]).get("transposed"))
    assert transposed == (name == "ivf_pq")
    before = codes(rows, partitions(buffers[0])[1], column, transposed)
    ids, kept = translate(np.array(list(before), np.uint64))
    wanted = {new: before[old] for old, new, here in zip(before, ids.tolist(), kept.tolist(), strict=True) if here}
    assert codes(new_rows, lengths, column, transposed) == wanted


@pytest.mark.parametrize("name", TEXTS)
def test_documents_get_new_addresses(name: str, golden: Opened) -> None:
    world, snapshot, index = golden(name)
    assert foreign.remappable(index)
    written = foreign.remap(snapshot, index, all_moved, world, NEW)
    old = f"_indices/{index.uuid}"
    assert {file.path for file in written.files} == {file.path for file in index.files}
    for file in written.files:
        assert file.size_bytes == world.store.head(f"{NEW}/{file.path}").size
        if not file.path.endswith("_docs.lance"):
            assert world.store.get(f"{NEW}/{file.path}") == world.store.get(f"{old}/{file.path}")
    before, metadata, _ = read(world, f"{old}/part_0_docs.lance")
    after, new_metadata, _ = read(world, f"{NEW}/part_0_docs.lance")
    assert new_metadata == metadata
    assert after.drop(["_rowid"]) == before.drop(["_rowid"])
    assert after["_rowid"].to_pylist() == [id + (7 << 32) for id in before["_rowid"].to_pylist()]


@pytest.mark.parametrize("name", TEXTS)
def test_documents_without_a_row_are_left_out_of_searches(name: str, golden: Opened) -> None:
    world, snapshot, index = golden(name)
    foreign.remap(snapshot, index, some_gone, world, NEW)
    old = f"_indices/{index.uuid}"
    before = read(world, f"{old}/part_0_docs.lance")[0]["_rowid"].to_numpy()
    after = read(world, f"{NEW}/part_0_docs.lance")[0]["_rowid"].to_numpy()
    ids, kept = some_gone(before)
    assert after[kept].tolist() == ids[kept].tolist()
    assert (after[~kept] >> np.uint64(32) == NO_FRAGMENT).all()
    assert len(np.unique(after)) == len(after)
    rows, metadata, _ = read(world, f"{NEW}/metadata.lance")
    assert decode_bitmap(rows["deleted_fragments"][0].as_py()) == BitMap([NO_FRAGMENT])
    assert metadata == read(world, f"{old}/metadata.lance")[1]


@pytest.mark.parametrize("name", ["ivf_pq", "inverted_v2"])
def test_large_files_are_copied_row_by_row(name: str, golden: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_COPY_BYTES_MAX", 0)
    monkeypatch.setattr(files, "_BATCH_BYTES", 100)
    world, snapshot, index = golden(name)
    written = foreign.remap(snapshot, index, some_gone, world, NEW)
    for path in {file.path for file in written.files} - {"auxiliary.idx", "part_0_docs.lance", "metadata.lance"}:
        assert read(world, f"{NEW}/{path}") == read(world, f"_indices/{index.uuid}/{path}")


def test_graphs_and_others_are_left_alone(golden: Opened) -> None:
    world, snapshot, index = golden("ivf_hnsw_sq")
    assert not foreign.remappable(index)
    with pytest.raises(UnsupportedFeature, match="of a kind that can't be remapped"):
        foreign.remap(snapshot, index, all_moved, world, NEW)
    bare = replace(index, details_value=b"")
    assert not foreign.remappable(bare)
    assert not foreign.remappable(bare, snapshot)
    assert foreign.is_graph(index, snapshot) and foreign.is_graph(bare, snapshot)
    assert foreign.is_graph(replace(index, details_value=b"\xff"), snapshot)
    lying = replace(index, details_value=pb.VectorDetails(flat=pb.VectorDetails.Flat()).SerializeToString())
    with pytest.raises(UnsupportedFeature, match="IVF_HNSW_SQ, which can't be remapped"):
        foreign.remap(snapshot, lying, all_moved, world, NEW)
    assert not list(world.store.list(NEW))


def test_versions_and_kinds(golden: Opened) -> None:
    _, snapshot, vector = golden("ivf_pq")
    bare = replace(vector, details_value=b"")
    assert not foreign.remappable(bare)
    assert foreign.remappable(bare, snapshot)
    assert not foreign.is_graph(vector, snapshot) and not foreign.is_graph(bare, snapshot)
    assert not foreign.remappable(replace(vector, details_value=b"\xff"))
    assert not foreign.remappable(replace(vector, index_version=2))
    assert not foreign.remappable(replace(vector, details_type_url="/lance.table.RTreeIndexDetails"))
    _, _, text = golden("inverted_v2")
    assert not foreign.remappable(replace(text, index_version=3))
    assert not foreign.is_graph(text, snapshot)


def damaged(world: World, path: str, change: Callable[[dict[str, str], list[bytes]], None]) -> None:
    rows, metadata, buffers = read(world, path)
    change(metadata, buffers)
    writer = DataFileWriter(world.store, path, rows.schema.remove_metadata(), "2.2")
    for batch in rows.replace_schema_metadata(None).to_batches():
        writer.write(batch)
    for buffer in buffers:
        writer.add_buffer(buffer)
    for key, value in metadata.items():
        writer.add_metadata(key, value)
    writer.close()


@pytest.mark.parametrize(
    ("name", "path", "change", "problem"),
    [
        ("ivf_pq", "auxiliary.idx", lambda meta, _: meta.pop("lance:ivf"), "no lance:ivf"),
        ("ivf_pq", "auxiliary.idx", lambda meta, _: meta.update({"lance:ivf": "x"}), "which is no number"),
        (
            "ivf_pq",
            "auxiliary.idx",
            lambda meta, _: meta.update({"storage_metadata": "[]"}),
            "does not describe its codes",
        ),
        (
            "ivf_pq",
            "auxiliary.idx",
            lambda _, buffers: buffers.__setitem__(0, pb.Partitions(offsets=[0], lengths=[7]).SerializeToString()),
            "not its rows",
        ),
        ("ivf_pq", "index.idx", lambda meta, _: meta.update({"lance:index": "{}"}), "does not say its type"),
        (
            "inverted_v2",
            "metadata.lance",
            lambda meta, _: meta.update({"partitions": "{"}),
            "does not list its partitions",
        ),
        ("inverted_v2", "metadata.lance", lambda meta, _: meta.update({"partitions": '["x"]'}), "does not list"),
    ],
)
def test_damage_is_named(name: str, path: str, change: Any, problem: str, golden: Opened) -> None:
    world, snapshot, index = golden(name)
    damaged(world, f"_indices/{index.uuid}/{path}", change)
    with pytest.raises(CorruptTable, match=problem):
        foreign.remap(snapshot, index, some_gone, world, NEW)
