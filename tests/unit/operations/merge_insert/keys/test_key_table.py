"""Keys of all types against a dict: equal is what has equal bits, and null is equal to nothing."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.operations.merge_insert.keys.key_codes import coded
from tablewright.operations.merge_insert.keys.key_table import KeyTable, distinct_rows

_DAYS = st.dates(dt.date(1970, 1, 1), dt.date(1970, 1, 9))
_SMALL = st.integers(-4, 4)
_WIDE = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1])
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), _SMALL),
    "int64": (pa.int64(), _SMALL),
    "wide int64": (pa.int64(), _WIDE),
    "uint64": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "uint16": (pa.uint16(), st.integers(0, 5)),
    "float64": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.25])),
    "float32": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
    "float16": (pa.float16(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.sampled_from(["", "a", "b", "aa", "ä", "a" * 40])),
    "large_string": (pa.large_string(), st.sampled_from(["", "a", "b"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"\0", b"a", b"\xff"])),
    "fixed binary": (pa.binary(2), st.sampled_from([b"ab", b"ac", b"\0\0"])),
    "date32": (pa.date32(), _DAYS),
    "date64": (pa.date64(), _DAYS),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 1))),
    "time": (pa.time32("s"), st.sampled_from([dt.time(1), dt.time(2, 3)])),
    "duration": (pa.duration("ms"), st.sampled_from([dt.timedelta(1), dt.timedelta(2)])),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([decimal.Decimal(n) / 100 for n in (-1, 0, 1, 250)])),
    "decimal256": (pa.decimal256(50, 2), st.sampled_from([decimal.Decimal(n) / 100 for n in (-1, 0, 1)])),
}


def _bits(value: Any) -> Any:
    """A value that a dict takes for equal where its bits are."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def _key(row: Sequence[Any]) -> tuple[Any, ...] | None:
    return None if any(value is None for value in row) else tuple(map(_bits, row))


@st.composite
def _sides(draw: st.DrawFn) -> tuple[list[pa.Array], list[pa.Array]]:
    chosen = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3))
    sides = []
    for _ in range(2):
        rows = draw(st.integers(0, 12))
        columns = []
        for name in chosen:
            kind, values = TYPES[name]
            picked = draw(st.lists(st.none() | values, min_size=rows + 2, max_size=rows + 2))
            columns.append(pa.array(picked, kind).slice(1, rows))  # a slice, with something around it
        sides.append(columns)
    return sides[0], sides[1]


def _rows(columns: list[pa.Array]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@given(_sides())
def test_keys_are_found_as_in_a_dict(sides: tuple[list[pa.Array], list[pa.Array]]) -> None:
    source, target = sides
    kept = distinct_rows(source, "first")
    table = KeyTable([column.take(pa.array(kept)) for column in source], first_row=100)
    known = {}
    for position, row in enumerate(_rows([column.take(pa.array(kept)) for column in source])):
        if _key(row) is not None:
            known[_key(row)] = position + 100
    expected = [-1 if (key := _key(row)) is None else known.get(key, -1) for row in _rows(target)]
    assert table.find(target).tolist() == expected
    assert len(table) == len(known)
    chunks = [pa.chunked_array([column.slice(0, 3), column.slice(3)]) for column in target]
    assert table.find(chunks).tolist() == expected


@given(_sides())
def test_duplicates_are_named_and_dropped(sides: tuple[list[pa.Array], list[pa.Array]]) -> None:
    source, _ = sides
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    pairs: dict[Any, list[int]] = {}
    for position, row in enumerate(_rows(source)):
        key = ("null", position) if _key(row) is None else _key(row)
        first.setdefault(key, position)
        last[key] = position
        pairs.setdefault(key, []).append(position)
    assert distinct_rows(source, "first").tolist() == sorted(first.values())
    assert distinct_rows(source, "last").tolist() == sorted(last.values())
    twice = [positions for positions in pairs.values() if len(positions) > 1]
    assert KeyTable(source).duplicate == (tuple(min(twice)[:2]) if twice else None)


@pytest.mark.parametrize("spread", [1, 10**9])
def test_many_numbers_in_a_table_of_places_and_in_a_hash_table(spread: int) -> None:
    table = KeyTable([pa.array(range(0, 3000 * spread, 3 * spread))])
    found = table.find([pa.array([n * spread for n in (-(2**30), -3, 0, 1, 3, 2997, 3000, 2**30)])])
    assert found.tolist() == [-1, -1, 0, -1, 1, 999, -1, -1]


def test_no_rows_on_either_side() -> None:
    for kind, _ in TYPES.values():
        empty = pa.array([], kind)
        assert KeyTable([empty, empty]).find([pa.nulls(2, kind), pa.nulls(2, kind)]).tolist() == [-1, -1]
        assert coded(pa.nulls(3, kind))[1].tolist() == [-1, -1, -1]
        assert KeyTable([empty]).duplicate is None
        assert KeyTable([empty]).find([empty]).tolist() == []
