"""What zone kinds share: cutting rows into zones, ranges of rows, and null rows of whole fragments."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pyarrow as pa
from pyroaring import BitMap
from tests.index_plans import here, metadata_of, plan_of

import tablewright as tw
from tablewright.format.index_kinds import ZONEMAP
from tablewright.indices import zonemap
from tablewright.indices.building import Entries
from tablewright.indices.files import read_index_file, write_index_file
from tablewright.indices.query import IsNull, RowRanges
from tablewright.indices.zonemap.build import ZoneMapSummary
from tablewright.indices.zones.summary import ZoneCutter
from tablewright.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


def entries(fragment_id: int, offsets: list[int], values: list[int | None]) -> Entries:
    places = np.array(offsets, np.int64)
    return Entries(pa.array(values, pa.int64()), places.astype(np.uint64), fragment_id, places)


def test_zones_do_not_depend_on_batches() -> None:
    cutter = ZoneCutter(ZoneMapSummary(pa.int64()), 3)
    batches = [
        entries(0, [0, 2], [1, None]),
        entries(0, [], []),
        entries(0, [3, 5, 6, 7, 8], [9, 2, 3, 4, 8]),
        entries(4, [9], [None]),
    ]
    found = pa.Table.from_batches(cutter.cut(batches)).to_pydict()
    assert found["fragment_id"] == [0, 0, 0, 4]
    assert found["zone_start"] == [0, 5, 8, 9]
    assert found["zone_length"] == [4, 3, 1, 1]
    assert (found["min"], found["max"]) == ([1, 2, 8, None], [9, 4, 8, None])
    assert found["null_count"] == [1, 0, 0, 1]
    assert cutter.nulls == {0: BitMap([2]), 4: BitMap([9])}


def test_ranges_are_united_within_a_fragment() -> None:
    ranges = RowRanges.of([5, 5, 1, 5, 5, 7], [0, 10, 3, 4, 30, 8], [6, 12, 9, 10, 31, 8])
    assert [part.tolist() for part in ranges] == [[1, 5, 5], [3, 0, 30], [9, 12, 31]]
    assert ranges.rows == 19
    inner = RowRanges.of([0, 0, 0, 1], [0, 1, 8, 2], [10, 2, 9, 3])
    assert [part.tolist() for part in inner] == [[0, 1], [0, 2], [10, 3]]
    assert RowRanges.of([], [], []).rows == 0


def test_every_row_of_a_fragment_may_be_null() -> None:
    uri = "memory://zones-all-null"
    tw.write_dataset(pa.table({"x": pa.array([None, None, None, 4], pa.int64())}), uri, max_rows_per_file=3)
    world = World(open_store(uri))
    snapshot = open_snapshot(world)
    plan = plan_of(snapshot, "x", ZONEMAP, UUID(int=1), settings={"rows_per_zone": 2})
    index = metadata_of(plan, zonemap.build(plan, world, here(world)))
    file = read_index_file(world.store, plan.directory, "zonemap.lance", buffers=["null_bitmap"])
    every = bytes.fromhex("010000000000000000000000")
    assert file.buffers[1] != every
    rows = file.rows.replace_schema_metadata(None)
    write_index_file(
        world.store, plan.directory, "zonemap.lance", rows.schema, rows.to_batches(), buffers={"null_bitmap": every}
    )
    assert zonemap.search(snapshot, index, IsNull()).ids.tolist() == [0, 1, 2]
