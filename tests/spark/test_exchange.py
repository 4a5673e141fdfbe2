"""``exchange`` on both engines: the same rows come together by key, and sorted the same way."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablewright.engine.base import Engine
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark.engine import SparkEngine
from tablewright.errors import CorruptTable
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"k": pa.string(), "x": pa.float64(), "n": pa.int64(), "b": pa.binary()})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world that workers reach."""
    return World(open_store(tmp_path))


def _tasks() -> list[list[dict[str, Any]]]:
    """Rows with few keys: nulls, NaN, texts that sort by their bytes and not by their UTF-16 units."""
    draw = random.Random(7)
    values: dict[str, list[Any]] = {
        "k": [None, "", "a", "B", "é", "\uffff", "\U0001f600"],
        "x": [None, math.nan, math.inf, -math.inf, 0.0, -2.5],
        "n": [None, 3, -1, 1 << 40],
        "b": [None, b"", b"\x00", b"\xff"],
    }
    rows = [{name: draw.choice(some) for name, some in values.items()} for _ in range(600)]
    return [rows[:250], [], rows[250:]]


def _produce(schema: pa.Schema) -> Any:
    def produce(rows: list[dict[str, Any]], world: World) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(rows), 100):
            yield pa.RecordBatch.from_pylist(rows[begin : begin + 100], schema)

    return produce


def _consume(names: list[str]) -> Any:
    """Rows by key, in the order in which they come."""

    def consume(batches: Iterator[pa.RecordBatch]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                found.setdefault(repr([row[name] for name in names]), []).append(repr(row))
        return found

    return consume


@pytest.mark.parametrize("keys", [["k"], ["k", "x"], ["n"]], ids=", ".join)
def test_both_engines_agree(spark: Any, world: World, keys: list[str]) -> None:
    def exchanged(engine: Engine, partitions: int) -> list[dict[str, list[str]]]:
        given = {"schema": SCHEMA, "keys": keys, "partitions": partitions}
        return engine.exchange(_produce(SCHEMA), _tasks(), _consume(keys), world, **given)  # type: ignore[arg-type]

    def united(parts: list[dict[str, list[str]]]) -> dict[str, list[str]]:
        together = {key: rows for part in parts for key, rows in part.items()}
        assert len(together) == sum(map(len, parts)), "a key is in one partition only"
        return together

    here, there = exchanged(LocalEngine(), 3), exchanged(SparkEngine(spark), 3)
    assert len(here) <= 3
    assert len(there) <= 3
    assert united(here) == united(there)
    assert sum(map(len, united(here).values())) == 600
    (one,), (other,) = exchanged(LocalEngine(), 1), exchanged(SparkEngine(spark), 1)
    assert list(one.items()) == list(other.items()), "keys come in the same order too"


@pytest.mark.parametrize("name", ["local", "spark"])
def test_errors_of_producers_keep_their_type(spark: Any, world: World, name: str) -> None:
    def produce(number: int, world: World) -> Iterator[pa.RecordBatch]:
        from tablewright.errors import CorruptTable

        yield pa.record_batch({"n": [number]})
        if number == 2:
            raise CorruptTable("f", ("p",))

    engine: Engine = LocalEngine() if name == "local" else SparkEngine(spark)
    schema = pa.schema({"n": pa.int64()})
    given: dict[str, Any] = {"schema": schema, "keys": ["n"], "partitions": 2}

    def count(batches: Iterator[pa.RecordBatch]) -> int:
        return sum(batch.num_rows for batch in batches)

    with pytest.raises(CorruptTable) as caught:
        engine.exchange(produce, range(4), count, world, **given)
    assert caught.value.problems == ("p",)
    assert sum(engine.exchange(produce, range(2), count, world, **given)) == 2
    assert engine.exchange(produce, [], count, world, **given) == []


@pytest.mark.parametrize("name", ["local", "spark"])
def test_producers_read_the_world(spark: Any, world: World, name: str) -> None:
    def produce(path: str, world: World) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": list(world.store.get(path))}, pa.schema({"n": pa.int64()}))

    def collect(batches: Iterator[pa.RecordBatch]) -> list[int]:
        return [number for batch in batches for number in batch["n"].to_pylist()]

    world.store.put("a", bytes([3, 1]))
    world.store.put("b", bytes([2, 1]))
    engine: Engine = LocalEngine() if name == "local" else SparkEngine(spark)
    schema = pa.schema({"n": pa.int64()})
    parts = engine.exchange(produce, ["a", "b"], collect, world, schema=schema, keys=["n"], partitions=1)
    assert parts == [[1, 1, 2, 3]]
