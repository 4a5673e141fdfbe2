"""Small data files are read whole and opened as one: one request each, no local file left, the same rows."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.data import joined, small
from tablewright.data.shape import ReadShape
from tablewright.errors import CorruptTable, StorageError
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.testing import FaultyStore, memory_world
from tablewright.world import World


class Slow(FaultyStore):
    """A store that answers slowly."""

    answers_slowly = True


@pytest.fixture
def world() -> World:
    world = memory_world()
    return replace(world, store=Slow(world.store))


def _table(world: World, rows: int = 20) -> tw.LanceDataset:
    columns = {"id": list(range(rows)), "text": [f"row {number}" for number in range(rows)]}
    return tw.write_dataset(columns, world, max_rows_per_file=1)


def _reads(world: World, since: int) -> Counter[str]:
    assert isinstance(world.store, Slow)
    return Counter(call.path for call in world.store.calls[since:] if call.path.startswith("data/"))


def test_each_file_is_read_once(world: World) -> None:
    ds = _table(world)
    ds.delete("id = 3")
    assert isinstance(world.store, Slow)
    since = len(world.store.calls)
    assert ds.to_table()["id"].to_pylist() == [number for number in range(20) if number != 3]
    assert len(ds.to_table(filter="text != 'row 4'")) == 18
    files = [f"data/{file.path}" for fragment in ds._snapshot.fragments for file in fragment.files]
    assert _reads(world, since) == Counter(dict.fromkeys(files, 2))


def test_no_local_file_is_left(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    joins = _joins(monkeypatch)
    assert _table(world).to_table()["id"].to_pylist() == list(range(20))
    assert sorted(joins) == [8, 12] and os.listdir(tmp_path) == []


def test_a_file_that_is_gone_is_named(world: World) -> None:
    ds = _table(world)
    path = f"data/{ds._snapshot.fragments[7].files[0].path}"
    world.store.delete(path)
    with pytest.raises(CorruptTable, match=rf"{path}.*missing"):
        ds.to_table()


# ------------------------------------------------------------------------------------------------------ local files
NESTED = pa.table(
    {
        "id": pa.array(range(30)),
        "text": [None if number % 7 == 3 else f"row {number}" for number in range(30)],
        "list": [[number] * (number % 3) if number % 5 else None for number in range(30)],
        "pair": [{"x": number, "y": [str(number)]} if number % 4 else None for number in range(30)],
        "vector": pa.array([[number, 0.5] for number in range(30)], pa.list_(pa.float32(), 2)),
        "none": pa.nulls(30, pa.int32()),
    }
)


def _snapshot(path: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(path))))


def _one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "read_whole", lambda *_: None)


def _joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each joined one has, from now on; nothing is known of any file."""
    process_cache().clear()
    found: list[int] = []
    real = joined.join_files
    monkeypatch.setattr(joined, "join_files", lambda files, wanted: (found.append(len(files)), real(files, wanted))[1])
    return found


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
@pytest.mark.parametrize("columns", [None, ["id"], ["pair.x", "list"], ["vector", "none"], ["text", "pair"]])
def test_rows_are_those_of_each_file(
    tmp_path: Path, version: str, columns: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = NESTED.drop_columns(["pair"]) if version == "2.0" else NESTED
    asked = [each for each in columns or () if version != "2.0" or "pair" not in each] or None
    ds = tw.write_dataset(rows, tmp_path / "t", max_rows_per_file=3, data_storage_version=version)
    ds.delete("id in (0, 4, 5, 29)")
    joins = _joins(monkeypatch)
    found = ds.to_table(columns=asked)
    assert sum(joins) == (0 if version == "2.0" else 10)
    tw.config(cache_bytes=0)
    try:
        assert ds.to_table(columns=asked).equals(found)
        _one_by_one(monkeypatch)
        assert ds.to_table(columns=asked).equals(found) and len(found) == 26
    finally:
        tw.config(cache_bytes=1 << 28)


def test_files_of_other_schemas_are_joined_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renamed, cast, added and dropped columns: fragments of one table whose files differ."""
    ds = tw.write_dataset(pa.table({"a": range(6), "b": range(6)}), tmp_path / "t", max_rows_per_file=2)
    ds.alter_columns({"path": "b", "name": "c"})
    ds.insert(pa.table({"a": range(6, 10), "c": range(6, 10)}), max_rows_per_file=2)
    ds.add_columns({"d": "a * 10"})
    ds.drop_columns(["c"])
    ds.insert(pa.table({"a": range(10, 14), "d": range(100, 140, 10)}), max_rows_per_file=2)
    joins = _joins(monkeypatch)
    assert ds.to_table().to_pydict() == {"a": list(range(14)), "d": list(range(0, 140, 10))}
    assert sorted(joins) == [2, 2, 2, 3, 3]


def test_a_damaged_file_is_named_and_others_are_read(tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"a": range(20)}), tmp_path / "t", max_rows_per_file=2)
    place = tmp_path / "t" / "data" / ds._snapshot.fragments[3].files[0].path
    data = place.read_bytes()
    for damaged in (data[:-1], data + b"x", data[:-4] + b"LANX", b"", data[:-30] + b"\xff" * 8 + data[-22:]):
        place.write_bytes(damaged)
        with pytest.raises(CorruptTable, match=place.name):
            tw.dataset(tmp_path / "t").to_table()
    place.unlink()
    with pytest.raises(CorruptTable, match=rf"{place.name}.*missing"):
        tw.dataset(tmp_path / "t").to_table()
    place.write_bytes(data)
    assert tw.dataset(tmp_path / "t").to_table()["a"].to_pylist() == list(range(20))


def test_without_temporary_space_files_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = tw.write_dataset(pa.table({"a": range(20)}), tmp_path / "t", max_rows_per_file=2)

    def full(*_: object) -> str:
        raise StorageError("no space")

    monkeypatch.setattr(joined._LocalFiles, "_written", full)
    assert ds.to_table()["a"].to_pylist() == list(range(20))


def test_files_that_are_not_small_are_left_alone(tmp_path: Path) -> None:
    rows = pa.table({"a": range(4), "s": [np.random.default_rng(number).bytes(40_000) for number in range(4)]})
    snapshot = tw.write_dataset(rows, tmp_path / "t", max_rows_per_file=2)._snapshot
    shape = ReadShape(snapshot.schema, snapshot.schema.project_ids([0]))
    found = [joined.read_whole(snapshot, fragment, shape) for fragment in snapshot.fragments]
    assert found == [None, None]
