"""What is refused says what to write instead, and that works."""

from __future__ import annotations

import datetime as dt
import itertools
import re

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import compile_filter

COLUMNS = {
    "i8": pa.int8(),
    "u16": pa.uint16(),
    "id": pa.int64(),
    "u": pa.uint64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "dec": pa.decimal128(10, 2),
    "name": pa.string(),
    "big": pa.large_string(),
    "dic": pa.dictionary(pa.int32(), pa.string()),
    "b": pa.bool_(),
    "day": pa.date32(),
    "ts": pa.timestamp("us"),
    "tm": pa.time64("us"),
    "with space": pa.int64(),
}
SCHEMA = pa.schema(COLUMNS)
LITERALS = ("1", "1.5", "true", "date '2020-01-01'")
SIDES = [f"`{name}`" for name in COLUMNS]


def _pairs() -> list[tuple[str, str]]:
    return [*itertools.combinations(SIDES, 2), *itertools.product(SIDES, LITERALS), *itertools.product(LITERALS, SIDES)]


def _refusal(left: str, right: str) -> str:
    try:
        compile_filter(f"{left} = {right}", SCHEMA)
    except InvalidRequest as error:
        return str(error)
    return ""


def test_every_cast_that_an_error_advises_works() -> None:
    advised = 0
    for left, right in _pairs():
        refusal = _refusal(left, right)
        for column, kind in re.findall(r"cast\((`[^`]+`|\w+) as ([a-z ]+(?:\(\d+, \d+\))?)\)", refusal):
            bare = f"`{column.strip('`')}`"
            changed = [f"cast({bare} as {kind})" if side == bare else side for side in (left, right)]
            assert changed != [left, right], refusal
            assert _refusal(*changed) == "", refusal
            advised += 1
    assert advised > 50


def test_a_number_where_text_is() -> None:
    with pytest.raises(InvalidRequest, match=r"write '1' in quotes, or cast\(name as bigint\)"):
        compile_filter("name = 1", SCHEMA)


@pytest.mark.parametrize(
    "asked",
    [
        "ts between 1 and 2",
        "st like null",
        "length(st) > 1",
        "vec like null",
        "dur between 1 and 2",
        "bin between 1 and 2",
    ],
)
def test_the_engine_asks_nobody_for_a_bug_report(asked: str) -> None:
    kinds = {"st": pa.struct({"a": pa.string()}), "vec": pa.list_(pa.float32(), 2), "dur": pa.duration("s")}
    schema = pa.schema({**COLUMNS, **kinds, "bin": pa.binary()})
    with pytest.raises(InvalidRequest) as told:
        compile_filter(asked, schema)
    message = str(told.value)
    assert not re.search(r"(?i)bug|datafusion|internal error|issue tracker|assertion|Operator::", message), message
    assert asked in message


def test_a_tensor_with_a_permutation() -> None:
    kind = pa.fixed_shape_tensor(pa.int32(), (2, 2), permutation=[1, 0])
    predicate = compile_filter("t is null", pa.schema({"t": kind}))
    values = pa.ExtensionArray.from_storage(kind, pa.array([[1, 2, 3, 4], None], pa.list_(pa.int32(), 4)))
    assert predicate.mask(pa.record_batch([values], ["t"])).tolist() == [False, True]


def test_moments_are_compared_with_moments() -> None:
    assert compile_filter("ts > '2020-01-01'", SCHEMA).mask(
        pa.record_batch({"ts": pa.array([dt.datetime(2021, 1, 1)], pa.timestamp("us"))})
    ).tolist() == [True]
