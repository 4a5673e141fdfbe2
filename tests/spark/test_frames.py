"""engine/spark/frames.py: executors write, tasks read, and what failed leaves nothing behind."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.helpers import written_by_executors

from tablewright.engine import frame_engine
from tablewright.engine.spark.frames import read_frame
from tablewright.engine.spark.payload import CARRIED_BYTES_MAX
from tablewright.errors import InternalError, InvalidRequest
from tablewright.storage import open_store
from tablewright.storage.requests import requests_made
from tablewright.testing.worlds import memory_world
from tablewright.world import World

IDS = pa.schema({"id": pa.int64()})


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world that workers reach."""
    return World(open_store(tmp_path_factory.mktemp("world")))


def make_writer(directory: Path) -> Any:
    """A stand-in for the data-file writer: one Arrow file per partition."""

    def write(batches: Iterator[pa.RecordBatch], world: World) -> tuple[str, int]:
        name, rows = str(directory / f"{uuid.uuid4().hex}.arrow"), 0
        with pa.OSFile(name, "wb") as file:
            first = next(batches)
            with pa.ipc.new_file(file, first.schema) as sink:
                for batch in (first, *batches):
                    sink.write_batch(batch)
                    rows += batch.num_rows
        return name, rows

    return write


def read_files(results: list[tuple[str, int]]) -> pa.Table:
    return pa.concat_tables([pa.ipc.open_file(pa.memory_map(name)).read_all() for name, _ in results])


def test_partitions_become_files_in_order(spark: Any, world: World, tmp_path: Path) -> None:
    results = written_by_executors(spark.range(0, 100_000, 1, 5), make_writer(tmp_path), world, IDS)
    assert [rows for _, rows in results] == [20_000] * 5
    assert read_files(results)["id"].to_pylist() == list(range(100_000))


def test_empty_partitions_write_nothing(spark: Any, world: World, tmp_path: Path) -> None:
    frame = spark.range(0, 40, 1, 4).where("id between 10 and 19")
    assert [rows for _, rows in written_by_executors(frame, make_writer(tmp_path), world, IDS)] == [10]
    assert written_by_executors(spark.range(0), make_writer(tmp_path), world, IDS) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_columns_are_chosen_by_name_and_cast(spark: Any, world: World, tmp_path: Path) -> None:
    frame = spark.sql("select 'x' as `odd ``name.`, 0 as unused, array(1.0d, 2.0d) as v, 7L as n")
    schema = pa.schema(
        {"n": pa.uint8(), "v": pa.list_(pa.float32(), 2), "odd `name.": pa.dictionary(pa.int8(), pa.string())}
    )
    table = read_files(written_by_executors(frame, make_writer(tmp_path), world, schema))
    assert table.schema == schema
    assert table.to_pylist() == [{"n": 7, "v": [1.0, 2.0], "odd `name.": "x"}]


def test_a_value_that_does_not_fit_is_our_error(spark: Any, world: World, tmp_path: Path) -> None:
    frame = spark.range(0, 4, 1, 4).selectExpr("if(id = 2, 300L, id) as n")
    with pytest.raises(InvalidRequest, match='Cannot cast column "n" from int64 to uint8: the value 300'):
        written_by_executors(frame, make_writer(tmp_path), world, pa.schema({"n": pa.uint8()}))


def test_other_errors_tell_the_worker_traceback(spark: Any, world: World) -> None:
    def write(batches: Iterator[pa.RecordBatch], world: World) -> None:
        raise KeyError("no such thing")

    with pytest.raises(InternalError, match=r"(?s)Writing failed on a Spark worker:.*KeyError: 'no such thing'"):
        written_by_executors(spark.range(1), write, world, IDS)


def test_a_frame_that_can_not_be_computed_is_named(spark: Any, world: World, tmp_path: Path) -> None:
    """The caller's own mistake, and not one of ours: in Spark's part of the job, or in Python of the caller."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise KeyError("no such thing")

    frames = {
        "DIVIDE_BY_ZERO": spark.range(2).selectExpr("1 div id as id"),
        "CAST_INVALID_INPUT": spark.createDataFrame([("1",), ("x",)], "s string").selectExpr("cast(s as long) as id"),
        "KeyError: 'no such thing'": spark.range(1).mapInArrow(fail, "id long"),
    }
    for cause, frame in frames.items():
        with pytest.raises(InvalidRequest, match=f"(?s)The DataFrame can't be computed.*{cause}") as caught:
            written_by_executors(frame, make_writer(tmp_path), world, IDS)
        assert "\tat org.apache" not in str(caught.value)


def test_a_task_may_run_twice_but_counts_once(spark: Any, world: World, tmp_path: Path) -> None:
    frame = spark.range(0, 10, 1, 2)
    first, second = (written_by_executors(frame, make_writer(tmp_path), world, IDS) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 4
    assert read_files(first) == read_files(second)


def numbers(schema: pa.Schema, task: tuple[int, int], world: World) -> Iterator[pa.RecordBatch]:
    start, stop = task
    for number in range(start, stop, 10):
        yield pa.record_batch({"id": range(number, min(stop, number + 10))}, schema=schema)


def by_value(function: Any) -> Any:
    """A function of a test module travels by value: workers can't import tests."""
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


def test_a_frame_has_one_partition_per_task_and_reads_lazily(spark: Any, world: World) -> None:
    tasks = [(0, 25), (25, 25), (25, 60)]
    frame = read_frame(spark, partial(by_value(numbers), IDS), tasks, world, IDS)
    assert frame.count() == 60
    assert [row.id for row in frame.collect()] == list(range(60))
    assert frame.selectExpr("spark_partition_id() as p").distinct().count() == 2
    assert frame.where("id >= 50").agg({"id": "sum"}).collect()[0][0] == sum(range(50, 60))
    assert frame.union(frame).count() == 120


def test_no_tasks_are_an_empty_frame(spark: Any, world: World) -> None:
    frame = read_frame(spark, partial(by_value(numbers), IDS), [], world, IDS)
    assert frame.columns == ["id"]
    assert frame.count() == 0


def test_large_scan_tasks_travel_alone(spark: Any, world: World) -> None:
    def size(task: bytes, world: World) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array([len(task)], pa.int64())})

    tasks = [b"x" * (CARRIED_BYTES_MAX + number) for number in range(3)]
    assert sorted(row.id - CARRIED_BYTES_MAX for row in read_frame(spark, size, tasks, world, IDS).collect()) == [
        0,
        1,
        2,
    ]


def test_not_null_stays_not_null(spark: Any, world: World) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    frame = read_frame(spark, partial(by_value(numbers), schema), [(0, 3)], world, schema)
    assert not frame.schema["id"].nullable
    assert frame.count() == 3


def test_what_spark_does_with_a_frame_can_be_written_again(spark: Any, world: World, tmp_path: Path) -> None:
    frame = read_frame(spark, partial(by_value(numbers), IDS), [(0, 50), (50, 100)], world, IDS)
    results = written_by_executors(frame.repartition(3).where("id % 2 = 0"), make_writer(tmp_path), world, IDS)
    assert sorted(read_files(results)["id"].to_pylist()) == list(range(0, 100, 2))


def put_rows(batches: Iterator[pa.RecordBatch], world: World) -> str:
    """Writes a data file, under a name that carries the mark of the job."""
    from tablewright.format.naming import data_path, new_data_file_name

    path = data_path(new_data_file_name(world.ids.uuid()))
    world.store.put(path, b"".join(bytes(str(batch.to_pydict()), "utf-8") for batch in batches))
    return path


def test_executors_write_into_the_world_and_their_requests_are_counted(spark: Any, world: World) -> None:
    before = requests_made()
    paths = written_by_executors(spark.range(0, 6, 1, 3), by_value(put_rows), world, IDS)
    assert requests_made() - before == 3
    assert sorted(paths) == sorted(entry.path for entry in world.store.list("data/"))


def test_files_of_a_write_that_fails_are_removed(spark: Any, world: World) -> None:
    for broken in ("if(id = 5, 300L, id) as id", "if(id = 5, 1 div (id - 5), id) as id"):
        with pytest.raises(InvalidRequest):
            written_by_executors(
                spark.range(0, 6, 1, 3).selectExpr(broken), by_value(put_rows), world, pa.schema({"id": pa.int8()})
            )
        assert not list(world.store.list("data/"))


def test_memory_is_no_place_for_workers(spark: Any) -> None:
    engine = frame_engine(spark)
    with pytest.raises(InvalidRequest, match="lives in the memory of this process"):
        engine.gather_frame(spark.range(1), by_value(put_rows), memory_world(), IDS)
    with pytest.raises(InvalidRequest, match="lives in the memory of this process"):
        engine.read_frame(partial(by_value(numbers), IDS), [(0, 1)], memory_world(), IDS)
    with pytest.raises(InvalidRequest, match="lives in the memory of this process"):
        engine.map(lambda task, world: task, [1], memory_world())
