"""BTREEs of any values: what is built is sorted and complete, and every query finds what a loop over the rows finds."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.depth import deep
from tests.unit.indices.btree.tables import (
    built,
    check_lookup,
    entries_of,
    in_order,
    plan_of,
    rank,
    same,
    table_of,
    tiny,
)

from tablewright.indices import btree
from tablewright.indices.building import OldSegment
from tablewright.indices.query import Between, IsIn, IsNull, Query, StartsWith
from tablewright.snapshot import Snapshot

FLOATS = [0.0, -0.0, math.nan, -math.nan, 1.5, 2.5, -math.inf, math.inf, 1e300, -1e300]
WORDS = st.text(alphabet="aé\0z", max_size=12).map(lambda text: "shared " + text)
DAYS = st.dates(datetime.date(1960, 1, 1), datetime.date(2050, 1, 1))
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 5) | st.integers(0, 2**64 - 1)),
    "float64": (pa.float64(), st.sampled_from(FLOATS) | st.floats()),
    "float32": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, math.inf, -2.0])),
    "float16": (pa.float16(), st.sampled_from([0.0, -0.0, 1.5, -2.0])),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), WORDS | st.text(max_size=4)),
    "large_string": (pa.large_string(), WORDS),
    "binary": (
        pa.binary(),
        st.binary(max_size=3) | st.binary(min_size=300, max_size=302).map(lambda b: b"x" * 290 + b),
    ),
    "large_binary": (pa.large_binary(), st.binary(max_size=20)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "date": (pa.date32(), DAYS),
    "date64": (pa.date64(), DAYS),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))),
    "duration": (pa.duration("s"), st.integers(-99, 99).map(lambda count: datetime.timedelta(seconds=count))),
    "decimal": (pa.decimal128(4, 1), st.decimals(-99, 99, places=1)),
    "decimal256": (pa.decimal256(40, 0), st.integers(-(10**39), 10**39).map(decimal.Decimal)),
}
EXAMPLES = settings(
    max_examples=deep(12, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float16():
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, kind)


@st.composite
def columns(draw: st.DrawFn, values: st.SearchStrategy[Any], max_size: int = 60) -> list[Any]:
    """Values with nulls and repetitions."""
    few = draw(st.lists(values, min_size=1, max_size=12))
    return draw(st.lists(st.none() | st.sampled_from(few) | values, max_size=max_size))


def live(snapshot: Snapshot, values: list[Any], rows_per_file: int, deleted: set[int]) -> list[tuple[Any, int]]:
    """The entries that an index on the whole table has."""
    stable = snapshot.manifest.stable_row_ids
    return [
        (value, at if stable else (at // rows_per_file << 32) + at % rows_per_file)
        for at, value in enumerate(values)
        if at not in deleted
    ]


def named(entries: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    return [(same(value), id) for value, id in entries]


@pytest.mark.parametrize("name", KINDS)
@EXAMPLES
@given(data=st.data())
def test_what_is_built_is_sorted_and_complete_and_every_query_is_answered(name: str, data: st.DataObject) -> None:
    kind, strategy = KINDS[name]
    values = data.draw(columns(strategy))
    array = array_of(values, kind)
    values = array.to_pylist()
    rows_per_file, stable = data.draw(st.integers(1, 25)), data.draw(st.booleans())
    deleted = data.draw(st.sets(st.integers(0, max(0, len(values) - 1)), max_size=5)) if values else set()
    snapshot = table_of(array, rows_per_file, sorted(deleted), stable=stable)
    expected = in_order(live(snapshot, values, rows_per_file, deleted))
    page = data.draw(st.sampled_from([1, 3, 8, 4096]))
    with tiny(page, data.draw(st.sampled_from([1, 2, 5, 100])), by_tasks=data.draw(st.booleans())):
        index = built(snapshot)
    assert named(entries_of(snapshot, index)) == named(expected)
    check_lookup(snapshot, index, page)
    assert {entry.path.rpartition("/")[2] for entry in snapshot.world.store.list(f"_indices/{index.uuid}")} == {
        "page_data.lance",
        "page_lookup.lance",
    }
    for _ in range(3):
        query, holds = data.draw(queries(kind, strategy, [value for value in values if value is not None]))
        check_answer(snapshot, index, query, holds, expected)


@st.composite
def queries(
    draw: st.DrawFn, kind: pa.DataType, strategy: st.SearchStrategy[Any], present: list[Any]
) -> tuple[Query, Callable[[Any], bool]]:
    """A query, and whether a value satisfies it."""
    some = (st.sampled_from(present) | strategy) if present else strategy
    form = draw(st.sampled_from(["in", "between", "null", *(["prefix"] if kind in TEXT else [])]))
    if form == "in":
        keys = array_of(draw(st.lists(some, max_size=draw(st.sampled_from([3, 40])))), kind)
        names = {same(key) for key in keys.to_pylist()}
        return IsIn(keys), lambda value: value is not None and same(value) in names
    if form == "between":
        low, high = (draw(st.none() | some.map(lambda value: array_of([value], kind)[0])) for _ in "ab")
        query = Between(low=low, high=high, low_inclusive=draw(st.booleans()), high_inclusive=draw(st.booleans()))
        return query, lambda value: value is not None and within(rank(value), query)
    if form == "null":
        return IsNull(), lambda value: value is None
    text = draw(some)
    prefix = text[: draw(st.integers(1, 9))] or "q"
    return StartsWith(prefix), lambda value: value is not None and value.startswith(prefix)


TEXT = (pa.string(), pa.large_string())


def within(value: Any, query: Between) -> bool:
    low = None if query.low is None else rank(query.low.as_py())
    high = None if query.high is None else rank(query.high.as_py())
    above = low is None or value > low or (query.low_inclusive and value == low)
    below = high is None or value < high or (query.high_inclusive and value == high)
    return above and below


def check_answer(
    snapshot: Snapshot, index: Any, query: Query, holds: Callable[[Any], bool], entries: list[tuple[Any, int]]
) -> None:
    assert btree.answers(query, snapshot.schema.to_arrow().field("c").type)
    found = btree.search(snapshot, index, query, with_nulls=True)
    assert found.exact
    assert sorted(found.ids.tolist()) == sorted(id for value, id in entries if holds(value))
    assert found.nulls is not None
    nulls = [id for value, id in entries if value is None and not isinstance(query, IsNull)]
    assert sorted(found.nulls.tolist()) == sorted(nulls)
    assert btree.search(snapshot, index, query).nulls is None
    about = btree.estimate(snapshot, index, query)
    assert about is not None and 0 <= about <= len(entries) + 40


@EXAMPLES
@given(data=st.data())
def test_entries_of_older_segments_are_merged_in_under_their_new_ids(data: st.DataObject) -> None:
    kind, strategy = KINDS[data.draw(st.sampled_from(["int64", "string", "float64", "bool"]))]
    values = array_of(data.draw(columns(strategy)), kind).to_pylist()
    snapshot = table_of(array_of(values, kind), 7)
    fragments = tuple(snapshot.fragments)
    cut = data.draw(st.integers(0, len(fragments)))
    moved = np.uint64(1 << 40)

    def translate(ids: Any) -> tuple[Any, Any]:
        return ids + moved, ids % np.uint64(3) != 0

    with tiny(by_tasks=data.draw(st.booleans())):
        old = [
            built(snapshot, plan_of(snapshot, fragments=part))
            for part in (fragments[:cut:2], fragments[1:cut:2], fragments[:0])
        ]
        segments = tuple(OldSegment(index, translate) for index in old)
        index = built(snapshot, plan_of(snapshot, old=segments, fragments=fragments[cut:]))
    everything = live(snapshot, values, 7, set())
    kept = [(value, id + (1 << 40)) for value, id in everything if id >> 32 < cut and id % 3]
    new = [(value, id) for value, id in everything if id >> 32 >= cut]
    assert named(entries_of(snapshot, index)) == named(in_order(kept + new))
    check_lookup(snapshot, index, 4)
