"""engine/exchange.py: rows in parts, against a plain model in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.engine import exchange
from tablewright.engine.exchange import Ranked, parts_of

SCHEMA = pa.schema({"k0": pa.int64(), "k1": pa.binary(), "n": pa.int64()})
KEYS = st.tuples(st.sampled_from([0, -1, 7, 2**63 - 1, -(2**63)]), st.sampled_from([b"", b"a", b"b\0", b"x" * 300]))


def _batches(rows: Sequence[tuple[int, tuple[int, bytes]]], step: int) -> list[Ranked]:
    """Rows of rank and key, numbered, in batches of one rank each."""
    found: list[Ranked] = []
    for rank in (0, 1):
        own = [(*key, number) for number, (side, key) in enumerate(rows) if side == rank]
        for begin in range(0, len(own), step):
            columns = zip(*own[begin : begin + step], strict=True)
            found.append((rank, pa.RecordBatch.from_arrays([*map(pa.array, columns)], schema=SCHEMA)))
    return found


@given(
    rows=st.lists(st.tuples(st.integers(0, 1), KEYS), max_size=40),
    step=st.integers(1, 10),
    partitions=st.sampled_from([1, 3, 100, 1 << 17]),
    keys=st.sampled_from([["k0"], ["k1"], ["k0", "k1"]]),
)
def test_rows_with_equal_keys_are_in_one_partition(
    rows: list[tuple[int, tuple[int, bytes]]], step: int, partitions: int, keys: list[str]
) -> None:
    parts = list(parts_of(_batches(rows, step), keys, partitions))
    assert all(part.rows.num_rows and 0 <= part.partition < partitions for part in parts)
    assert all(part.rows.schema == SCHEMA for part in parts)
    homes: dict[tuple[Any, ...], set[int]] = {}
    told: list[tuple[int, int, tuple[int, bytes]]] = []
    for part in parts:
        for row in part.rows.to_pylist():
            homes.setdefault(tuple(row[name] for name in keys), set()).add(part.partition)
            told.append((row["n"], part.rank, (row["k0"], row["k1"])))
        assert part.rows["n"].to_pylist() == sorted(part.rows["n"].to_pylist()), "a part keeps the order of its rows"
    assert all(len(found) == 1 for found in homes.values()), "a key is in two partitions"
    assert sorted(told) == [(number, side, key) for number, (side, key) in enumerate(rows)]


def test_neighbouring_keys_are_spread_evenly() -> None:
    rows = pa.record_batch({"k": np.arange(100_000) * 1000})
    sizes = [part.rows.num_rows for part in parts_of([(0, rows)], ["k"], 10)]
    assert len(sizes) == 10 and min(sizes) > 9_000 and max(sizes) < 11_000


def test_the_partition_of_a_key_never_changes() -> None:
    """Processes of other versions of pandas have to agree on it."""
    numbers = pa.record_batch({"k": [0, 1, -1, 2**62], "n": [0, 1, 2, 3]})
    texts = pa.record_batch({"k": pa.array([b"", b"a", b"ab", b"x" * 300]), "n": [0, 1, 2, 3]})
    homes = [
        {row["n"]: part.partition for part in parts_of([(0, rows)], ["k"], 1000) for row in part.rows.to_pylist()}
        for rows in (numbers, texts)
    ]
    assert homes == [{0: 0, 3: 73, 1: 338, 2: 706}, {0: 95, 3: 293, 2: 706, 1: 756}]


def test_small_batches_make_one_block_and_large_ones_several(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [(0, pa.record_batch({"k": [number]})) for number in range(6)]
    assert [part.rows.num_rows for part in parts_of(batches, ["k"], 1)] == [6]
    monkeypatch.setattr(exchange, "_BLOCK_ROWS", 2)
    assert [part.rows.num_rows for part in parts_of(batches, ["k"], 1)] == [2, 2, 2]


def test_keys_have_no_nulls() -> None:
    with pytest.raises(AssertionError, match="without a value"):
        list(parts_of([(0, pa.record_batch({"k": [1, None]}))], ["k"], 2))
