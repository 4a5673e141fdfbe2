"""Rows of a fragment: whichever form their offsets have, they are cut and picked as lists are."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.data.rows import Rows, no_columns, rows_where

COLUMNS: dict[str, pa.Array] = {
    "int": pa.array([*range(9), None]),
    "bool": pa.array([True, False] * 5),
    "half": pa.array(np.arange(10, dtype=np.float16)),
    "text": pa.array([f"text {i}" for i in range(9)] + [None]),
    "large": pa.array([b"x" * i for i in range(10)], pa.large_binary()),
    "fixed": pa.array([bytes([i]) * 4 for i in range(10)], pa.binary(4)),
    "decimal": pa.array([decimal.Decimal(i) for i in range(10)], pa.decimal256(40, 2)),
    "vector": pa.array([[float(i), 0.5] for i in range(10)], pa.list_(pa.float32(), 2)),
    "list": pa.array([None, [], *([i] * i for i in range(8))]),
    "large list": pa.array([["a"] * i for i in range(10)], pa.large_list(pa.string())),
    "map": pa.array([[(str(i), i)] for i in range(10)], pa.map_(pa.string(), pa.int32())),
    "struct": pa.array([{"a": i, "b": [i]} if i % 3 else None for i in range(10)]),
    "dictionary": pa.array(["a", "b"] * 5).dictionary_encode(),
    "null": pa.nulls(10),
    "uuid": pa.array([bytes([i]) * 16 for i in range(10)], pa.uuid()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_deleted_rows_of_every_type_are_dropped(name: str) -> None:
    batch = pa.record_batch({"a": COLUMNS[name], "n": range(10)})
    rows = Rows(batch, start=100).without(np.array([102, 103, 108]))
    rows.batch.validate(full=True)
    assert rows.batch.schema == batch.schema
    assert rows.batch.to_pylist() == [batch.slice(i, 1).to_pylist()[0] for i in (0, 1, 4, 5, 6, 7, 9)]
    assert rows.offsets.tolist() == [100, 101, 104, 105, 106, 107, 109]


@given(st.integers(0, 12), st.integers(0, 2**40), st.data())
def test_offsets_follow_their_rows(count: int, start: int, data: st.DataObject) -> None:
    whole = Rows(pa.record_batch({"a": np.arange(start, start + count)}), start)
    gone = sorted(data.draw(st.sets(st.integers(start, start + count - 1)))) if count else []
    rows = whole.without(np.array(gone, np.int64))
    live = [offset for offset in range(start, start + count) if offset not in gone]
    _check(rows, live)
    low, high = sorted((data.draw(st.integers(0, len(live))), data.draw(st.integers(0, len(live)))))
    _check(rows.slice(low, high), live[low:high])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(live), max_size=len(live))), np.bool_)
    matching = [offset for offset, hit in zip(live, mask.tolist(), strict=True) if hit]
    _check(rows.where(mask), matching)
    _check(rows.with_batch(rows.batch), live)


def _check(rows: Rows, offsets: list[int]) -> None:
    assert len(rows) == len(offsets)
    assert rows.batch["a"].to_pylist() == rows.offsets.tolist() == offsets
    places = np.arange(len(rows))[::2]
    assert rows.offsets_at(places).tolist() == offsets[::2]


def test_few_of_many_rows_are_found_without_expanding_the_others() -> None:
    rows = Rows(no_columns(2**20), 50).without(np.arange(60, 2**20, 3))
    places = np.array([0, 9, 10, 11, 12, 500_000, len(rows) - 1])
    assert rows.offsets_at(places).tolist() == rows.offsets[places].tolist()


def test_rows_dropped_at_an_edge_are_not_copied() -> None:
    batch = pa.record_batch({"a": range(10)})
    place = batch["a"].buffers()[1].address
    for gone in ([0, 1, 2], [7, 8, 9]):
        rows = Rows(batch).without(np.array(gone))
        assert rows.batch["a"].buffers()[1].address == place and len(rows) == 7
    whole = Rows(batch)
    assert whole.without(np.zeros(0, np.int64)) is whole
    assert len(whole.without(np.arange(10))) == 0


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_rows_where_a_mask_is_true(name: str, share: float) -> None:
    batch = pa.record_batch({"a": pa.concat_arrays([COLUMNS[name]] * 3), "n": range(30)}).slice(7, 20)
    chance = np.random.default_rng(3)
    chosen = chance.permutation(20) < share * 20
    found = rows_where(batch, chosen)
    found.validate(full=True)
    assert found.schema == batch.schema
    assert found.to_pylist() == [row for row, kept in zip(batch.to_pylist(), chosen, strict=True) if kept]


def test_rows_without_columns_where_a_mask_is_true() -> None:
    batch = pa.record_batch({"n": range(6)}).select([])
    assert rows_where(batch, np.array([True, False, False, True, False, True])).num_rows == 3
    assert rows_where(batch, np.zeros(6, np.bool_)).num_rows == 0
