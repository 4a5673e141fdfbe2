"""Zones after a rewrite of fragments: at their new places, split, dropped, united, with nulls counted again."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap
from tests.index_plans import here, metadata_of, plan_of

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment_rows import encode_fragment_rows
from tablewright.format.index_kinds import BLOOMFILTER, ZONEMAP
from tablewright.format.naming import index_dir
from tablewright.format.row_set import RowSet
from tablewright.indices import bloomfilter, zonemap
from tablewright.indices.files import IndexTable, read_index_file
from tablewright.indices.zones.remap import remapped_nulls, remapped_zones
from tablewright.indices.zones.summary import zone_places
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

numbers = itertools.count(1)
NONE = RowSet()


def zones(*places: tuple[int, int, int]) -> pa.RecordBatch:
    columns = zone_places(*(np.array(part) for part in zip(*places, strict=True)))
    return pa.RecordBatch.from_pydict({**columns, "tag": list(range(len(places)))})


def listed(batch: pa.RecordBatch) -> list[tuple[int, int, int, int]]:
    return sorted(
        zip(*(batch.to_pydict()[name] for name in ("fragment_id", "zone_start", "zone_length", "tag")), strict=True)
    )


def test_zones_move_by_the_rank_of_their_rows() -> None:
    group = AddressMap(
        (OldRows(3, 10, RowSet.of([0, 4, 5, 9])), OldRows(1, 4)), (NewRows(7, 5), NewRows(8, 0), NewRows(9, 5))
    )
    before = zones((3, 1, 3), (3, 4, 2), (3, 6, 4), (1, 0, 4), (2, 0, 5))
    assert listed(remapped_zones(before, group)) == [
        (2, 0, 5, 4),
        (7, 0, 3, 0),
        (7, 3, 2, 2),
        (9, 0, 1, 2),
        (9, 1, 4, 3),
    ]


def test_zones_longer_than_their_fragment_are_cut() -> None:
    group = AddressMap((OldRows(0, 3),), (NewRows(1, 3),))
    assert listed(remapped_zones(zones((0, 2, 50)), group)) == [(1, 2, 1, 0)]


def test_nulls_move_one_by_one() -> None:
    group = AddressMap((OldRows(0, 4, RowSet.of([1])), OldRows(1, 2)), (NewRows(5, 2), NewRows(6, 3)))
    before = {0: BitMap([1, 2, 3, 900]), 1: BitMap([0]), 2: BitMap([7])}
    assert remapped_nulls(before, group) == {2: BitMap([7]), 5: BitMap([1]), 6: BitMap([0, 1])}


def moved(module: Any, kind: Any, settings: dict[str, Any], group: AddressMap, values: pa.Array) -> IndexTable:
    uri = f"memory://moved-{next(numbers)}"
    dataset = tw.write_dataset(pa.table({"n": range(len(values)), "x": values}), uri, max_rows_per_file=4)
    world = World(open_store(uri))
    snapshot: Snapshot = open_snapshot(world)
    assert len(snapshot.fragments) == len(list(dataset.get_fragments()))
    plan = plan_of(snapshot, "x", kind, UUID(int=next(numbers)), settings=settings)
    index = metadata_of(plan, module.build(plan, world, here(world)))
    written = module.remap_zones(snapshot, index, [group], world, index_dir(UUID(int=next(numbers))))
    assert written.details_value == index.details_value
    assert written.details_type_url == index.details_type_url
    directory = f"_indices/{UUID(int=next(numbers) - 1)}"
    return read_index_file(world.store, directory, kind.files[0], buffers=["null_bitmap"])


VALUES = pa.array([1, None, 3, 4, 5, 6, 7, None, 9, 10, 11, 12])


def test_small_neighbours_of_a_zone_map_are_united() -> None:
    group = AddressMap((OldRows(0, 4, RowSet.of([2])), OldRows(1, 4, RowSet.of([0, 3]))), (NewRows(9, 5),))
    file = moved(zonemap, ZONEMAP, {"rows_per_zone": 4}, group, VALUES)
    assert file.rows.to_pylist() == [
        {"min": 9, "max": 12, "null_count": 0, "nan_count": 0, "fragment_id": 2, "zone_start": 0, "zone_length": 4},
        {"min": 1, "max": 4, "null_count": 1, "nan_count": 0, "fragment_id": 9, "zone_start": 0, "zone_length": 3},
        {"min": 5, "max": 7, "null_count": 0, "nan_count": 0, "fragment_id": 9, "zone_start": 3, "zone_length": 2},
    ]
    assert file.buffers[1] == encode_fragment_rows({9: BitMap([1])})
    file = moved(zonemap, ZONEMAP, {"rows_per_zone": 5}, group, VALUES)
    assert file.rows.slice(1).to_pylist() == [
        {"min": 1, "max": 7, "null_count": 1, "nan_count": 0, "fragment_id": 9, "zone_start": 0, "zone_length": 5}
    ]


def test_bloom_filters_are_united_and_split() -> None:
    settings = {"number_of_items": 8, "probability": 0.01}
    apart = moved(
        bloomfilter, BLOOMFILTER, settings, AddressMap((OldRows(1, 4),), (NewRows(9, 3), NewRows(10, 1))), VALUES
    )
    first, _, *both = (row["bloom_filter_data"] for row in apart.rows.to_pylist())
    assert both[0] == both[1]
    assert apart.rows["has_null"].to_pylist() == [True, False, False, True]
    joined = moved(
        bloomfilter, BLOOMFILTER, settings, AddressMap((OldRows(0, 4), OldRows(1, 4)), (NewRows(9, 8),)), VALUES
    )
    *_, one = joined.rows.to_pylist()
    assert one["zone_length"] == 8
    assert one["bloom_filter_data"] == bytes(a | b for a, b in zip(first, both[0], strict=True))


def test_a_map_that_does_not_hold_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the old fragments have 4 live rows, the new ones 3 rows"):
        moved(zonemap, ZONEMAP, {}, AddressMap((OldRows(0, 4, NONE),), (NewRows(9, 3),)), VALUES)
