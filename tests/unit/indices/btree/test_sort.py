"""Sorting numbers and bytes by codes: stable, and as Python sorts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.indices.btree import sort
from tablewright.indices.btree.sort import entry_order, sort_order

few = st.integers(-3, 3)
wide = st.integers(-(2**63), 2**63 - 1)
texts = st.lists(
    st.tuples(
        st.sampled_from([b"", b"p" * 7, b"p" * 40]), st.binary(max_size=3), st.sampled_from([b"", b"\0", b"z" * 9])
    ).map(b"".join),
    max_size=30,
)


def expected(values: list[int] | list[bytes]) -> list[int]:
    return sorted(range(len(values)), key=values.__getitem__)


@given(values=st.lists(few | wide, max_size=50))
def test_numbers(values: list[int]) -> None:
    assert sort_order(np.array(values, np.int64)).tolist() == expected(values)
    large = [value + 2**63 for value in values]
    assert sort_order(np.array(large, np.uint64)).tolist() == expected(large)


@pytest.mark.parametrize("rows", [19, 20, 21, 39, 40, 45, 90, 500])
@pytest.mark.parametrize("width", [3, 2**40, 2**62])
def test_parts_that_are_sorted_by_threads(rows: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 10 rows: the order is that of one sort, also where values are equal, and the values stay as they are."""
    monkeypatch.setattr(sort, "_PART_ROWS", 10)
    monkeypatch.setattr(sort, "computing_threads", lambda: 4)
    values = np.random.default_rng(rows).integers(-width, width, rows)
    before = values.copy()
    assert sort_order(values).tolist() == np.argsort(before, kind="stable").tolist()
    assert values.tolist() == before.tolist()
    texts = [str(value).encode() for value in values.tolist()]
    assert sort_order(pa.array(texts, pa.large_binary())).tolist() == expected(texts)


@pytest.mark.parametrize("equal", [0.01, 0.9], ids=["few alike", "most alike"])
def test_numbers_that_use_all_bits_and_differ_in_the_lowest(equal: float) -> None:
    """The bits that are lost beside a position decide: few such rows are sorted again, many make us sort by codes."""
    chance = np.random.default_rng(0)
    values = chance.integers(-(2**63), 2**63 - 1, 3000)
    alike = chance.random(3000) < equal
    values[alike] = (values[0] & ~0xF) + chance.integers(0, 16, int(alike.sum()))
    assert sort_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@given(values=texts, prefix=st.sampled_from([b"", b"abc", b"s" * 300]))
def test_bytes(values: list[bytes], prefix: bytes) -> None:
    values = [prefix + value for value in values]
    array = pa.array([b"before", *values], pa.large_binary()).slice(1)
    assert sort_order(array).tolist() == expected(values)


def test_a_shared_prefix_is_looked_for_in_the_first_bytes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort, "_SHARED_MAX", 8)
    values = [b"x" * 60 + bytes([at]) for at in (5, 3, 5, 1)]
    assert sort_order(pa.array(values, pa.large_binary())).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize("rows_per_part", [1, 2, 3, 100])
@given(entries=st.lists(st.tuples(few | wide, st.integers(0, 99)), max_size=30))
def test_equal_values_come_by_id(rows_per_part: int, entries: list[tuple[int, int]]) -> None:
    """Also where equal values lie on both sides of the parts in which codes are looked at."""
    values = np.array([value for value, _ in entries], np.int64)
    ids = np.array([id for _, id in entries], np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "_PART_ROWS", rows_per_part)
        found = entry_order(values, ids)
        assert [(int(values[at]), int(ids[at])) for at in found] == sorted(entries)
        texts = pa.array([b"%d" % value for value in values.tolist()], pa.large_binary())
        found = entry_order(texts, ids)
    assert [(texts[at].as_py(), int(ids[at])) for at in found.tolist()] == sorted(
        (b"%d" % value, id) for value, id in entries
    )


@pytest.mark.parametrize("equal", [0.01, 0.9], ids=["few alike", "most alike"])
def test_equal_numbers_that_use_all_bits_come_by_id(equal: float) -> None:
    chance = np.random.default_rng(1)
    values = chance.integers(-(2**63), 2**63 - 1, 3000)
    alike = chance.random(3000) < equal
    values[alike] = (values[0] & ~0xF) + chance.integers(0, 16, int(alike.sum()))
    ids = chance.permutation(3000).astype(np.uint64)
    assert entry_order(values, ids).tolist() == np.lexsort((ids, values)).tolist()
