"""BITMAP, LABEL_LIST and NGRAM: what a build on any values finds is what Python finds, also after merges and remaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.depth import deep
from tests.index_builds import FUNCTIONS, built, entry_of, ids_of, plan_of, table_of

import tablewright as tw
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BITMAP, LABEL_LIST, NGRAM, IndexKind
from tablewright.indices.building import OldSegment
from tablewright.indices.ngram.tokens import query_tokens
from tablewright.indices.query import Between, Contains, HasAll, HasAny, Hits, IsIn, IsNull, Query, StartsWith
from tablewright.snapshot import Snapshot
from tablewright.storage import open_store
from tablewright.world import World

LIGHT = settings(max_examples=deep(12, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
NAMES = itertools.count()
ABSENT = object()

floats = st.sampled_from([0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, 1e300])
values = st.one_of(
    st.lists(st.none() | st.integers(-3, 3), max_size=24).map(lambda each: pa.array(each, pa.int32())),
    st.lists(st.none() | st.integers(2**63, 2**63 + 3), max_size=24).map(lambda each: pa.array(each, pa.uint64())),
    st.lists(st.none() | floats, max_size=24).map(lambda each: pa.array(each, pa.float64())),
    st.lists(st.none() | st.sampled_from(["", "a", "ab", "b", "é", "z\U0010ffff"]), max_size=24).map(
        lambda each: pa.array(each, pa.string())
    ),
    st.lists(st.none() | st.booleans(), max_size=24).map(lambda each: pa.array(each, pa.bool_())),
    st.lists(st.none() | st.binary(max_size=2), max_size=24).map(lambda each: pa.array(each, pa.binary())),
)
lists = st.lists(st.none() | st.lists(st.none() | st.integers(0, 4), max_size=4), max_size=20)
texts = st.lists(st.none() | st.text(st.sampled_from("abcABC1 -éßﬁİΣ漢🙂́"), max_size=12), min_size=1, max_size=12)


def written(column: pa.Array, stable: bool) -> str:
    """A table in fragments of seven rows, some rows of which are deleted."""
    uri = f"memory://key-sets-{next(NAMES)}"
    tw.write_dataset(table_of(column), uri, max_rows_per_file=7, enable_stable_row_ids=stable)
    if len(column) > 2:
        tw.dataset(uri).delete("i % 5 = 2")
    return uri


def rows_of(uri: str, stable: bool) -> dict[int, Any]:
    """The value of each live row, by the id that an index stores."""
    return dict(zip(ids_of(uri, stable), tw.dataset(uri).to_table()["x"].to_pylist(), strict=True))


def order(value: Any) -> tuple[int, Any]:
    """Values as filters order them: NaN after all numbers."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def same(one: Any, other: Any) -> bool:
    return order(one) == order(other)


def within(value: Any, query: Between) -> bool:
    low, high = (None if bound is None else order(bound.as_py()) for bound in (query.low, query.high))
    above = low is None or order(value) > low or (query.low_inclusive and order(value) == low)
    return above and (high is None or order(value) < high or (query.high_inclusive and order(value) == high))


def assert_found(hits: Hits, rows: dict[int, Any], truth: Callable[[Any], bool], *, null_is: bool = False) -> None:
    expected = {number for number, value in rows.items() if (truth(value) if value is not None else null_is)}
    assert sorted(hits.ids.tolist()) == sorted(expected) if hits.exact else expected <= set(hits.ids.tolist())
    assert len(set(hits.ids.tolist())) == len(hits.ids)
    if hits.nulls is not None:
        nulls = {number for number, value in rows.items() if value is None}
        assert sorted(hits.nulls.tolist()) == sorted(set() if null_is else nulls)


def search(kind: IndexKind, snapshot: Snapshot, entry: IndexMetadata, query: Query) -> Hits:
    hits: Hits = FUNCTIONS[kind].search(snapshot, entry, query, with_nulls=True)
    assert hits.nulls is not None
    about = FUNCTIONS[kind].estimate(snapshot, entry, query)
    assert about is not None
    assert about >= len(hits.ids) > 0 or (about >= 0 and not len(hits.ids))
    return hits


def check_values(snapshot: Snapshot, entry: IndexMetadata, rows: dict[int, Any], kind: pa.DataType) -> None:
    present = [value for value in rows.values() if value is not None]
    assert_found(search(BITMAP, snapshot, entry, IsNull()), rows, lambda value: False, null_is=True)
    assert_found(search(BITMAP, snapshot, entry, Between()), rows, lambda value: True)
    for count in (1, 2):
        wanted = present[:count]
        hits = search(BITMAP, snapshot, entry, IsIn(pa.array(wanted, kind)))
        assert_found(hits, rows, lambda value, wanted=wanted: any(same(value, each) for each in wanted))
    for value, inclusive in itertools.product(present[:3], (True, False)):
        bound = pa.scalar(value, kind)
        for query in (
            Between(low=bound, low_inclusive=inclusive),
            Between(high=bound, high_inclusive=inclusive),
            Between(low=bound, high=pa.scalar(present[-1], kind), low_inclusive=inclusive),
        ):
            assert_found(search(BITMAP, snapshot, entry, query), rows, lambda each, query=query: within(each, query))
    if kind == pa.string():
        for prefix in ("a", "z", "z\U0010ffff", "é"):
            hits = search(BITMAP, snapshot, entry, StartsWith(prefix))
            assert_found(hits, rows, lambda value, prefix=prefix: value.startswith(prefix))


@STABLE
@LIGHT
@given(column=values)
@example(column=pa.array([math.nan, None, -math.nan, 0.0, -0.0, 0.0], pa.float64()))
def test_a_bitmap_finds_what_python_finds(stable: bool, column: pa.Array) -> None:
    uri = written(column, stable)
    snapshot, entry = built(uri, "x", BITMAP)
    check_values(snapshot, entry, rows_of(uri, stable), column.type)


def check_lists(snapshot: Snapshot, entry: IndexMetadata, rows: dict[int, Any]) -> None:
    for wanted in ([0], [1, 2], [0, 0, 3], [None], [1, None], [9]):
        array = pa.array(wanted, pa.int64())
        assert_found(
            search(LABEL_LIST, snapshot, entry, HasAny(array)),
            rows,
            lambda value, wanted=wanted: any(each in value for each in wanted),
        )
        assert_found(
            search(LABEL_LIST, snapshot, entry, HasAll(array)),
            rows,
            lambda value, wanted=wanted: all(each in value for each in wanted),
        )


@STABLE
@LIGHT
@given(column=lists, wide=st.booleans())
def test_a_label_list_finds_what_python_finds(stable: bool, column: list[Any], wide: bool) -> None:
    kind = pa.large_list(pa.int64()) if wide else pa.list_(pa.int64())
    uri = written(pa.array(column, kind), stable)
    snapshot, entry = built(uri, "x", LABEL_LIST)
    check_lists(snapshot, entry, rows_of(uri, stable))


def check_texts(snapshot: Snapshot, entry: IndexMetadata, rows: dict[int, Any]) -> None:
    parts = {text[at : at + 5] for text in rows.values() if text for at in range(0, len(text), 2)}
    for part in sorted({*parts, "abc", "zzz"}):
        if not len(query_tokens(part)):
            assert not FUNCTIONS[NGRAM].answers(Contains(part), pa.string())
            continue
        hits = search(NGRAM, snapshot, entry, Contains(part))
        assert_found(hits, rows, lambda value, part=part: part in value)
        hits = search(NGRAM, snapshot, entry, StartsWith(part))
        assert_found(hits, rows, lambda value, part=part: value.startswith(part))


@STABLE
@LIGHT
@given(column=texts)
def test_an_ngram_finds_at_least_what_python_finds(stable: bool, column: list[Any]) -> None:
    uri = written(pa.array(column, pa.string()), stable)
    snapshot, entry = built(uri, "x", NGRAM)
    check_texts(snapshot, entry, rows_of(uri, stable))


def moved(ids: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Another place for every row, in another order; a third of the rows is gone."""
    return np.uint64(1 << 40) - ids, ids % np.uint64(3) != 0


def where(rows: dict[int, Any]) -> dict[int, Any]:
    ids, kept = moved(np.array(list(rows), np.uint64))
    pairs = zip(ids.tolist(), kept.tolist(), rows.values(), strict=True)
    return {number: value for number, keep, value in pairs if keep}


def check(kind: IndexKind, snapshot: Snapshot, entry: IndexMetadata, rows: dict[int, Any], column: pa.Array) -> None:
    if kind is BITMAP:
        check_values(snapshot, entry, rows, column.type)
    elif kind is LABEL_LIST:
        check_lists(snapshot, entry, rows)
    else:
        check_texts(snapshot, entry, rows)


columns = st.one_of(
    values.map(lambda column: (BITMAP, column)),
    lists.map(lambda column: (LABEL_LIST, pa.array(column, pa.list_(pa.int64())))),
    texts.map(lambda column: (NGRAM, pa.array(column, pa.string()))),
)


@STABLE
@LIGHT
@given(columns)
def test_a_remap_has_the_rows_that_are_kept_under_their_new_ids(stable: bool, both: tuple[IndexKind, pa.Array]) -> None:
    kind, column = both
    uri = written(column, stable)
    snapshot, entry = built(uri, "x", kind)
    world = World(open_store(uri))
    plan = plan_of(snapshot, "x", kind, uuid=world.ids.uuid())
    again = FUNCTIONS[kind].remap(snapshot, entry, moved, world, plan.directory)
    check(kind, snapshot, entry_of(plan, again, []), where(rows_of(uri, stable)), column)


@STABLE
@LIGHT
@given(columns)
def test_a_merge_has_the_rows_of_old_segments_and_of_new_fragments(
    stable: bool, both: tuple[IndexKind, pa.Array]
) -> None:
    kind, column = both
    uri = written(column, stable)
    every = [fragment.id for fragment in built(uri, "x", kind)[0].fragments]
    segments = tuple(OldSegment(built(uri, "x", kind, fragments=[each])[1], moved) for each in every[1:])
    snapshot, entry = built(uri, "x", kind, fragments=every[:1], old=segments)
    rows = rows_of(uri, stable)
    first = set(ids_of_fragment(snapshot, rows, every, stable, uri))
    together = {number: value for number, value in rows.items() if number in first}
    together |= where({number: value for number, value in rows.items() if number not in first})
    check(kind, snapshot, entry, together, column)
    left = [info.path for info in open_store(uri).list(f"_indices/{entry.uuid}")]
    assert len(left) == 1, left


def ids_of_fragment(snapshot: Snapshot, rows: dict[int, Any], every: list[int], stable: bool, uri: str) -> list[int]:
    """The ids of the rows of the first fragment."""
    if not every:
        return []
    if not stable:
        return [number for number in rows if number >> 32 == every[0]]
    found = tw.dataset(uri).get_fragment(every[0]).to_table(columns=["i"], with_row_id=True)
    return [int(number) for number in found["_rowid"].to_pylist()]
