"""Bloom filters of zones: which zones may match, and what is kept of older segments."""

from __future__ import annotations

import itertools
import math
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from tests.index_plans import here, metadata_of, plan_of

import tablewright as tw
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.index_kinds import BLOOMFILTER
from tablewright.indices import bloomfilter
from tablewright.indices.bloomfilter.build import BloomSummary
from tablewright.indices.building import OldSegment
from tablewright.indices.files import IndexTable, read_index_file, write_index_file
from tablewright.indices.query import Between, Hits, IsIn, IsNull, StartsWith
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

numbers = itertools.count(1)
SMALL = {"number_of_items": 2, "probability": 1e-6}


def table(values: pa.Array, per_file: int = 6) -> tuple[World, Snapshot]:
    uri = f"memory://bloomfilter-{next(numbers)}"
    tw.write_dataset(pa.table({"n": range(len(values)), "x": values}), uri, max_rows_per_file=per_file)
    world = World(open_store(uri))
    return world, open_snapshot(world)


def built(world: World, snapshot: Snapshot, settings: Any = SMALL, **more: Any) -> tuple[Any, IndexTable]:
    plan = plan_of(snapshot, "x", BLOOMFILTER, UUID(int=next(numbers)), settings=settings, **more)
    written = bloomfilter.build(plan, world, here(world))
    assert (written.details_value, written.index_version) == (b"", 0)
    file = read_index_file(world.store, plan.directory, "bloomfilter.lance", buffers=["null_bitmap"])
    return metadata_of(plan, written), file


def found(hits: Hits) -> list[tuple[int, int, int]]:
    assert hits.ranges is not None
    assert not hits.exact
    return list(zip(*(part.tolist() for part in hits.ranges), strict=True))


def test_values_are_found_in_their_zones() -> None:
    world, snapshot = table(pa.array(["a", None, "b", "c", "d" * 40, "e", None, "g"]))
    index, file = built(world, snapshot)
    assert file.metadata["bloomfilter_item"] == "2"
    assert file.metadata["bloomfilter_probability"] == "0.000001"
    assert file.rows["has_null"].to_pylist() == [True, False, False, True]
    assert file.rows["zone_start"].to_pylist() == [0, 2, 4, 0]
    assert found(bloomfilter.search(snapshot, index, IsIn(pa.array(["a"])))) == [(0, 0, 2)]
    assert found(bloomfilter.search(snapshot, index, IsIn(pa.array(["d" * 40, "g", "nothing"])))) == [
        (0, 4, 6),
        (1, 0, 2),
    ]
    assert found(bloomfilter.search(snapshot, index, IsIn(pa.array(["nothing"])))) == []
    hits = bloomfilter.search(snapshot, index, IsNull(), with_nulls=True)
    assert (hits.exact, hits.ids.tolist()) == (True, [1, 1 << 32])
    both = bloomfilter.search(snapshot, index, IsIn(pa.array(["a"])), with_nulls=True)
    assert both.nulls is not None
    assert both.nulls.tolist() == [1, 1 << 32]
    assert bloomfilter.estimate(snapshot, index, IsNull()) == 2
    assert bloomfilter.estimate(snapshot, index, IsIn(pa.array(["a"]))) is None


def test_both_zeros_and_nan() -> None:
    world, snapshot = table(pa.array([0.0, 1.0, -0.0, 1.0, math.nan, 1.0]))
    index, _ = built(world, snapshot)
    for zero in (0.0, -0.0):
        assert found(bloomfilter.search(snapshot, index, IsIn(pa.array([zero])))) == [(0, 0, 4)]
    assert found(bloomfilter.search(snapshot, index, IsIn(pa.array([math.nan])))) == [(0, 4, 6)]


def test_without_null_rows_zones_tell() -> None:
    world, snapshot = table(pa.array([1, 2, None, 4]))
    index, file = built(world, snapshot)
    rows = file.rows.replace_schema_metadata(None)
    write_index_file(world.store, f"_indices/{index.uuid}", "bloomfilter.lance", rows.schema, rows.to_batches())
    assert found(bloomfilter.search(snapshot, index, IsNull())) == [(0, 2, 4)]
    assert bloomfilter.search(snapshot, index, IsIn(pa.array([1])), with_nulls=True).nulls is None
    assert bloomfilter.estimate(snapshot, index, IsNull()) is None


def test_old_segments_give_their_zones_and_settings() -> None:
    world, snapshot = table(pa.array([1, None, 3, 4, 5, 6]), per_file=2)
    first, _ = built(world, snapshot, fragments=snapshot.fragments[:2])
    old = OldSegment(first, lambda ids: (ids, np.ones(len(ids), np.bool_)), fragments=(0,))
    merged, file = built(world, snapshot, {}, fragments=snapshot.fragments[2:], old=(old,))
    assert file.rows["fragment_id"].to_pylist() == [0, 2]
    assert file.metadata["bloomfilter_item"] == "2"
    assert found(bloomfilter.search(snapshot, merged, IsIn(pa.array([1, 3, 5])))) == [(0, 0, 2), (2, 0, 2)]
    assert bloomfilter.search(snapshot, merged, IsNull()).ids.tolist() == [1]


def test_zones_of_many_rows_are_made_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    world, snapshot = table(pa.array(range(100)), per_file=100)
    _, whole = built(world, snapshot, {"number_of_items": 60, "probability": 0.01})
    monkeypatch.setattr("tablewright.data.sizes._ROWS_MAX", 7)
    _, pieces = built(world, snapshot, {"number_of_items": 60, "probability": 0.01})
    assert pieces.rows.equals(whole.rows)
    assert whole.rows["zone_length"].to_pylist() == [60, 40]


def test_settings_are_checked() -> None:
    world, snapshot = table(pa.array([1]))
    for wrong in ({"number_of_items": 0}, {"number_of_items": True}, {"number_of_items": 1.5}):
        with pytest.raises(InvalidRequest, match="number_of_items must be a positive whole number"):
            built(world, snapshot, wrong)
    for rate in (0, 1, 1.5, "0.1", math.nan):
        with pytest.raises(InvalidRequest, match="probability must be a number between 0 and 1"):
            built(world, snapshot, {"probability": rate})


def test_a_query_of_another_kind_is_a_type_error() -> None:
    world, snapshot = table(pa.array([1]))
    index, _ = built(world, snapshot)
    for query in (Between(low=pa.scalar(1)), StartsWith("a")):
        assert not bloomfilter.answers(query, pa.int64())
        with pytest.raises(TypeError, match="Bloom filters can't answer"):
            bloomfilter.search(snapshot, index, query)
    assert not bloomfilter.answers(IsIn(pa.array([True])), pa.bool_())


SCHEMA = BloomSummary(32).schema
ROW = {"fragment_id": 0, "zone_start": 0, "zone_length": 2, "has_null": False, "bloom_filter_data": bytes(32)}


@pytest.mark.parametrize(
    ("row", "metadata", "problem"),
    [
        ({**ROW, "bloom_filter_data": bytes(31)}, {}, "blocks of 32 bytes"),
        ({**ROW, "bloom_filter_data": b""}, {}, "blocks of 32 bytes"),
        ({key: ROW[key] for key in ROW if key != "has_null"}, {}, "need a column has_null"),
    ],
)
def test_damage_is_named(row: Any, metadata: Any, problem: str) -> None:
    world, snapshot = table(pa.array([1]))
    index, _ = built(world, snapshot)
    schema = pa.schema([SCHEMA.field(name) for name in row])
    rows = pa.RecordBatch.from_pylist([row], schema=schema)
    write_index_file(world.store, f"_indices/{index.uuid}", "bloomfilter.lance", schema, [rows], metadata=metadata)
    with pytest.raises(CorruptTable, match=problem):
        bloomfilter.search(snapshot, index, IsIn(pa.array([1])))


def test_damaged_settings_are_named() -> None:
    world, snapshot = table(pa.array([1]))
    index, file = built(world, snapshot)
    rows = file.rows.replace_schema_metadata(None)
    for metadata in ({"bloomfilter_item": "x"}, {"bloomfilter_item": "0"}, {"bloomfilter_probability": "2"}):
        write_index_file(
            world.store,
            f"_indices/{index.uuid}",
            "bloomfilter.lance",
            rows.schema,
            rows.to_batches(),
            metadata=metadata,
        )
        with pytest.raises(CorruptTable, match="it was built for"):
            bloomfilter.remap_zones(snapshot, index, [], world, "_indices/x")
