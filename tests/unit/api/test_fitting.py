"""Python values never change on their way into a table: they fit, or they are refused."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.fitting import fits
from tablewright.errors import InvalidRequest, SchemaMismatch

NAIVE = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
AWARE = NAIVE.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))


def table(kind: pa.DataType) -> tw.LanceDataset:
    return tw.write_dataset(pa.schema({"v": kind}).empty_table(), f"memory://{uuid.uuid4()}")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.float32(), 2),
        (pa.float32(), 0.5),
        (pa.int8(), 7),
        (pa.list_(pa.float32(), 2), [1.0, 2.0]),
        (pa.list_(pa.float32(), 2), [1, 2]),
        (pa.large_string(), "x"),
        (pa.struct({"x": pa.float32(), "y": pa.int64()}), {"x": 1}),
        (pa.timestamp("ns"), NAIVE),
        (pa.timestamp("us", "UTC"), AWARE),
        (pa.date32(), dt.date(2024, 5, 6)),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
        (pa.binary(2), b"ab"),
        (pa.dictionary(pa.int32(), pa.string()), "x"),
        (pa.string(), None),
    ],
)
def test_what_fits_is_stored_unchanged(kind: pa.DataType, value: Any) -> None:
    ds = table(kind)
    ds.insert([{"v": value}])
    ds.insert({"v": [value]})
    stored = ds.to_table()["v"].to_pylist()
    expected = {"x": 1.0, "y": None} if isinstance(value, dict) else value
    assert stored == [expected, expected]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), 2.5),
        (pa.int8(), 300),
        (pa.struct({"x": pa.int64()}), {"x": 1, "y": 2}),
        (pa.list_(pa.struct({"x": pa.int64()})), [{"x": 1, "y": 2}]),
        (pa.timestamp("us"), AWARE),
        (pa.timestamp("s"), NAIVE),
        (pa.date32(), NAIVE),
        (pa.string(), b"x"),
        (pa.binary(), "x"),
        (pa.list_(pa.float32(), 2), [1.0]),
        (pa.int64(), True),
        (pa.int64(), "5"),
    ],
)
def test_what_would_change_is_refused(kind: pa.DataType, value: Any) -> None:
    ds = table(kind)
    for data in ([{"v": value}], {"v": [value]}):
        with pytest.raises((SchemaMismatch, InvalidRequest)):
            ds.insert(data)
    assert ds.latest_version == 1


def test_nothing_is_inserted_as_an_empty_version() -> None:
    ds = table(pa.int64())
    ds.insert([])
    ds.insert({})
    assert (ds.version, ds.count_rows()) == (3, 0)


@pytest.mark.parametrize("wrong", [{1: [1]}, [{1: 1}], {"v": [1, "x"]}, {"v": [[1], 2]}])
def test_columns_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest):
        tw.write_dataset(wrong, f"memory://{uuid.uuid4()}")


def test_times_may_only_get_finer() -> None:
    assert fits(pa.timestamp("us"), pa.timestamp("ns"))
    assert not fits(pa.timestamp("us"), pa.timestamp("ms"))
    assert fits(pa.duration("us"), pa.duration("ns"))
    assert not fits(pa.time64("us"), pa.duration("us"))
