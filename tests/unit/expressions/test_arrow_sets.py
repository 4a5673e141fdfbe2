"""`isin` in filters: null is neither in a set nor outside of it."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import compile_filter

BATCH = pa.record_batch({"s": ["a", None, "c"], "i": pa.array([1, 2, None], pa.int64())})


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (pc.field("s").isin(["a", "b"]), "s in ('a', 'b')"),
        (~pc.field("s").isin(["a", "b"]), "not (s in ('a', 'b'))"),
        (~pc.field("s").isin(pa.array([], pa.string())), "s is not null"),
        (~(pc.field("i") + 1).isin([2]), "not (i + 1 in (2))"),
        (~pc.field("s").isin(["a"]) | (pc.field("i") > 1), "not (s in ('a')) or i > 1"),
        (~(pc.field("s").isin(["a"]) & pc.field("i").isin([1])), "not (s in ('a') and i in (1))"),
        (~pc.is_in(pc.field("s"), pa.array(["a"]), skip_nulls=True), "not (s in ('a'))"),
        (pc.field("s") == "a", "s = 'a'"),
    ],
    ids=str,
)
def test_as_in_sql(expression: Any, sql: str) -> None:
    predicate = compile_filter(expression, BATCH.schema)
    expected = compile_filter(sql, BATCH.schema).filter(BATCH)
    assert predicate.filter(BATCH).equals(expected)
    assert pickle.loads(pickle.dumps(predicate)).filter(BATCH).equals(expected)
    assert predicate.text == str(expression)


def test_a_set_of_another_type() -> None:
    with pytest.raises(InvalidRequest, match="type of values set"):
        compile_filter(pc.field("s").isin([]), BATCH.schema)
