"""Keys in a sorted column that is read value by value: equal values over many chunks, gaps, keys that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablewright as tw
from tablewright.data.encoder import DataFileWriter
from tablewright.data.packed_reads import PackedColumn, open_packed
from tablewright.errors import CorruptTable
from tablewright.indices.btree import BTreeIndex, packed_search, windows
from tablewright.indices.btree.order import Order, order_of
from tablewright.indices.btree.packed_search import search_packed, search_touching
from tablewright.indices.btree.windows import KeyGroup, guessed_rows
from tablewright.storage import open_store


def column_of(place: Path, values: pa.Array) -> PackedColumn:
    store = open_store(str(place))
    batch = pa.record_batch({"values": values})
    writer = DataFileWriter(store, "a.lance", batch.schema, "2.2")
    writer.write(batch)
    writer.close()
    (column,) = open_packed(store, "a.lance", {"values": values.type})
    assert column is not None
    return column


def group_of(values: Any, keys: Any) -> tuple[Order, KeyGroup]:
    """Distinct keys, numbered from 7 on, any of which may be in any row."""
    order = order_of(values.type)
    assert order is not None
    stored, wanted = order.values(values), np.unique(order.values(keys))
    edges = np.array([0, len(stored) - 1])
    return order, KeyGroup(
        numbers=np.arange(len(wanted)) + 7,
        keys=wanted,
        lows=np.zeros(len(wanted), np.int64),
        highs=np.full(len(wanted), len(stored)),
        smallest=np.repeat(stored[edges[:1]], len(wanted)),
        largest=np.repeat(stored[edges[1:]], len(wanted)),
    )


def found(column: PackedColumn, values: Any, keys: Any) -> tuple[list[int], list[int]]:
    order, group = group_of(values, keys)
    stored = order.values(values)
    rows, numbers = search_packed(order, column, values.type, group)
    assert rows.tolist() == np.flatnonzero(np.isin(stored, group.keys)).tolist()
    assert numbers.tolist() == (np.searchsorted(group.keys, stored[rows]) + 7).tolist()
    with touching():
        again = search_touching(order, column, values.type, group, None)
    assert [part.tolist() for part in again] == [rows.tolist(), numbers.tolist()]
    return rows.tolist(), numbers.tolist()


@contextmanager
def touching() -> Iterator[None]:
    """Pages count as not used before, and any number of keys is enough for two threads."""
    few = patch.multiple(packed_search, _KEYS_TO_TOUCH=1, _SAMPLED=1)
    with few, patch.object(PackedColumn, "is_mapped", lambda self, positions: False):
        yield


@given(
    seed=st.integers(0, 1000),
    spread=st.sampled_from([50, 3000, 1 << 20, 1 << 50]),
    skew=st.sampled_from([1.0, 4.0, 30.0]),
    kind=st.sampled_from([pa.int64(), pa.uint64(), pa.int32(), pa.float64(), pa.timestamp("us"), pa.date32()]),
)
def test_keys_in_and_between_values(
    tmp_path_factory: pytest.TempPathFactory, seed: int, spread: int, skew: float, kind: pa.DataType
) -> None:
    """Uneven values make the first guess wrong; few different ones lie in many chunks."""
    chance = np.random.default_rng(seed)
    width = min(spread, 1 << 30) if kind.bit_width == 32 else spread
    numbers = np.sort((chance.random(20_000) ** skew * width).astype(np.int64)) + 10_000_000 % width
    physical = {32: pa.int32(), 64: pa.int64()}[kind.bit_width]
    values = pa.array(numbers).cast(kind) if kind == pa.float64() else pa.array(numbers).cast(physical).view(kind)
    try:
        column = column_of(tmp_path_factory.mktemp("column"), values)
    except AssertionError:
        return  # runs, or a dictionary
    edges = np.clip(np.concatenate([column.chunks.begins + step for step in (-1, 0, 1)]), 0, len(numbers) - 1)
    keys = np.concatenate([chance.choice(numbers, 40), chance.integers(0, width, 40), numbers[edges], [0]])
    wanted = pa.array(keys).cast(kind) if kind == pa.float64() else pa.array(keys).cast(physical).view(kind)
    found(column, values, wanted)


def test_one_value_over_many_chunks(tmp_path: Path) -> None:
    numbers = np.sort(np.concatenate([np.arange(20_000) * 1_000_003, np.full(15_000, 9_000_027_000)]))
    values = pa.array(numbers)
    rows, _ = found(column_of(tmp_path, values), values, pa.array([9_000_027_000, 0, 1, 1 << 60]))
    assert len(rows) == 15_000 + 1 + 1


@pytest.mark.parametrize("shift", [0, 1])
def test_every_value_of_an_uneven_column(tmp_path: Path, shift: int) -> None:
    """First guesses before, in and after the right chunk, for values at all edges of chunks."""
    numbers = np.unique((np.random.default_rng(4).random(30_000) ** 3 * (1 << 40)).astype(np.int64) * 2)
    values = pa.array(numbers)
    rows, _ = found(column_of(tmp_path, values), values, pa.array(numbers + shift))
    assert len(rows) == (0 if shift else len(numbers))


def test_values_that_are_not_in_order(tmp_path: Path) -> None:
    numbers = np.random.default_rng(5).integers(0, 1 << 40, 20_000)
    values = pa.array(numbers)
    column = column_of(tmp_path, values)
    with pytest.raises(ValueError, match="not in order"):
        found(column, values, pa.array(np.random.default_rng(6).integers(0, 1 << 40, 500)))


def test_values_that_are_not_in_order_beside_another_thread(tmp_path: Path) -> None:
    values = pa.array(np.random.default_rng(5).integers(0, 1 << 40, 20_000))
    column = column_of(tmp_path, values)
    order, group = group_of(values, pa.array(np.random.default_rng(6).integers(0, 1 << 40, 500)))
    with touching(), pytest.raises(ValueError, match="not in order"):
        search_touching(order, column, values.type, group, None)


# ----------------------------------------------------------------------------------------------------- touched pages
@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PackedColumn, list[int]]]:
    """What is touched: the column, and positions in its file."""
    calls: list[tuple[PackedColumn, list[int]]] = []
    touch = PackedColumn.touch

    def noted(self: PackedColumn, positions: Any) -> None:
        calls.append((self, positions.tolist()))
        touch(self, positions)

    monkeypatch.setattr(PackedColumn, "touch", noted)
    return calls


def two_columns(place: Path, rows: int) -> tuple[pa.Array, PackedColumn, PackedColumn]:
    """Values at even distances, and ids in another order."""
    store = open_store(str(place))
    values = pa.array(np.arange(rows) * 3)
    batch = pa.record_batch({"values": values, "ids": np.random.default_rng(7).permutation(rows).astype(np.uint64)})
    writer = DataFileWriter(store, "a.lance", batch.schema, "2.2")
    writer.write(batch)
    writer.close()
    column, ids = open_packed(store, "a.lance", {"values": values.type, "ids": pa.uint64()})
    assert column is not None and ids is not None
    return values, column, ids


def test_the_touched_chunks_are_those_of_the_rows(
    tmp_path: Path, touched: list[tuple[PackedColumn, list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values at even distances are where the guess is: the chunks of all rows that are found, in both columns."""
    values, column, ids = two_columns(tmp_path, 200_000)
    order, group = group_of(values, pa.array(np.arange(0, 600_000, 997)))
    monkeypatch.setattr(PackedColumn, "is_mapped", lambda self, positions: False)
    rows, _ = search_touching(order, column, values.type, group, ids)
    by_column = [
        sorted(position for each, positions in touched for position in positions if each is one)
        for one in (column, ids)
    ]
    guesses = guessed_rows(group)
    assert by_column == [sorted(each.begins(guesses).tolist()) for each in (column, ids)]
    for each, positions in zip((column, ids), by_column, strict=True):
        assert set(each.begins(rows).tolist()) <= set(positions)
    assert len(by_column[0]) == len(by_column[1]) == len(group.keys)


@pytest.mark.parametrize(("keys", "is_mapped"), [(511, False), (5000, True)], ids=["few keys", "pages that were used"])
def test_nothing_is_touched_where_it_saves_nothing(
    tmp_path: Path,
    touched: list[tuple[PackedColumn, list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    keys: int,
    is_mapped: bool,
) -> None:
    values, column, ids = two_columns(tmp_path, 20_000)
    order, group = group_of(values, values.slice(0, keys))
    monkeypatch.setattr(PackedColumn, "is_mapped", lambda self, positions: is_mapped)
    rows, _ = search_touching(order, column, values.type, group, ids)
    assert rows.tolist() == list(range(keys)) and not touched


def test_a_file_that_was_cut_is_not_touched(tmp_path: Path) -> None:
    """Bytes that are gone would end the process."""
    values, column, ids = two_columns(tmp_path, 200_000)
    order, group = group_of(values, pa.array(np.arange(0, 600_000, 97)))
    file = tmp_path / "a.lance"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CorruptTable, match="another size"):
        search_touching(order, column, values.type, group, ids)


def test_a_lookup_reads_few_bytes_of_a_large_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scattered keys in 400,000 rows: a chunk or two per key and column, and the codec is not asked."""
    rows = 400_000
    tw.write_dataset(pa.table({"key": np.arange(rows) * 7}), str(tmp_path / "t"))
    ds = tw.dataset(str(tmp_path / "t"))
    ds.create_scalar_index("key", "BTREE")
    snapshot = ds._snapshot
    index = BTreeIndex.open(snapshot, snapshot.manifest.indices[0])
    taken: list[int] = []
    load = PackedColumn.load

    def counted(self: PackedColumn, which: Any) -> Any:
        taken.append(len(which))
        return load(self, which)

    monkeypatch.setattr(PackedColumn, "load", counted)
    monkeypatch.setattr(windows, "_ROWS_PER_KEY", 100)
    keys = np.arange(0, rows * 7, 70_001)
    hits = index.lookup(pa.array(keys))
    assert hits.positions.tolist() == np.flatnonzero(keys % 7 == 0).tolist()
    assert (hits.ids * np.uint64(7)).tolist() == keys[keys % 7 == 0].tolist()
    assert 0 < sum(taken) <= 3 * len(keys)
