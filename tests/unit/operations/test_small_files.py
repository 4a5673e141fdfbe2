"""operations/small_files.py and jobs/small_files.py: which files of a write are joined, and that no row changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.engine.local import LocalEngine
from tablewright.errors import StorageError
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_paths
from tablewright.jobs.small_files import join_small_files
from tablewright.operations import small_files
from tablewright.operations.small_files import JOINED_BYTES, SMALL_BYTES, SMALL_ROWS, plan_joins
from tablewright.operations.write import WritePlan, WriteSettings, plan_write, run_write
from tablewright.storage import open_store
from tablewright.testing.faulty_store import FailBefore, FaultyStore, on_call
from tablewright.world import World

MIB = 1 << 20
ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.uint32()),
        "vector": pa.array([[n, n + 0.5] for n in range(12)], pa.list_(pa.float16(), 2)),
        "word": pa.array(["a", "b", None] * 4),
        "json": pa.array(['{"a": 1}', None, "[]"] * 4, pa.json_()),
        "time": pa.array(range(12), pa.timestamp("ns", "Asia/Tokyo")),
        "members": pa.array([{"x": 1, "y": [1, 2]}, None, {"x": None, "y": []}] * 4),
        "large": pa.array([b"1", b"", None] * 4, pa.large_binary()),
        "price": pa.array([1, None, 3] * 4, pa.decimal128(20, 2)),
    }
)


def plan_for(schema: pa.Schema, **options: int) -> WritePlan:
    plan = plan_write(None, "memory://table", schema, WriteSettings(data_storage_version="2.1"))
    return replace(plan, options=replace(plan.options, **options))


def fragment(number: int, size: int, rows: int = 10) -> Fragment:
    path, version = f"{number}.lance", {"file_major_version": 2, "file_minor_version": 1}
    file = DataFile(path=path, fields=(0,), column_indices=(0,), file_size_bytes=size, **version)
    return Fragment(id=number, files=(file,), physical_rows=rows)


def joined(sizes: list[int], rows: int = 10, **options: int) -> list[int]:
    """How many fragments go into each file."""
    fragments = [fragment(number, size, rows) for number, size in enumerate(sizes)]
    tasks = plan_joins(plan_for(pa.schema({"id": pa.int64()}), **options), fragments)
    assert [one for task in tasks for one in task.fragments] == fragments
    return [len(task.fragments) for task in tasks]


def test_small_neighbours_come_together() -> None:
    assert joined([1000] * 50) == [50]
    assert joined([]) == []
    assert joined([1000]) == [1]
    assert joined([SMALL_BYTES - 1, SMALL_BYTES - 1]) == [2]
    assert joined([SMALL_BYTES, SMALL_BYTES]) == [1, 1]
    assert joined([1000, 1000, 30 * MIB, 1000, 30 * MIB, 1000, 1000]) == [2, 1, 1, 1, 2]


def test_a_large_write_stays_as_it_is() -> None:
    assert joined([30 * MIB] * 200) == [1] * 200
    assert joined([1000] * 3, rows=SMALL_ROWS) == [1, 1, 1]  # few bytes, but long to copy


def test_joined_files_have_limits() -> None:
    assert joined([3 * MIB] * 50) == [JOINED_BYTES // (3 * MIB)] * 2 + [50 - 2 * (JOINED_BYTES // (3 * MIB))]
    assert joined([1000] * 5, max_rows_per_file=25) == [2, 2, 1]
    assert joined([1000] * 5, max_rows_per_file=10) == [1] * 5
    assert joined([1000] * 5, max_bytes_per_file=3000) == [3, 2]


def written(world: World, parts: int = 4) -> tuple[WritePlan, list[Fragment]]:
    plan = plan_for(ROWS.schema)
    pieces = [ROWS.slice(start, 12 // parts) for start in range(0, 12, 12 // parts)]
    return plan, [one for piece in pieces for one in run_write(plan, piece.to_batches(), world)]


@pytest.mark.parametrize("target", [JOINED_BYTES, 1])
def test_rows_of_every_type_stay_the_same(tmp_path: Path, target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing fits together."""
    monkeypatch.setattr(small_files, "JOINED_BYTES", target)
    store = open_store(tmp_path / "table")
    world = World(store)
    plan, fragments = written(world)
    made = join_small_files(plan, fragments, world, LocalEngine())
    assert [one.physical_rows for one in made] == ([12] if target > 1 else [3] * 4)
    assert {entry.path for entry in store.list("data/")} == set(data_paths(made))
    operation = tw.LanceOperation.Overwrite(
        tw.LanceSchema.from_pyarrow(ROWS.schema), [tw.FragmentMetadata.of(one) for one in made]
    )
    expected = tw.write_dataset(ROWS, "memory://at-once", mode="overwrite", data_storage_version="2.1").to_table()
    assert tw.LanceDataset.commit(tmp_path / "table", operation).to_table().combine_chunks().equals(expected)


@pytest.mark.parametrize(
    "column",
    [
        pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        pa.field("words", pa.dictionary(pa.int8(), pa.string())),
        pa.field("members", pa.struct({"words": pa.dictionary(pa.int8(), pa.string())})),
    ],
    ids=["blob", "dictionary", "nested"],
)
def test_blobs_and_dictionaries_are_left_alone(column: pa.Field) -> None:
    plan = plan_for(pa.schema([column]))
    assert [len(task.fragments) for task in plan_joins(plan, [fragment(0, 10), fragment(1, 10)])] == [1, 1]


def test_a_failure_leaves_no_file() -> None:
    store = open_store("memory://small-files")
    plan, fragments = written(World(store))
    faulty = FaultyStore(store, on_call(FailBefore(), method="put", nth=0))
    with pytest.raises(StorageError):
        join_small_files(plan, fragments, World(faulty), LocalEngine())
    assert list(store.list("data/")) == []
