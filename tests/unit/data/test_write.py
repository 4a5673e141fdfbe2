"""Batches to fragments: limits, failures, and pylance opens what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tablewright.data.read import read_fragment
from tablewright.data.write import (
    WriteOptions,
    describe_data_file,
    discard_fragments,
    write_data_file,
    write_fragments,
)
from tablewright.errors import InvalidRequest, SchemaMismatch, StorageError
from tablewright.format.fragment import Fragment, fragment_to_json
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.testing.faulty_store import FailBefore, FaultyStore, LoseReply, on_call
from tablewright.testing.worlds import memory_world, seeded_world
from tablewright.world import World


def _world(path: Path) -> World:
    return seeded_world(open_store(str(path)))


def _rows(count: int, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.record_batch({"a": pa.array(numbers, pa.int64()), "s": pa.array([f"r{i}" for i in numbers], pa.string())})


def _write(world: World, batches: list[pa.RecordBatch], **options: Any) -> tuple[Fragment, ...]:
    return write_fragments(world, Schema.from_arrow(batches[0].schema), batches, WriteOptions(**options))


def _pylance(path: Path, schema: pa.Schema, fragments: tuple[Fragment, ...]) -> lance.LanceDataset:
    given = [lance.FragmentMetadata.from_json(json.dumps(fragment_to_json(fragment))) for fragment in fragments]
    return lance.LanceDataset.commit(str(path), lance.LanceOperation.Overwrite(schema, given))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_opens_what_we_wrote(tmp_path: Path, version: str) -> None:
    table = pa.table(
        {
            "a": range(10),
            "st": pa.array([{"p": i, "l": [{"x": i}]} for i in range(10)]),
            "v": pa.array([[i, i] for i in range(10)], pa.list_(pa.float32(), 2)),
            "d": pa.array(["x", "y"] * 5).dictionary_encode(),
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array([f'{{"i":{i}}}' for i in range(10)])),
        }
    )
    fragments = _write(_world(tmp_path), table.to_batches(max_chunksize=3), data_storage_version=version)
    dataset = _pylance(tmp_path, table.schema, fragments)
    dataset.validate()
    assert dataset.to_table().to_pylist() == table.to_pylist()
    assert dataset.schema == table.schema
    theirs = lance.write_dataset(table, tmp_path / "theirs", data_storage_version=version)
    expected = theirs.get_fragments()[0].data_files()[0]
    (file,) = fragments[0].files
    assert (list(file.fields), list(file.column_indices)) == (expected.fields, expected.column_indices)
    assert (file.file_major_version, file.file_minor_version) == tuple(map(int, version.split(".")))
    assert file.file_size_bytes == (tmp_path / "data" / file.path).stat().st_size
    assert len(file.path) == 24 + 26 + len(".lance")


@pytest.mark.parametrize(
    ("sizes", "limit", "expected"),
    [([10], 4, [4, 4, 2]), ([3, 3, 3], 4, [4, 4, 1]), ([4, 4], 4, [4, 4]), ([1] * 5, 100, [5]), ([0, 2, 0], 9, [2])],
)
def test_rows_per_file_are_exact(sizes: list[int], limit: int, expected: list[int]) -> None:
    world = memory_world()
    fragments = _write(world, [_rows(size) for size in sizes], max_rows_per_file=limit)
    assert [fragment.physical_rows for fragment in fragments] == expected
    assert all(fragment.id == 0 and fragment.deletion is None for fragment in fragments)


def test_no_rows_make_no_fragment() -> None:
    world = memory_world()
    assert _write(world, [_rows(0)]) == ()
    assert write_fragments(world, Schema.from_arrow(_rows(0).schema), []) == ()
    assert list(world.store.list("")) == []


def test_bytes_per_file_are_a_soft_limit() -> None:
    world = memory_world()
    text = pa.record_batch([pa.array(["0" * 1024] * 1024 * 8)], names=["a"])
    assert [f.physical_rows for f in _write(world, [text, text], max_bytes_per_file=1024)] == [8192, 8192]
    million = pa.record_batch({"a": pa.array(range(1 << 17))})  # one mebibyte
    fragments = _write(world, [million] * 20, max_bytes_per_file=1000)
    assert [fragment.physical_rows >> 17 for fragment in fragments] == [8, 8, 4]
    large = pa.record_batch({"a": pa.array(range(1 << 23))})  # 64 MiB in one batch are cut
    fragments = _write(world, [large], max_bytes_per_file=20 << 20, max_rows_per_file=1 << 30)
    assert [fragment.physical_rows >> 17 for fragment in fragments] == [20, 20, 20, 4]


@pytest.mark.parametrize("options", [{"max_rows_per_file": 0}, {"max_bytes_per_file": -1}])
def test_limits_are_checked(options: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest, match="must be positive"):
        WriteOptions(**options)


def test_columns_are_matched_by_name() -> None:
    world = memory_world()
    schema = Schema.from_arrow(pa.schema([("a", pa.int64()), ("s", pa.string())]))
    swapped = pa.record_batch({"s": pa.array(["x"], pa.string_view()), "a": [1]})
    (fragment,) = write_fragments(world, schema, [_rows(2), swapped])
    assert fragment.physical_rows == 3
    for batch in (pa.record_batch({"a": [1]}), pa.record_batch({"a": [1], "s": ["x"], "more": [1]})):
        with pytest.raises(SchemaMismatch, match=r"missing|unexpected"):
            write_fragments(world, schema, [batch])


def test_nulls_where_none_may_be(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([1, None])], names=["a"])
    with pytest.raises(SchemaMismatch, match="'a' is declared as non-nullable but contains null values"):
        write_fragments(_world(tmp_path), Schema.from_arrow(schema), [_rows(1).select(["a"]), batch])
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    with pytest.raises(OSError, match="declared as non-nullable but contains null values"):
        lance.write_dataset(pa.Table.from_arrays(batch.columns, schema=schema), tmp_path)


def _then_fail() -> Iterator[pa.RecordBatch]:
    yield _rows(10)
    yield _rows(10)
    raise KeyboardInterrupt


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    schema = Schema.from_arrow(_rows(0).schema)
    with pytest.raises(KeyboardInterrupt):
        write_fragments(_world(tmp_path), schema, _then_fail(), WriteOptions(max_rows_per_file=4))
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    with pytest.raises(InvalidRequest, match='Cannot cast column "a" from string to int64'):
        write_fragments(_world(tmp_path), schema, [_rows(9), pa.record_batch({"a": ["x"], "s": ["y"]})])
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_store_that_fails(number: int, fault: Any) -> None:
    world = memory_world()
    store = FaultyStore(world.store, on_call(fault, method="put", nth=number))
    with pytest.raises(StorageError):
        write_fragments(
            seeded_world(store), Schema.from_arrow(_rows(0).schema), [_rows(10)], WriteOptions(max_rows_per_file=4)
        )
    assert list(world.store.list("")) == []


class _Log:
    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def begin(self, fragment: Fragment) -> None:
        self.events.append(("begin", fragment.physical_rows))

    def complete(self, fragment: Fragment) -> None:
        self.events.append(("complete", fragment.physical_rows))


def test_progress_is_told() -> None:
    log = _Log()
    options = WriteOptions(max_rows_per_file=4)
    write_fragments(memory_world(), Schema.from_arrow(_rows(0).schema), [_rows(6)], options, progress=log)
    assert log.events == [("begin", 0), ("complete", 4), ("begin", 0), ("complete", 2)]


def test_discarded_fragments_are_gone() -> None:
    world = memory_world()
    fragments = _write(world, [_rows(10)], max_rows_per_file=4)
    discard_fragments(world, fragments)
    discard_fragments(world, fragments)
    assert list(world.store.list("")) == []


def test_one_file_for_more_columns(tmp_path: Path) -> None:
    """A struct whose members lie in two files, as pylance and we read it."""
    lance.write_dataset(pa.table({"st": pa.array([{"p": 1}, None, {"p": 3}])}), tmp_path)
    world = _world(tmp_path)
    snapshot = open_snapshot(world)
    both = pa.schema([("st", pa.struct([("p", pa.int64()), ("new", pa.string())]))])
    table = Schema.from_arrow(both)
    added = pa.record_batch({"st": pa.array([{"new": "x"}, None, {"new": "z"}])})
    file, rows = write_data_file(world, table.project_ids([0, 2]), [added], "2.2")
    assert (file.fields, rows) == ((2,), 3)
    fragment = snapshot.fragments[0].with_files((*snapshot.fragments[0].files, file))
    expected = [{"st": {"p": 1, "new": "x"}}, {"st": None}, {"st": {"p": 3, "new": "z"}}]
    assert [row for batch in read_fragment(snapshot, fragment, table, table) for row in batch.to_pylist()] == expected
    (only_new,) = read_fragment(snapshot, fragment, table, table.project_ids([0, 2]))
    assert only_new.to_pylist() == [{"st": {"new": "x"}}, {"st": None}, {"st": {"new": "z"}}]
    given = lance.FragmentMetadata.from_json(json.dumps(fragment_to_json(fragment)))
    merged = lance.LanceDataset.commit(str(tmp_path), lance.LanceOperation.Merge([given], both), read_version=1)
    assert merged.to_table().to_pylist() == expected


def test_one_file_of_no_rows() -> None:
    world = memory_world()
    file, rows = write_data_file(world, Schema.from_arrow(_rows(0).schema), [], "2.2")
    assert rows == 0 and world.store.head(f"data/{file.path}").size == file.file_size_bytes


def test_a_file_that_lies_there_already(tmp_path: Path) -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("st", pa.struct([("p", pa.int64()), ("q", pa.string())])), ("z", pa.int8())]
    )
    table = Schema.from_arrow(schema)
    batch = pa.record_batch({"z": pa.array([1, 2], pa.int8()), "st": pa.array([{"p": 1, "q": "x"}, None])})
    world = _world(tmp_path)
    other, _ = write_data_file(world, Schema.from_arrow(batch.schema), [batch], "2.2")
    fragment = describe_data_file(world, table, other.path, 7)
    (file,) = fragment.files
    assert (fragment.id, fragment.physical_rows) == (7, 2)
    assert (file.fields, file.column_indices) == ((4, 2, 3), (0, 1, 2))
    dataset = _pylance(tmp_path, schema, (fragment,))
    assert dataset.to_table().to_pylist() == [
        {"a": None, "st": {"p": 1, "q": "x"}, "z": 1},
        {"a": None, "st": None, "z": 2},
    ]
    strange, _ = write_data_file(world, Schema.from_arrow(pa.schema([("nope", pa.int8())])), [], "2.2")
    with pytest.raises(InvalidRequest, match="No field named nope"):
        describe_data_file(world, table, strange.path)
    wrong, _ = write_data_file(world, Schema.from_arrow(pa.schema([("a", pa.string())])), [], "2.2")
    with pytest.raises(InvalidRequest, match="should have type int64"):
        describe_data_file(world, table, wrong.path)
