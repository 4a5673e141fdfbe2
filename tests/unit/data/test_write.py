"""Batches to fragments: limits and failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablewright.data.write import (
    WriteOptions,
    discard_fragments,
    write_data_file,
    write_fragments,
)
from tablewright.errors import InvalidRequest, SchemaMismatch, StorageError
from tablewright.format.fragment import Fragment
from tablewright.format.schema import Schema
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


def test_one_file_of_no_rows() -> None:
    world = memory_world()
    file, rows = write_data_file(world, Schema.from_arrow(_rows(0).schema), [], "2.2")
    assert rows == 0 and world.store.head(f"data/{file.path}").size == file.file_size_bytes
