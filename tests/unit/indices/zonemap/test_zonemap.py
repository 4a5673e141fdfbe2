"""A zone map: what is written of each zone, which zones may match, and what is kept of older segments."""

from __future__ import annotations

import decimal
import itertools
import math
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap
from tests.index_plans import here, metadata_of, plan_of

import tablewright as tw
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.fragment_rows import encode_fragment_rows
from tablewright.format.index_kinds import ZONEMAP
from tablewright.indices import zonemap
from tablewright.indices.building import OldSegment
from tablewright.indices.files import IndexTable, read_index_file, write_index_file
from tablewright.indices.query import Between, Contains, Hits, IsIn, IsNull, Query, StartsWith
from tablewright.indices.zonemap.build import ZoneMapSummary
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

NAN = math.nan
NEGATIVE_NAN = np.float64(-NAN)
numbers = itertools.count(1)


def table(values: pa.Array, per_file: int = 6, delete: str | None = None) -> tuple[World, Snapshot]:
    uri = f"memory://zonemap-{next(numbers)}"
    dataset = tw.write_dataset(pa.table({"n": range(len(values)), "x": values}), uri, max_rows_per_file=per_file)
    if delete:
        dataset.delete(delete)
    world = World(open_store(uri))
    return world, open_snapshot(world)


def built(world: World, snapshot: Snapshot, rows: int = 2, **more: Any) -> tuple[Any, IndexTable]:
    plan = plan_of(snapshot, "x", ZONEMAP, UUID(int=next(numbers)), settings={"rows_per_zone": rows}, **more)
    index = metadata_of(plan, zonemap.build(plan, world, here(world)))
    return index, read_index_file(world.store, plan.directory, "zonemap.lance", buffers=["null_bitmap"])


def found(hits: Hits) -> list[tuple[int, int, int]]:
    assert hits.ranges is not None
    assert not len(hits.ids)
    assert not hits.exact
    return list(zip(*(part.tolist() for part in hits.ranges), strict=True))


def without_nulls(world: World, index: Any, file: IndexTable) -> None:
    """Write the file again, as old releases did: without its null rows."""
    schema, batches = file.rows.schema.remove_metadata(), file.rows.replace_schema_metadata(None).to_batches()
    write_index_file(world.store, f"_indices/{index.uuid}", "zonemap.lance", schema, batches)


def test_zones_are_cut_over_live_rows_and_described_by_physical_ones() -> None:
    world, snapshot = table(pa.array([1, 2, None, 4, 5, 6, 7, 8, None, 10]), delete="n in (1, 4, 5)")
    index, file = built(world, snapshot)
    assert file.rows.to_pydict() == {
        "min": [1, 4, 7, 10],
        "max": [1, 4, 8, 10],
        "null_count": [1, 0, 0, 1],
        "nan_count": [0, 0, 0, 0],
        "fragment_id": [0, 0, 1, 1],
        "zone_start": [0, 3, 0, 2],
        "zone_length": [3, 1, 2, 2],
    }
    assert file.metadata["rows_per_zone"] == "2"
    assert file.buffers[1] == encode_fragment_rows({0: BitMap([2]), 1: BitMap([2])})
    assert index.details_value == bytes.fromhex("080210001801")
    assert [field.nullable for field in file.rows.schema] == [True, True, False, False, False, False, False]


def test_a_zone_continues_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    world, snapshot = table(pa.array(range(100)), per_file=60)
    monkeypatch.setattr("tablewright.data.sizes._ROWS_MAX", 7)
    _, file = built(world, snapshot, rows=25)
    assert file.rows["min"].to_pylist() == [0, 25, 50, 60, 85]
    assert file.rows["zone_length"].to_pylist() == [25, 25, 10, 25, 15]


@pytest.mark.parametrize(
    ("values", "low", "high", "nans"),
    [
        ([1.0, NAN, None, -0.0], -0.0, NAN, 1),
        ([NAN, NAN], NAN, NAN, 2),
        ([1.0, float(NEGATIVE_NAN)], NAN, NAN, 1),
        ([None, None], None, None, 0),
        ([0.0, -0.0], -0.0, 0.0, 0),
    ],
)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_bounds_of_floats(values: list[Any], low: Any, high: Any, nans: int, kind: pa.DataType) -> None:
    world, snapshot = table(pa.array(values, pa.float64()).cast(kind))
    _, file = built(world, snapshot, rows=10)
    assert repr(file.rows["min"].to_pylist()) == repr([low])
    assert repr(file.rows["max"].to_pylist()) == repr([high])
    assert file.rows["nan_count"].to_pylist() == [nans]


def test_nan_may_be_anywhere_without_a_lower_bound() -> None:
    world, snapshot = table(pa.array([1.0, 2.0, 5.0, NAN, 7.0, 8.0]))
    index, _ = built(world, snapshot)
    low, high = pa.scalar(3.0), pa.scalar(0.0)
    assert found(zonemap.search(snapshot, index, Between(low=low))) == [(0, 2, 6)]
    assert found(zonemap.search(snapshot, index, Between(high=high))) == [(0, 2, 4)]
    assert found(zonemap.search(snapshot, index, Between(low=pa.scalar(-1.0), high=high))) == []
    assert found(zonemap.search(snapshot, index, IsIn(pa.array([NAN])))) == [(0, 2, 4)]
    assert found(zonemap.search(snapshot, index, Between(low=pa.scalar(NAN)))) == [(0, 2, 4)]


def test_nan_as_a_bound_is_above_all_numbers_or_below_them() -> None:
    world, snapshot = table(pa.array([1.0, 2.0, NAN, 5.0]))
    index, _ = built(world, snapshot)
    above, below = pa.scalar(NAN), pa.scalar(float(NEGATIVE_NAN))
    assert found(zonemap.search(snapshot, index, Between(low=above))) == [(0, 2, 4)]
    assert found(zonemap.search(snapshot, index, Between(high=above))) == [(0, 0, 4)]
    assert found(zonemap.search(snapshot, index, Between(low=below))) == [(0, 0, 4)]
    assert found(zonemap.search(snapshot, index, Between(high=below))) == [(0, 2, 4)]


def test_both_zeros_are_looked_for() -> None:
    world, snapshot = table(pa.array([-0.0, -0.0, 0.0, 0.0, 1.0, 1.0]))
    index, _ = built(world, snapshot)
    for zero in (-0.0, 0.0):
        assert found(zonemap.search(snapshot, index, IsIn(pa.array([zero])))) == [(0, 0, 4)]
        above = Between(low=pa.scalar(zero), low_inclusive=False)
        assert found(zonemap.search(snapshot, index, above)) == [(0, 0, 6)]
        below = Between(high=pa.scalar(zero), high_inclusive=False)
        assert found(zonemap.search(snapshot, index, below)) == [(0, 0, 4)]


SAMPLES = [
    pa.array([True, True, False, False]),
    *(pa.array([1, 2, 3, 4], kind) for kind in (pa.int8(), pa.uint64(), pa.date32(), pa.date64(), pa.duration("s"))),
    *(pa.array([1, 2, 3, 4], kind) for kind in (pa.time32("s"), pa.time64("us"), pa.timestamp("us", "UTC"))),
    *(pa.array([1.0, 2.0, 3.0, 4.0]).cast(kind) for kind in (pa.float16(), pa.float32())),
    *(pa.array(["a", "b", "c", "d"], kind) for kind in (pa.string(), pa.large_string())),
    *(pa.array([b"a", b"b", b"c", b"d"], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(1))),
    *(pa.array([decimal.Decimal(i) for i in range(4)], kind) for kind in (pa.decimal128(9, 2), pa.decimal256(50, 2))),
    pa.array(["a", "b", "c", "d"]).dictionary_encode(),
]


@pytest.mark.parametrize("values", SAMPLES, ids=lambda values: str(values.type))
def test_every_ordered_type_is_searched(values: pa.Array) -> None:
    assert zonemap.supported(values.type)
    world, snapshot = table(values)
    index, file = built(world, snapshot)
    plain = values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values
    assert file.rows.schema.field("min").type == values.type
    assert zonemap.answers(IsIn(plain[:1]), values.type)
    assert found(zonemap.search(snapshot, index, IsIn(plain.take(pa.array([0]))))) != [(0, 0, 4)]
    last = plain[3]
    assert found(zonemap.search(snapshot, index, Between(low=last, high=last)))[-1] == (0, 2, 4)
    exclusive = Between(low=last, low_inclusive=False)
    assert len(found(zonemap.search(snapshot, index, exclusive))) == (values.type == pa.bool_())


def test_prefixes() -> None:
    world, snapshot = table(pa.array(["aa", "ab", "b", "ba", "bb", "é"]))
    index, _ = built(world, snapshot)
    assert found(zonemap.search(snapshot, index, StartsWith("a"))) == [(0, 0, 2)]
    assert found(zonemap.search(snapshot, index, StartsWith("b"))) == [(0, 2, 6)]
    assert found(zonemap.search(snapshot, index, StartsWith("é"))) == [(0, 4, 6)]
    assert found(zonemap.search(snapshot, index, StartsWith("c"))) == [(0, 4, 6)]
    assert found(zonemap.search(snapshot, index, StartsWith("\U0010ffff"))) == []


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.list_(pa.int8(), 1)], ids=str
)
def test_types_without_order_know_their_nulls(kind: pa.DataType) -> None:
    value: Any = {"a": 1} if pa.types.is_struct(kind) else [1]
    world, snapshot = table(pa.array([value, None, value, value], kind))
    index, file = built(world, snapshot)
    assert file.rows["min"].null_count == 2
    assert zonemap.search(snapshot, index, IsNull()).ids.tolist() == [1]
    assert not zonemap.answers(IsIn(pa.array([1])), kind)


def test_nulls_are_exact_where_they_are_known() -> None:
    world, snapshot = table(pa.array([1, None, 3, 4, 5, 6, None, 8]), per_file=6)
    index, file = built(world, snapshot)
    hits = zonemap.search(snapshot, index, IsNull(), with_nulls=True)
    assert (hits.ids.tolist(), hits.exact, hits.ranges) == ([1, 1 << 32], True, None)
    assert hits.nulls is not None
    assert hits.nulls.tolist() == []
    assert zonemap.estimate(snapshot, index, IsNull()) == 2
    both = zonemap.search(snapshot, index, IsIn(pa.array([4])), with_nulls=True)
    assert both.nulls is not None
    assert both.nulls.tolist() == [1, 1 << 32]
    without_nulls(world, index, file)
    assert found(zonemap.search(snapshot, index, IsNull())) == [(0, 0, 2), (1, 0, 2)]
    assert zonemap.search(snapshot, index, IsIn(pa.array([4])), with_nulls=True).nulls is None
    assert zonemap.estimate(snapshot, index, IsIn(pa.array([4]))) == 2


def test_zones_of_older_segments_are_kept_for_their_fragments() -> None:
    world, snapshot = table(pa.array([1, None, 3, 4, 5, None, 7, 8]), per_file=2)
    first, _ = built(world, snapshot, fragments=snapshot.fragments[:2])
    old = OldSegment(first, lambda ids: (ids, np.ones(len(ids), np.bool_)), fragments=(1,))
    merged, file = built(world, snapshot, rows=1, fragments=snapshot.fragments[2:], old=(old,))
    assert file.rows["fragment_id"].to_pylist() == [1, 2, 2, 3, 3]
    assert file.buffers[1] == encode_fragment_rows({2: BitMap([1])})
    assert merged.details_value == bytes.fromhex("080110001801")
    whole, file = built(world, snapshot, rows=3, fragments=(), old=(OldSegment(first, old.translate, (0, 1)),))
    assert file.rows["fragment_id"].to_pylist() == [0, 1]
    assert zonemap.search(snapshot, whole, IsNull()).ids.tolist() == [1]


def test_unknown_nulls_stay_unknown_when_segments_are_merged() -> None:
    world, snapshot = table(pa.array([1, None, 3, 4]), per_file=2)
    first, file = built(world, snapshot, fragments=snapshot.fragments[:1])
    without_nulls(world, first, file)
    old = OldSegment(first, lambda ids: (ids, np.ones(len(ids), np.bool_)), fragments=(0,))
    merged, file = built(world, snapshot, fragments=snapshot.fragments[1:], old=(old,))
    assert "null_bitmap" not in file.metadata
    assert merged.details_value == bytes.fromhex("080210001800")
    assert found(zonemap.search(snapshot, merged, IsNull())) == [(0, 0, 2)]


def test_an_untrained_index_has_an_empty_file() -> None:
    world, snapshot = table(pa.array([1]))
    index, file = built(world, snapshot, fragments=())
    assert file.rows.num_rows == 0
    assert file.buffers[1] == bytes(4)
    assert found(zonemap.search(snapshot, index, IsIn(pa.array([1])))) == []
    assert zonemap.search(snapshot, index, IsNull()).ids.tolist() == []


def test_large_parts_go_through_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.indices.zones.build._INLINE_BYTES", 10)
    monkeypatch.setattr("tablewright.indices.zones.build._TASK_BYTES", 1)
    world, snapshot = table(pa.array(range(12)), per_file=4)
    index, file = built(world, snapshot)
    assert file.rows["min"].to_pylist() == [0, 2, 4, 6, 8, 10]
    assert [entry.path for entry in world.store.list(f"_indices/{index.uuid}")] == [
        f"_indices/{index.uuid}/zonemap.lance"
    ]


def test_settings_are_checked() -> None:
    world, snapshot = table(pa.array([1]))
    for wrong in (0, -1, True, "8", 1.5):
        with pytest.raises(InvalidRequest, match="rows_per_zone must be a positive whole number"):
            built(world, snapshot, rows=wrong)  # type: ignore[arg-type]


def test_a_query_of_another_kind_is_a_type_error() -> None:
    world, snapshot = table(pa.array([1]))
    index, _ = built(world, snapshot)
    wrong: list[Query] = [Contains("a"), StartsWith("a")]
    for query in wrong:
        assert not zonemap.answers(query, pa.int64())
        with pytest.raises(TypeError):
            zonemap.search(snapshot, index, query)


SCHEMA = ZoneMapSummary(pa.int64()).schema
ROW = {"min": 1, "max": 2, "null_count": 0, "nan_count": 0, "fragment_id": 0, "zone_start": 0, "zone_length": 2}


@pytest.mark.parametrize(
    ("row", "metadata", "buffers", "problem"),
    [
        ({**ROW, "zone_length": 0}, {}, {}, "a zone is empty"),
        ({**ROW, "zone_start": 1 << 32}, {}, {}, "beyond the addresses"),
        ({**ROW, "fragment_id": 1 << 40}, {}, {}, "beyond the addresses"),
        ({key: ROW[key] for key in ROW if key != "min"}, {}, {}, "needs the columns"),
        ({key: ROW[key] for key in ROW if key != "zone_start"}, {}, {}, "needs a column zone_start"),
        (ROW, {"null_bitmap": "x"}, {}, "which is no number"),
        (ROW, {}, {"null_bitmap": b"\1\0"}, "ends too early"),
        (ROW, {}, {"null_bitmap": b"\1\0\0\0\0\0\0\0\xff\0\0\0"}, "ends too early"),
        (ROW, {}, {"null_bitmap": b"\0\0\0\0\0"}, "5 bytes where 4 were expected"),
    ],
)
def test_damage_is_named(row: Any, metadata: Any, buffers: Any, problem: str) -> None:
    world, snapshot = table(pa.array([1]))
    index, _ = built(world, snapshot)
    schema = pa.schema([SCHEMA.field(name) for name in row])
    rows = pa.RecordBatch.from_pylist([row], schema=schema)
    write_index_file(
        world.store, f"_indices/{index.uuid}", "zonemap.lance", schema, [rows], metadata=metadata, buffers=buffers
    )
    with pytest.raises(CorruptTable, match=problem):
        zonemap.search(snapshot, index, IsIn(pa.array([1])))
