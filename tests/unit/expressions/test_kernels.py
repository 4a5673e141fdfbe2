"""Simple conditions on kernels of Arrow's and numpy's say what DataFusion says."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import compile_filter

BATCH = pa.record_batch(
    {
        "i": pa.array([1, None, 3, -4, 2**40], pa.int64()),
        "small": pa.array([1, 2, None, -128, 127], pa.int8()),
        "u": pa.array([0, 1, 2**64 - 1, None, 5], pa.uint64()),
        "s": pa.array(["a", "B", None, "", "é"]),
        "large": pa.array(["a", "b", None, "", "é"], pa.large_string()),
        "f": pa.array([1.0, float("nan"), None, 0.0, -0.0]),
        "g": pa.array([1.5, float("nan"), float("inf"), float("-inf"), None], pa.float32()),
        "with space": pa.array([1, 2, 3, 4, 5], pa.int32()),
    }
)
SIMPLE = [
    "s like 'a'",
    "s like 'a%'",
    "s like '%B'",
    "large like '%é%'",
    "s like 'a%' or i = 3",
    "i = 3",
    "3 = i",
    "i <> 3",
    "i < 3",
    "3 > i",
    "2 <= i",
    "i >= -4",
    "small = -128",
    "small > 126",
    "u = 5",
    "u < 2",
    "s = 'a'",
    "s != 'a'",
    "s < 'b'",
    "'b' > s",
    "large >= 'b'",
    "i is null",
    "s is not null",
    "f is null",
    "`with space` = 4",
    "f = 1.0",
    "f = 1",
    "f <> 1",
    "f < 5",
    "f <= 1",
    "f > 0.5",
    "1.0 <= f",
    "f between -1 and 1",
    "f in (1.0, 2.0)",
    "f in (0, 2.0)",
    "g > 1.5",
    "g >= -1.5",
    "g < 1024",
    "g <> 1.5",
    "i = 1 and s = 'a'",
    "i = 1 or s is null",
    "(i = 1 or i = 3) and (s = 'a' or small is null)",
    "i % 3 = 1",
    "i % 3 = 0",
    "i % 3 < 0",
    "i % 3 = -1",
    "i % 9000000000 > 5",
    "0 <= small % 100",
    "small % 1000 <> 28",
    "`with space` % 2 between 1 and 4",
    "i in (1, 3, 99)",
    "s in ('a', 'é')",
    "i between 1 and 3",
]
NOT_SIMPLE = [
    "s ilike 'A%'",
    "s not like 'a%'",
    "s like '%'",
    "s like '%%a'",
    "s like 'a_'",
    "s like 'a\\%'",
    "s like s",
    "not (i = 3)",
    "i not in (1, 3)",
    "i in (1, null)",
    "i not between 1 and 3",
    "i = 3.0",
    "i + 1 = 3",
    "u % 2 = 1",
    "i % -2 = 1",
    "i % 0 = 1",
    "i % small = 1",
    "i % 2.5 = 1",
    "f % 2 = 1",
    "i % 3 in (1, 2)",
    "i = small",
    "small = 300",
    "f = 0",
    "f > 0.0",
    "f < -0.0",
    "f < cast('nan' as double)",
    "g > 0.1",
    "g < 1e39",
    "i is distinct from 3",
    "lower(s) = 'b'",
    "i = null",
    "true",
]


COMPARISONS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=30),
    st.integers(1, 2**63 - 1) | st.integers(1, 50),
    st.integers(-50, 50),
    st.sampled_from(list(COMPARISONS)),
)
def test_remainders(numbers: list[int | None], divisor: int, value: int, operator: str) -> None:
    batch = pa.record_batch({"i": pa.array(numbers, pa.int64())})
    predicate = compile_filter(f"i % {divisor} {operator} {value}", batch.schema)
    assert predicate.simple is not None
    assert predicate.mask(batch).tolist() == replace(predicate, simple=None).mask(batch).tolist()


FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 2.0**-149, -(2.0**-149), float("inf"), float("-inf"), float("nan")]
SIGNED_NANS = {np.float32: (np.uint32, 1 << 31), np.float64: (np.uint64, 1 << 63)}


@given(
    st.lists(st.sampled_from(FLOATS) | st.floats(width=32), max_size=20),
    st.sampled_from([value for value in FLOATS if np.isfinite(value) and value]),
    st.sampled_from(list(COMPARISONS)),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 3),
)
def test_floats_in_datafusions_order(
    numbers: list[float], value: float, operator: str, kind: type[np.floating], start: int
) -> None:
    """Every number with either sign, NaN included, and a null among them."""
    both = np.array([*numbers, *numbers], kind)
    whole, sign = SIGNED_NANS[kind]
    both.view(whole)[: len(numbers)] ^= whole(sign)
    column = pa.concat_arrays([pa.array(both), pa.nulls(1, pa.from_numpy_dtype(kind))])
    batch = pa.record_batch({"f": column}).slice(start)
    predicate = compile_filter(f"f {operator} {value!r}", batch.schema)
    assert predicate.simple is not None
    assert predicate.mask(batch).tolist() == replace(predicate, simple=None).mask(batch).tolist()


@given(
    st.lists(st.none() | st.text("ab%_\n\\é", max_size=6), max_size=20), st.text("ab%_\n\\é", max_size=4), st.booleans()
)
def test_patterns(texts: list[str | None], pattern: str, both: bool) -> None:
    batch = pa.record_batch({"s": pa.array(texts, pa.string())})
    try:
        predicate = compile_filter(f"s like '{pattern}%'" if both else f"s like '{pattern}'", batch.schema)
    except InvalidRequest:
        return
    assert predicate.mask(batch).tolist() == replace(predicate, simple=None).mask(batch).tolist()


@pytest.mark.parametrize("text", [*SIMPLE, *NOT_SIMPLE])
def test_the_same_rows(text: str) -> None:
    if text == "i % 0 = 1":  # an error, as it should be
        with pytest.raises(InvalidRequest, match="Divide by zero"):
            compile_filter(text, BATCH.schema).mask(BATCH)
        return
    predicate = compile_filter(text, BATCH.schema)
    assert (predicate.simple is not None) == (text in SIMPLE)
    slow = replace(predicate, simple=None)
    for batch in (BATCH, BATCH.slice(1, 3), BATCH.slice(0, 0)):
        expected = slow.mask(batch).tolist()
        assert predicate.mask(batch).tolist() == expected
        assert pickle.loads(pickle.dumps(predicate)).mask(batch).tolist() == expected


@given(
    st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 9), min_size=1, max_size=30),
    st.sampled_from([1, 2, 3, 10, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1]) | st.integers(1, 2**32),
    st.integers(0, 30),
    st.integers(-1, 1),
    st.sampled_from(list(COMPARISONS)),
    st.sampled_from([pa.int64(), pa.uint32()]),
)
def test_remainders_of_numbers_that_fit_32_bits(
    numbers: list[int], divisor: int, which: int, beside: int, operator: str, kind: pa.DataType
) -> None:
    """Compared with a remainder that one of them has, or with the number before or after it."""
    value = numbers[which % len(numbers)] % divisor + beside
    batch = pa.record_batch({"i": pa.array(numbers, kind)})
    predicate = compile_filter(f"i % {divisor} {operator} {value}", batch.schema)
    if kind == pa.int64():
        assert predicate.simple is not None
    compare = getattr(np, COMPARISONS[operator])
    assert predicate.mask(batch).tolist() == compare(np.array(numbers) % divisor, value).tolist()


@pytest.mark.parametrize("divisor", [7, 2**33])
def test_remainders_of_narrow_and_wide_numbers_in_many_blocks(divisor: int) -> None:
    numbers = np.concatenate([np.arange(40_000), np.arange(-20_000, 20_000), np.arange(2**40, 2**40 + 20_000), [2**32]])
    batch = pa.record_batch({"i": pa.array([*numbers.tolist(), None], pa.int64())})
    predicate = compile_filter(f"i % {divisor} < 3", batch.schema)
    assert predicate.simple is not None
    assert predicate.mask(batch).tolist() == [*(np.fmod(numbers, divisor) < 3).tolist(), False]


@pytest.mark.parametrize(
    ("text", "selective"),
    [
        ("i = 5", True),
        ("i in (5, 6) and f > 1.5", True),
        ("i = 5 or f > 1.5", False),
        ("i = 5 or s = 'x'", True),
        ("i % 10 = 3", False),
        ("i > 5", False),
        ("abs(i) = 5", False),
    ],
)
def test_conditions_that_ask_for_values_are_selective(text: str, selective: bool) -> None:
    schema = pa.schema([("i", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
    assert compile_filter(text, schema).is_selective is selective
