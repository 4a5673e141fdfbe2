"""Zone indices never lose a row: a search returns at least what matches, null rows exactly, also after a rewrite."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tests.depth import deep

from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.index import IndexMetadata
from tablewright.format.row_set import RowSet
from tablewright.indices import bloomfilter, zonemap
from tablewright.indices.bloomfilter.blocks import bytes_needed
from tablewright.indices.bloomfilter.build import BloomSummary
from tablewright.indices.building import Entries
from tablewright.indices.query import Between, Hits, IsIn, IsNull, Query, StartsWith
from tablewright.indices.zonemap.build import ZoneMapSummary
from tablewright.indices.zonemap.order import keys_of
from tablewright.indices.zones.file import write_zones
from tablewright.indices.zones.summary import ZoneCutter
from tablewright.storage import open_store
from tablewright.storage.base import Store
from tablewright.world import World

names = itertools.count(1)
FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan, -math.nan, None]
TEXTS = ["", "a", "ab", "abc", "b", "é", "\U0010ffff", None]
NUMBERS = [-3, -1, 0, 1, 2, 100, None]
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.string(), TEXTS),
    (pa.int16(), NUMBERS),
]
VALUES = {str(kind): values for kind, values in TYPES}


@dataclass(frozen=True)
class Rows:
    """The rows of some fragments, by physical offset; deleted ones are in no index."""

    type: pa.DataType
    values: dict[int, list[Any]]
    deleted: dict[int, frozenset[int]]

    def live(self) -> list[tuple[int, int, Any]]:
        return [
            (id, offset, value)
            for id, values in self.values.items()
            for offset, value in enumerate(values)
            if offset not in self.deleted[id]
        ]


class Places:
    """One index in a store."""

    def __init__(self, store: Store, directory: str) -> None:
        self.store, self.directory = store, directory

    def index_place(self, index: IndexMetadata) -> tuple[Store, str]:
        return self.store, self.directory


INDEX = IndexMetadata(uuid=UUID(int=1), fields=(0,), name="i", dataset_version=1)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    kind, values = draw(st.sampled_from(TYPES))
    count = draw(st.integers(1, 3))
    found = {3 * id: draw(st.lists(st.sampled_from(values), min_size=1, max_size=12)) for id in range(count)}
    gone = {id: draw(st.frozensets(st.integers(0, len(some) - 1))) for id, some in found.items()}
    return Rows(kind, found, gone)


@st.composite
def queries(draw: st.DrawFn, kind: pa.DataType) -> Query:
    values = [value for value in VALUES[str(kind)] if value is not None]
    some = st.sampled_from(values)
    shape = draw(st.sampled_from(["in", "between", "null", "starts"]))
    if shape == "in":
        return IsIn(pa.array(draw(st.lists(some, min_size=1, max_size=3)), kind))
    if shape == "starts" and kind == pa.string():
        return StartsWith(draw(some.filter(bool)))
    if shape == "null":
        return IsNull()
    low, high = (
        None if value is None else pa.scalar(value, kind) for value in draw(st.tuples(*[st.none() | some] * 2))
    )
    return Between(low=low, high=high, low_inclusive=draw(st.booleans()), high_inclusive=draw(st.booleans()))


def key(value: Any, kind: pa.DataType) -> Any:
    """Values in the order that filters have: floats by their bits."""
    return int(keys_of(pa.array([value], kind))[0]) if pa.types.is_floating(kind) else value


def meets(query: Query, value: Any, kind: pa.DataType) -> bool:
    if isinstance(query, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(query, StartsWith):
        return str(value).startswith(query.prefix)
    mine = key(value, kind)
    if isinstance(query, IsIn):
        return mine in [key(each, kind) for each in query.values.to_pylist()]
    assert isinstance(query, Between)
    low = query.low is None or (key(query.low.as_py(), kind), not query.low_inclusive) <= (mine, False)
    high = query.high is None or (mine, not query.high_inclusive) <= (key(query.high.as_py(), kind), False)
    return low and high


def index_of(
    given: Rows, summary: Any, rows_per_zone: int, name: str, metadata: dict[str, str]
) -> tuple[World, Places]:
    store = open_store(f"memory://zones-{next(names)}")
    entries = []
    for id, values in given.values.items():
        offsets = np.array([each for each in range(len(values)) if each not in given.deleted[id]], np.int64)
        array = pa.array([values[offset] for offset in offsets.tolist()], given.type)
        half = len(offsets) // 2
        for part in (slice(0, half), slice(half, None)):
            entries.append(Entries(array[part], offsets[part].astype(np.uint64), id, offsets[part]))
    cutter = ZoneCutter(summary, rows_per_zone)
    zones = list(cutter.cut(entries))
    write_zones(store, "d", name, summary, zones, cutter.nulls, metadata)
    return World(store), Places(store, "d")


def check(hits: Hits, query: Query, live: list[tuple[int, int, Any]], kind: pa.DataType) -> None:
    wanted = [(id, offset) for id, offset, value in live if meets(query, value, kind)]
    if isinstance(query, IsNull):
        assert hits.exact
        assert hits.ids.tolist() == sorted(id << 32 | offset for id, offset in wanted)
        return
    assert hits.ranges is not None
    ranges = list(zip(*(part.tolist() for part in hits.ranges), strict=True))
    for id, offset in wanted:
        assert any(id == fragment and start <= offset < stop for fragment, start, stop in ranges), (id, offset, ranges)
    nulls = [] if hits.nulls is None else hits.nulls.tolist()
    assert nulls == sorted(id << 32 | offset for id, offset, value in live if value is None)


@st.composite
def rewrites(draw: st.DrawFn, given: Rows) -> tuple[AddressMap, Rows]:
    """A rewrite of some of the fragments, and the rows as they are after it."""
    chosen = draw(st.lists(st.sampled_from(list(given.values)), min_size=1, unique=True))
    moved = [value for id in chosen for offset, value in enumerate(given.values[id]) if offset not in given.deleted[id]]
    cuts = sorted(draw(st.lists(st.integers(0, len(moved)), max_size=2)))
    pieces = [moved[low:high] for low, high in itertools.pairwise([0, *cuts, len(moved)])]
    group = AddressMap(
        [OldRows(id, len(given.values[id]), RowSet.of(sorted(given.deleted[id]))) for id in chosen],
        [NewRows(100 + number, len(piece)) for number, piece in enumerate(pieces)],
    )
    rest = [id for id in given.values if id not in chosen]
    values = {id: given.values[id] for id in rest} | {100 + number: piece for number, piece in enumerate(pieces)}
    return group, Rows(given.type, values, {id: given.deleted.get(id, frozenset()) for id in values})


def search_twice(data: st.DataObject, given: Rows, module: Any, index: tuple[World, Places]) -> None:
    """Before a rewrite and after it."""
    world, places = index
    group, later = data.draw(rewrites(given))
    for now in (given, later):
        for _ in range(4):
            query = data.draw(queries(given.type))
            if module.answers(query, given.type):
                hits = module.search(places, INDEX, query, with_nulls=True)
                check(hits, query, now.live(), given.type)
                guess = module.estimate(places, INDEX, query)
                assert guess is None or guess >= (len(hits.ids) if hits.ranges is None else hits.ranges.rows)
        if now is given:
            module.remap_zones(places, INDEX, [group], world, "d2")
            places = Places(world.store, "d2")


@settings(max_examples=deep(40, 600), deadline=None)
@drawn(st.data(), rows(), st.integers(1, 5))
def test_zone_maps_lose_nothing(data: st.DataObject, given: Rows, rows_per_zone: int) -> None:
    metadata = {"rows_per_zone": str(rows_per_zone)}
    index = index_of(given, ZoneMapSummary(given.type), rows_per_zone, "zonemap.lance", metadata)
    search_twice(data, given, zonemap, index)


@settings(max_examples=deep(25, 400), deadline=None)
@drawn(st.data(), rows(), st.integers(1, 5))
def test_bloom_filters_lose_nothing(data: st.DataObject, given: Rows, items: int) -> None:
    metadata = {"bloomfilter_item": str(items), "bloomfilter_probability": "0.1"}
    summary = BloomSummary(bytes_needed(items, 0.1))
    search_twice(data, given, bloomfilter, index_of(given, summary, items, "bloomfilter.lance", metadata))
