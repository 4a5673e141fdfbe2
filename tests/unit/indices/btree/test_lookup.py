"""Lookups in BTREE indices of our own making. Those that pylance wrote are in tests/differential."""

from __future__ import annotations

import math
import struct
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data.encoder import DataFileWriter
from tablewright.format.index import IndexMetadata
from tablewright.indices import (
    BTreeIndex,
)
from tablewright.indices.btree import lookup, windows
from tablewright.indices.btree.order import order_of
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.testing.worlds import memory_world
from tablewright.world import World

SPARSE = pytest.mark.parametrize("narrow", [False, True], ids=["read", "narrowed"])


def identity(value: Any) -> Any:
    """What makes two values the same key: floats by their bits."""
    return struct.pack("<d", value) if isinstance(value, float) else value


# -------------------------------------------------------------------------------------------- indices of our own making
def put(world: World, path: str, table: pa.Table) -> None:
    writer = DataFileWriter(world.store, path, table.schema, "2.2")
    for batch in table.to_batches():
        writer.write(batch)
    writer.close()


def write_index(world: World, index: IndexMetadata, values: pa.Array, ids: Any, rows_per_page: int) -> None:
    """The files of an index on these values, in pages of this size."""
    data = pa.table({"values": values, "ids": pa.array(ids, pa.uint64())})
    order = np.argsort(_ranks(values), kind="stable")
    data = data.take(pa.array(order))
    pages = [data["values"].slice(start, rows_per_page) for start in range(0, data.num_rows, rows_per_page)]
    bounds = {
        "min": pa.array([page[0].as_py() for page in pages], values.type),
        "max": pa.array([page[-1].as_py() for page in pages], values.type),
        "null_count": pa.array([page.null_count for page in pages], pa.uint32()),
        "page_idx": pa.array(range(len(pages)), pa.uint32()),
    }
    put(world, f"_indices/{index.uuid}/page_data.lance", data)
    lookup = pa.table(bounds).replace_schema_metadata({"batch_size": str(rows_per_page), "range_partitioned": "false"})
    put(world, f"_indices/{index.uuid}/page_lookup.lance", lookup)


def _ranks(values: pa.Array) -> Any:
    order = order_of(values.type)
    assert order is not None
    ranks = np.full(len(values), -1, np.int64)
    present = order.values(values.drop_null())
    ranks[values.is_valid().to_numpy(zero_copy_only=False)] = order.distinct(present)[1]
    return ranks


def empty_snapshot() -> Snapshot:
    import tablewright as tw

    world = memory_world()
    tw.write_dataset(pa.table({"c": pa.array([], pa.int64())}), world.store.location.uri)
    return open_snapshot(world)


def new_index(**facts: Any) -> IndexMetadata:
    return IndexMetadata(uuid=uuid4(), fields=(0,), name="c_idx", dataset_version=1, **facts)


words = st.text(alphabet="aé\0", max_size=3).map(lambda text: "shared" + text)
values_and_keys = st.one_of(
    st.tuples(st.just(pa.int32()), st.lists(st.none() | st.integers(-9, 9)), st.lists(st.integers(-11, 11))),
    st.tuples(st.just(pa.string()), st.lists(st.none() | words, max_size=60), st.lists(words)),
    st.tuples(
        st.just(pa.float64()),
        st.lists(st.none() | st.sampled_from([0.0, -0.0, math.nan, -math.nan, 1.5, -math.inf])),
        st.lists(st.sampled_from([0.0, -0.0, math.nan, -math.nan, 2.5, -math.inf, math.inf])),
    ),
    st.tuples(
        st.just(pa.decimal128(4, 1)),
        st.lists(st.none() | st.decimals(-99, 99, places=1)),
        st.lists(st.decimals(-99, 99, places=1)),
    ),
)


@SPARSE
@given(
    case=values_and_keys,
    rows_per_page=st.integers(1, 7),
    group=st.sampled_from([1, 2, 100]),
    few_pages=st.sampled_from([0, 0, 2, 16]),
)
def test_pages_of_any_size(narrow: bool, case: Any, rows_per_page: int, group: int, few_pages: int) -> None:
    """Equal values and nulls over several pages, keys at every edge, few pages read, windows narrowed or read."""
    kind, values, keys = case
    snapshot = empty_snapshot()
    index = new_index()
    write_index(snapshot.world, index, pa.array(values, kind), np.arange(len(values)), rows_per_page)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_PAGES_PER_GROUP", group)
        patch.setattr(lookup, "_FEW_PAGES", few_pages)
        patch.setattr(lookup, "_FEW_PAGES_BY_CODEC", few_pages)
        if narrow:
            patch.setattr(windows, "_ROWS_PER_KEY", 0)
            patch.setattr(windows, "_PAGES_TO_NARROW", 0)
            patch.setattr(windows, "_WINDOW_ROWS", 1)
            patch.setattr(windows, "_PIVOTS", 2)
        found = BTreeIndex.open(snapshot, index).lookup(pa.array(keys, kind))
    hits = sorted(zip(found.positions.tolist(), found.ids.tolist(), strict=True))
    names = [identity(value) for value in values]
    assert hits == [(at, row) for at, key in enumerate(keys) for row, name in enumerate(names) if name == identity(key)]
    assert found.positions.tolist() == sorted(found.positions.tolist())


@given(spans=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=8))
def test_windows_unite_to_runs(spans: list[tuple[int, int]]) -> None:
    """Windows may be empty, contain each other, and come in any order."""
    lows = np.array([low for low, _ in spans], np.int64)
    begins, counts = windows._union(lows, lows + np.array([size for _, size in spans], np.int64))
    found = [row for begin, count in zip(begins, counts, strict=True) for row in range(begin, begin + count)]
    assert found == sorted({row for low, size in spans for row in range(low, low + size)})
