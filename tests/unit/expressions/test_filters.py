"""Filters in the SQL dialect and as Arrow expressions. What pylance says to the same: tests/differential."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions import compile_filter

SYSTEM = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version", "_rowoffset"]


def _table() -> pa.Table:
    inner = pa.struct([("z", pa.int64())])
    struct = pa.struct([("a", pa.int64()), ("B c", pa.int64()), ("in", inner)])
    moments = [dt.datetime(2024, month, 1) for month in range(1, 7)]
    return pa.table(
        {
            "CamelCase": pa.array([1, 2, 3, 4, None, 6], pa.int64()),
            "camelcase": pa.array([5, 5, 6, 7, 8, 9], pa.int64()),
            "Upper": pa.array([1, 2, 1, 2, 1, 2], pa.int32()),
            "with space": pa.array([1, 2, 3, 1, 2, 3], pa.int64()),
            "select": pa.array([1, 2, 3, 1, 2, 3], pa.int64()),
            "s": pa.array(["foo", "bar", "Foo", "it's", None, 'say "hi"']),
            "n": pa.array([1, 2, None, 1, 2, None], pa.int64()),
            "x": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "f": pa.array([1.0, 2.5, 3, 4, 5, 6], pa.float64()),
            "b": pa.array([True, False, None, True, False, True]),
            "l": pa.array([[1, 3], [2], [3], None, [], [3, 4]], pa.list_(pa.int64())),
            "ls": pa.array([["a"], ["b", "c"], None, [], ["a", "b"], ["z"]], pa.list_(pa.string())),
            "ts": pa.array(moments, pa.timestamp("us")),
            "tz": pa.array(moments, pa.timestamp("us", "UTC")),
            "d": pa.array([dt.date(2024, 1, day) for day in range(1, 7)], pa.date32()),
            "date": pa.array([dt.date(2024, 1, day) for day in range(1, 7)], pa.date32()),
            "end": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
            "st": pa.array([{"a": i, "B c": i + 1, "in": {"z": i}} for i in range(6)], struct),
            "bin": pa.array([b"a", b"b", None, b"d", b"e", b"f"], pa.binary()),
            "dec": pa.array([1, 2, 3, 4, 5, 6], pa.decimal128(10, 2)),
            "v": pa.array([[float(i), 1.0] for i in range(6)], pa.list_(pa.float32(), 2)),
            "i8": pa.array([1, 2, 3, 4, 5, 6], pa.int8()),
            "u8": pa.array([1, 2, 3, 4, 5, 6], pa.uint64()),
            "dic": pa.array(["a", "b", "a", "b", "a", "c"]).dictionary_encode(),
        }
    )


TABLE = _table()
SCHEMA = TABLE.schema


@pytest.fixture(scope="module")
def rows() -> pa.RecordBatch:
    table = TABLE
    for name in SYSTEM:
        table = table.append_column(name, pa.array(range(6), pa.uint64()))
    return table.combine_chunks().to_batches()[0]


def _found(filter: Any, rows: pa.RecordBatch) -> list[int]:
    found: list[int] = compile_filter(filter, SCHEMA).filter(rows).column("x").to_pylist()
    return found


OURS_ALONE = {
    "ts < current_date() - interval '90 days'": [1, 2, 3, 4, 5, 6],
    "ts < timestamp '2024-05-01' - interval '60 days'": [1, 2, 3],
    "ts < timestamp '2024-05-01' - interval '3' month and x > 0": [1],
    "ts > '2024-03-01'": [4, 5, 6],
    "ts in ('2024-03-01')": [3],
    "tz > '2024-03-01T00:00:00Z'": [4, 5, 6],
    "d = '2024-01-01'": [1],
    "x = 1.0": [1],
    "x > 1.5": [2, 3, 4, 5, 6],
    "x in (1.5, 2.0)": [2],
    "x between 1 and 2.5": [1, 2],
    "i8 = 300": [],
    "x = 9999999999999": [],
    "u8 = -1": [],
    "dec > 1.5": [2, 3, 4, 5, 6],
    "st.A = 3": [4],
    "ST.A = 3": [4],
    "_rowoffset > 1": [3, 4, 5, 6],
    "end = 3": [3],
    "case when end > 3 then true else false end": [4, 5, 6],
    "case x when 1 then true else b end": [1, 4, 6],
    "extract(month from ts) = 2": [2],
    "substr(s, 1, 1) = 'f'": [1],
    "trim(both 'f' from s) = 'oo'": [1],
    "position('o' in s) = 2 and x = 1": [1],
    "s ~ '^f'": [1],
    "x = +1": [1],
    "x::double precision > 1 and x < 3": [2],
    "try_cast(s as int) is null and x = 1": [1],
    "ts at time zone 'UTC' < now() and x = 1": [1],
    "b is unknown": [3],
}


@pytest.mark.parametrize("filter", OURS_ALONE)
def test_accepted_where_the_meaning_is_plain(filter: str, rows: pa.RecordBatch) -> None:
    assert _found(filter, rows) == OURS_ALONE[filter]


REFUSED_BY_US_ALONE = {
    "x = 1; drop table t": "only one expression",  # pylance drops what follows
    "x = 1_000": "found: _000",  # pylance reads x = 1
    "ts > 'soon'": "ts is of type timestamp[us] and can't be compared with 'soon'",
    "d = 'never'": "d is of type date32[day] and can't be compared with 'never'",
    "now() - ts > interval '1 day'": "spans of time",
    "exists (select 1)": "subquery",
    "x = (select 1)": "(select 1)",
    "row_number() over () > 1": "window function",
    "x = $1": "The expression was",
}


@pytest.mark.parametrize("filter", REFUSED_BY_US_ALONE)
def test_refused_rather_than_guessed(filter: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        compile_filter(filter, SCHEMA)
    assert REFUSED_BY_US_ALONE[filter] in str(error.value)


def test_now_is_the_moment_given(rows: pa.RecordBatch) -> None:
    moment = int(dt.datetime(2024, 3, 15, tzinfo=dt.UTC).timestamp()) * 1_000_000_000
    for sql in ("ts < now()", "ts < current_timestamp()", "ts < current_timestamp", "ts < current_date()"):
        predicate = compile_filter(sql, SCHEMA, now_ns=moment)
        assert predicate.filter(rows).column("x").to_pylist() == [1, 2, 3]


def test_columns_and_paths_are_those_used() -> None:
    predicate = compile_filter("st.in.z = 1 and CAMELCASE > _rowid and st.in.z < 9", SCHEMA)
    assert predicate.columns == ("st", "CamelCase", "_rowid")
    assert predicate.paths == (("st", "in", "z"), ("CamelCase",), ("_rowid",))


def test_a_struct_may_come_without_unused_children() -> None:
    predicate = compile_filter("st.a = 1", SCHEMA)
    batch = pa.record_batch({"st": pa.array([{"a": 1}, {"a": 2}]), "x": [1, 2]})
    assert predicate.filter(batch).column("x").to_pylist() == [1]


def test_no_rows_and_no_columns(rows: pa.RecordBatch) -> None:
    assert compile_filter("x = 1", SCHEMA).mask(rows.slice(0, 0)).tolist() == []
    assert compile_filter("1 = 1", SCHEMA).mask(rows).tolist() == [True] * 6


ARROW = [
    pc.field("x") > 2,
    (pc.field("s") == "foo") | pc.field("n").is_null(),
    ~(pc.field("n") == 1),
    pc.field("st", "a") == 3,
    pc.field("CamelCase").isin([1, 2]),
    pc.field("with space") == 1,
]


@pytest.mark.parametrize("expression", ARROW, ids=str)
def test_arrow_expressions(expression: pc.Expression, rows: pa.RecordBatch) -> None:
    expected = TABLE.filter(expression)["x"].to_pylist()
    assert _found(expression, rows) == expected
    assert pickle.loads(pickle.dumps(expression)).equals(expression)


def test_arrow_expressions_read_the_columns_they_name() -> None:
    assert compile_filter(pc.field("x") > 2, SCHEMA).columns == ("x",)
    assert compile_filter(pc.field("st", "a").is_valid(), SCHEMA).columns == ("st",)
    assert compile_filter(pc.field("with space") == 1, SCHEMA).columns == ("with space",)


def test_arrow_expressions_refused() -> None:
    with pytest.raises(InvalidRequest, match="No field named nope"):
        compile_filter(pc.field("nope") == 1, SCHEMA)
    with pytest.raises(InvalidRequest, match="does not return a boolean"):
        compile_filter(pc.field("x"), SCHEMA)
    with pytest.raises(InvalidRequest, match="an SQL expression is text"):
        compile_filter(3, SCHEMA)  # type: ignore[arg-type]


def test_compiled_filters_travel(rows: pa.RecordBatch) -> None:
    predicate = pickle.loads(pickle.dumps(compile_filter("x > 4 and ts < now()", SCHEMA)))
    assert predicate.filter(rows).column("x").to_pylist() == [5, 6]
