"""engine/exchange.py: the local sort and cut against a plain model in Python."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.engine.exchange import partitioned

KINDS = {
    "int": (pa.int32(), st.integers(-3, 3)),
    "float": (pa.float64(), st.sampled_from([0.0, -1.5, 2.0, math.inf, -math.inf, math.nan])),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "ab", "é", "Z", "\U0001f600", "\uffff"])),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff", b"a"])),
    "flag": (pa.bool_(), st.booleans()),
}


def _rank(value: Any) -> tuple[Any, ...]:
    """Where a value sorts: nulls first, NaN last, strings by their bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return 1, value.encode() if isinstance(value, str) else value


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    rows = draw(st.integers(0, 30))
    columns = {}
    for number, name in enumerate(names):
        kind, values = KINDS[name]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[f"{name}{number}"] = pa.chunked_array([pa.array(cells[:7], kind), pa.array(cells[7:], kind)])
    return pa.table(columns)


def _ranks(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(_rank(value) for value in row.values()) for row in table.to_pylist()]


@given(rows=tables(), parts=st.integers(1, 8), data=st.data())
def test_parts_are_sorted_and_cut_at_keys(rows: pa.Table, parts: int, data: st.DataObject) -> None:
    names = data.draw(st.permutations(rows.column_names))
    keys = names[: data.draw(st.integers(1, len(names)))]
    made = partitioned(rows, keys, parts)
    assert len(made) <= parts
    assert all(part.num_rows for part in made)
    assert all(part.schema == rows.schema for part in made)
    assert sorted(rank for part in made for rank in _ranks(part)) == sorted(_ranks(rows))
    assert all(_ranks(part) == sorted(_ranks(part)) for part in made)
    groups = [set(_ranks(part.select(keys))) for part in made]
    assert sum(map(len, groups)) == len(set().union(*groups)), "a key is in two parts"


@pytest.mark.parametrize("parts", [1, 3, 10])
def test_parts_are_of_about_equal_size(parts: int) -> None:
    rows = pa.table({"k": [number // 2 for number in range(60)]})
    assert [part.num_rows for part in partitioned(rows, ["k"], parts)] == [60 // parts] * parts
