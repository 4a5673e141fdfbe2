"""Predicates over a table with indices, as a Hypothesis strategy: trees of conditions that both libraries read alike.

`rows` makes tables for them: few different values, so that conditions meet; nulls, NaN, both zeros, lists, structs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

__all__ = ["COLUMNS", "SCHEMA", "conditions", "predicates", "rows"]

SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("st", pa.struct([("x", pa.int64())])),
    ]
)
COLUMNS = ("key", "n", "f", "s", "day", "flag", "tags", "st.x")
_FLOATS = (math.nan, 0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, 3.0)
_WORDS = ("apple", "apply", "maple", "ap", "", "number one", "zebra")
_LABELS = ("a", "b", "c")


def rows(seed: int, start: int, count: int) -> pa.Table:
    """Random rows with the keys from ``start`` on."""
    rng = random.Random(seed)

    def some(values: Sequence[Any]) -> list[Any]:
        return [None if rng.random() < 0.15 else rng.choice(values) for _ in range(count)]

    tags = [[], ["a"], ["a", "b"], ["c", None], [None], ["b", "c", "a"]]
    columns = [
        list(range(start, start + count)),
        some(range(-3, 12)),
        some(_FLOATS),
        some(_WORDS),
        some(range(18000, 18010)),
        some([True, False]),
        some(tags),
        some([{"x": None}, *({"x": n} for n in range(6))]),
    ]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def conditions(column: str) -> st.SearchStrategy[str]:
    """Conditions on one column."""
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    tests = st.sampled_from([f"{column} is null", f"{column} is not null"])
    if column == "tags":
        label = st.sampled_from(_LABELS)
        return st.one_of(
            label.map(lambda a: f"array_has(tags, '{a}')"),
            st.tuples(st.sampled_from(["any", "all"]), label, label).map(
                lambda a: f"array_has_{a[0]}(tags, ['{a[1]}', '{a[2]}'])"
            ),
        )
    if column == "flag":
        return st.one_of(tests, st.sampled_from(["flag", "not flag", "flag = false", "flag is not true"]))
    if column == "s":
        word = st.sampled_from([*_WORDS, "app", "ple", "num"]).map(lambda word: f"'{word}'")
        found = st.sampled_from(["app", "ple", "number", "le"])
        return st.one_of(
            tests,
            st.tuples(operators, word).map(lambda a: f"s {a[0]} {a[1]}"),
            st.lists(word, min_size=1, max_size=5).map(lambda a: f"s in ({', '.join(a)})"),
            found.map(lambda a: f"s like '{a}%'"),
            found.map(lambda a: f"s like '%{a}%'"),
            found.map(lambda a: f"starts_with(s, '{a}')"),
            found.map(lambda a: f"contains(s, '{a}')"),
        )
    if column == "f":
        value = st.sampled_from(["1.5", "-2.0", "3", "0.0", "1e300", "cast('NaN' as double)"])
    elif column == "day":
        value = st.integers(17999, 18011).map(lambda day: f"date '{_date(day)}'")
    else:
        value = st.integers(-4, 60 if column == "key" else 13).map(str)
    exact = value if column != "f" else st.sampled_from(["1.5", "-2.0", "3.0", "7.25"])  # zeros differ inside of IN
    return st.one_of(
        tests,
        st.tuples(operators, value).map(lambda a: f"{column} {a[0]} {a[1]}"),
        st.tuples(operators, value).map(lambda a: f"{a[1]} {a[0]} {column}"),
        st.lists(exact, min_size=1, max_size=5).map(lambda a: f"{column} in ({', '.join(a)})"),
        st.lists(exact, min_size=1, max_size=5).map(lambda a: f"{column} not in ({', '.join(a)})"),
        st.tuples(value, value).map(lambda a: f"{column} between {a[0]} and {a[1]}"),
    )


def predicates(columns: Sequence[str] = COLUMNS) -> st.SearchStrategy[str]:
    """Conditions on some columns under AND, OR and NOT, beside parts that no index answers."""
    atoms = st.one_of(*(conditions(column) for column in columns), st.sampled_from(["key % 2 = 0", "n % 3 = 1"]))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            inner.map(lambda a: f"not ({a})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda a: f"({a[0]}) {a[1]} ({a[2]})"),
        ),
        max_leaves=4,
    )


def _date(day: int) -> str:
    return str(pa.scalar(day, pa.date32()).as_py())
