"""Lookups find the rows of small fragments that the index does not cover, as scans do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import FrozenBitMap

import tablewright as tw
from tablewright.format.blobs import as_descriptions
from tablewright.indices.query import Between, IsIn, Query
from tablewright.reading import uncovered
from tablewright.reading.lookup import Lookup, plan_lookup, recognised
from tablewright.reading.uncovered import Uncovered, uncovered_fragments
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

ROWS, NEW = 4000, 6


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four indexed fragments, then six of three rows, with nulls, a row deleted and one value in many fragments."""
    place = tmp_path_factory.mktemp("uncovered") / "t"
    rows = {"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{n}" for n in range(ROWS)]}
    ds = tw.write_dataset(pa.table({**rows, "f": [float(n) for n in range(ROWS)]}), place, max_rows_per_file=1000)
    for column in ("id", "name", "f"):
        ds.create_scalar_index(column, "BTREE")
    for n in range(NEW):
        ids = pa.array([7, None, 10_000 + n], pa.int64())
        ds.insert(pa.table({"id": ids, "name": ["n7", None, f"new {n}"], "f": [7.0, None, -1.0 - n]}))
    ds.delete(f"id = {10_000 + NEW - 1}")
    return place


def _snapshot(path: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(path))))


def _found(path: Path, column: str, kind: pa.DataType) -> Uncovered | None:
    snapshot = _snapshot(path)
    covered = FrozenBitMap(range(4))
    return uncovered_fragments(snapshot, as_descriptions(snapshot.schema), (column,), covered, kind)


def _lookup(snapshot: Snapshot, filter: str) -> Lookup | None:
    wish = recognised(snapshot, filter, True)
    assert wish is not None
    return plan_lookup(snapshot, wish)


@pytest.mark.parametrize(
    "filter",
    [
        "id = 7",
        "id = 10003",
        "id = 10005",
        "id = -1",
        "id IN (3999, 7, 10001)",
        "id >= 3998 AND id < 10002",
        "id > 3998 AND id <= 10002",
        "id > 9999",
        "id < 1",
        "name = 'n7'",
        "name IN ('new 1', 'n70', '')",
        "name BETWEEN 'new' AND 'new 3'",
    ],
)
def test_lookups_equal_scans(path: Path, filter: str) -> None:
    ds = tw.dataset(path)
    expected = ds.to_table(filter=filter, use_scalar_index=False, with_row_address=True)
    lookup = _lookup(_snapshot(path), filter)
    assert lookup is not None and lookup.uncovered is not None
    assert lookup.count() == expected.num_rows == ds.count_rows(filter, use_scalar_index=True)
    rows = lookup.rows()
    assert rows is not None
    pairs = [(id, offset) for id, found in rows.items() for offset in found.to_numpy().tolist()]
    assert sorted(pairs) == [divmod(address, 1 << 32) for address in sorted(expected["_rowaddr"].to_pylist())]
    assert ds.to_table(filter=filter, use_scalar_index=True, with_row_address=True).equals(expected)


def test_too_many_rows_are_left_to_the_scan(path: Path) -> None:
    lookup = _lookup(_snapshot(path), "id = 7")
    assert lookup is not None and len(lookup.rows() or {}) == 1 + NEW
    object.__setattr__(lookup, "rows_max", NEW)
    assert lookup.rows() is None and lookup.count() == 1 + NEW


def test_what_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found(path, "id", pa.int64()) is not None
    assert _found(path, "id", pa.int32()) is None, "the column has another type than the literals"
    assert _found(path, "f", pa.float64()) is None, "-0.0 and NaN need the order of floats"
    assert _found(path, "name", pa.string()) is not None
    for limit, value in (("_FRAGMENTS_MAX", NEW - 1), ("_ROWS_MAX", 3 * NEW - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(uncovered, limit, value)
            assert _found(path, "id", pa.int64()) is None


def test_fragments_in_the_middle_of_the_list(path: Path) -> None:
    """As after a compaction of the newest fragments and an index of these alone."""
    snapshot = _snapshot(path)
    table, covered = as_descriptions(snapshot.schema), FrozenBitMap([0, 2, 3, 4, 5, 6, 7, 8, 9])
    found = uncovered_fragments(snapshot, table, ("id",), covered, pa.int64())
    assert found is not None and found.fragments.ids.tolist() == [1]
    rows = found.rows(snapshot, IsIn(pa.array([1003, 7], pa.int64())))
    assert {id: each.to_numpy().tolist() for id, each in rows.items()} == {1: [3]}


def test_large_fragments_are_left_to_the_scan(tmp_path: Path) -> None:
    ds = tw.write_dataset(pa.table({"id": pa.array(range(100), pa.int64())}), tmp_path / "t")
    ds.create_scalar_index("id", "BTREE")
    ds.insert(pa.table({"id": pa.array(range(50_000), pa.int64())}))
    assert _lookup(_snapshot(tmp_path / "t"), "id = 7") is None
    assert ds.count_rows("id = 7", use_scalar_index=True) == 2


def _agrees(value: Any, query: Query) -> bool:
    if value is None:
        return False
    if isinstance(query, IsIn):
        return value in query.values.to_pylist()
    assert isinstance(query, Between)
    low, high = (None if bound is None else bound.as_py() for bound in (query.low, query.high))
    above = low is None or value > low or (query.low_inclusive and value == low)
    return above and (high is None or value < high or (query.high_inclusive and value == high))


values = st.one_of(st.none(), st.integers(-5, 5))
bounds = st.one_of(st.none(), st.integers(-6, 6).map(lambda n: pa.scalar(n, pa.int64())))
queries = st.one_of(
    st.lists(st.integers(-6, 6), min_size=1).map(lambda some: IsIn(pa.array(some, pa.int64()))),
    st.builds(Between, low=bounds, high=bounds, low_inclusive=st.booleans(), high_inclusive=st.booleans()),
)


@given(column=st.lists(values), query=queries)
def test_conditions_are_those_of_python(column: list[int | None], query: Query) -> None:
    if isinstance(query, Between) and query.low is None and query.high is None:
        return
    found = uncovered._is_true(query, pa.array(column, pa.int64()))
    assert found.tolist() == [_agrees(value, query) for value in column]
