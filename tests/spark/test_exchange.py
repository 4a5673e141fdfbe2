"""``exchange`` on both engines, and in both ways of Spark: the same rows come together by key, by ascending rank."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablewright.engine.base import Engine
from tablewright.engine.exchange import Ranked
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark import exchange, spool
from tablewright.engine.spark.engine import SparkEngine
from tablewright.errors import CorruptTable
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"k": pa.binary(), "n": pa.int64(), "x": pa.float64(), "v": pa.list_(pa.float32(), 2)})
WAYS = ["local", "files", "shuffle"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world that workers reach."""
    return World(open_store(tmp_path))


@pytest.fixture(params=WAYS)
def engine(request: pytest.FixtureRequest, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Threads; Spark with workers on this machine, and with workers elsewhere."""
    if request.param == "shuffle":
        monkeypatch.setattr(spool, "is_on_this_machine", lambda session: False)
    return LocalEngine() if request.param == "local" else SparkEngine(spark)


Row = tuple[int, bytes, int]


def _tasks() -> list[list[Row]]:
    draw = random.Random(7)
    rows = [
        (draw.choice([0, 1, 2]), draw.choice([b"", b"a", b"\xff", b"k" * 50]), draw.choice([3, -1, 1 << 40]))
        for _ in range(600)
    ]
    return [rows[:250], [], rows[250:]]


def _produce() -> Any:
    """A function that travels by value: workers do not have this module."""
    schema = SCHEMA

    def produce(rows: list[Row], world: World) -> Iterator[Ranked]:
        for begin in range(0, len(rows), 100):
            for rank in (2, 0, 1):
                own = [row for row in rows[begin : begin + 100] if row[0] == rank]
                found = [{"k": k, "n": n, "x": None, "v": [n % 7, 0]} for _, k, n in own]
                yield rank, pa.RecordBatch.from_pylist(found, schema)

    return produce


def _consume() -> Any:
    def consume(parts: Iterator[Ranked]) -> list[Row]:
        return [(rank, row["k"], row["n"]) for rank, batch in parts for row in batch.to_pylist()]

    return consume


@pytest.mark.parametrize("keys", [["k"], ["k", "n"], ["n"]], ids=", ".join)
@pytest.mark.parametrize("bundled", [True, False])
def test_rows_come_together_by_key_and_rank(
    engine: Engine, world: World, keys: list[str], bundled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not bundled:
        monkeypatch.setattr(exchange, "_BUNDLE_BYTES", 1)
    parts = engine.exchange(_produce(), _tasks(), _consume(), world, schema=SCHEMA, keys=keys, partitions=3)
    assert 0 < len(parts) <= 3
    assert sorted(row for part in parts for row in part) == sorted(row for task in _tasks() for row in task)
    assert all([row[0] for row in part] == sorted(row[0] for row in part) for part in parts)
    places = [1 if name == "k" else 2 for name in keys]
    homes = [{tuple(row[place] for place in places) for row in part} for part in parts]
    assert sum(map(len, homes)) == len(set().union(*homes)), "a key is in one partition only"


def test_errors_of_producers_keep_their_type(engine: Engine, world: World) -> None:
    def produce(number: int, world: World) -> Iterator[Ranked]:
        from tablewright.errors import CorruptTable

        yield 0, pa.record_batch({"n": [number]})
        if number == 2:
            raise CorruptTable("f", ("p",))

    schema = pa.schema({"n": pa.int64()})
    given: dict[str, Any] = {"schema": schema, "keys": ["n"], "partitions": 2}

    def count(parts: Iterator[Ranked]) -> int:
        return sum(batch.num_rows for _, batch in parts)

    with pytest.raises(CorruptTable) as caught:
        engine.exchange(produce, range(4), count, world, **given)
    assert caught.value.problems == ("p",)
    assert sum(engine.exchange(produce, range(2), count, world, **given)) == 2
    assert engine.exchange(produce, [], count, world, **given) == []


def test_producers_read_the_world(engine: Engine, world: World) -> None:
    def produce(path: str, world: World) -> Iterator[Ranked]:
        yield 0, pa.record_batch({"n": list(world.store.get(path))}, pa.schema({"n": pa.int64()}))

    def collect(parts: Iterator[Ranked]) -> list[int]:
        return [number for _, batch in parts for number in batch["n"].to_pylist()]

    world.store.put("a", bytes([3, 1]))
    world.store.put("b", bytes([2, 1]))
    schema = pa.schema({"n": pa.int64()})
    (part,) = engine.exchange(produce, ["a", "b"], collect, world, schema=schema, keys=["n"], partitions=1)
    assert sorted(part) == [1, 1, 2, 3]
