"""Values of expressions: types, projections, what is no single value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.expressions import compile_projection, compile_sql

TABLE = pa.table(
    {
        "x": pa.array([1, 2, None], pa.int32()),
        "i8": pa.array([1, 2, 3], pa.int8()),
        "n": pa.array([10, 20, 30], pa.int64()),
        "u": pa.array([1, 2, 3], pa.uint64()),
        "f": pa.array([0.5, 1.5, 2.5], pa.float64()),
        "s": pa.array(["Foo", "bar", None]),
        "st": pa.array([{"a": 1}, {"a": 2}, {"a": 3}], pa.struct([("a", pa.int16())])),
        "with space": pa.array([1, 2, 3], pa.int64()),
    }
)


def test_wider_where_the_literal_does_not_fit() -> None:
    assert compile_sql("i8 + 300", TABLE.schema).type == pa.int64()
    assert compile_sql("x * 2.5", TABLE.schema).type == pa.float64()


def test_projection_keeps_order_names_and_nullability() -> None:
    projection = compile_projection({"b": "x + 1", "a": "'lit'", "with dot.": "s"}, TABLE.schema)
    made = projection.evaluate(TABLE.combine_chunks().to_batches()[0])
    assert made.schema == projection.schema
    assert made.schema.names == ["b", "a", "with dot."]
    assert not made.schema.field("a").nullable and made.schema.field("b").nullable
    assert made.to_pylist()[0] == {"b": 2, "a": "lit", "with dot.": "Foo"}


def test_literals_alone() -> None:
    projection = compile_projection({"one": "1 + 1"}, TABLE.schema)
    assert projection.evaluate(TABLE.to_batches()[0]).column(0).to_pylist() == [2, 2, 2]


@pytest.mark.parametrize("sql", ["x as y", "x, n", "*", "sum(x)", "x +", "nope"])
def test_not_one_value(sql: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        compile_projection({"a": sql}, TABLE.schema)
    assert sql in str(error.value)


def test_views_come_back_plain() -> None:
    batch = pa.record_batch({"d": pa.array(["A", "B"])})
    compiled = compile_sql("arrow_cast(d, 'Utf8View')", batch.schema)
    assert compiled.type == pa.string()
    assert compiled.evaluate(batch).to_pylist() == ["A", "B"]


def test_slices_of_structs_in_structs() -> None:
    rows = pa.array([{"q": {"z": 1}, "l": [{"y": 1}]}, {"q": None, "l": None}, None, {"q": {"z": 4}, "l": [{"y": 4}]}])
    compiled = compile_sql("st.q.z", pa.schema([("st", rows.type)]))
    for begin in range(4):
        for length in range(5 - begin):
            batch = pa.record_batch({"st": rows}).slice(begin, length)
            assert compiled.evaluate(batch).to_pylist() == [1, None, None, 4][begin : begin + length]


def test_the_same_again_is_compiled_once_for_each_schema() -> None:
    first = compile_sql("x + 41", TABLE.schema)
    assert compile_sql("x + 41", TABLE.schema) is first
    assert compile_sql("x + 41", TABLE.schema, condition=True) is not first
    other = compile_sql("x + 41", pa.schema([("x", pa.float64())]))
    assert (first.type, other.type) == (pa.int32(), pa.float64())
    assert compile_sql("x + 41", TABLE.schema).type == pa.int32()


def test_a_moment_is_never_kept() -> None:
    moments = [compile_sql("now()", TABLE.schema, now_ns=second * 10**9).sql for second in (1, 2)]
    assert moments[0] != moments[1]


def test_errors_stay_errors_and_long_texts_are_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="No field named nothing"):
            compile_sql("nothing + 1", TABLE.schema)
    long = "x" + " " * 8000 + "+ 1"
    assert compile_sql(long, TABLE.schema) is not compile_sql(long, TABLE.schema)
