"""One rule for types at every entry: a column is cast, or refused, wherever its rows come in.

The matrix: every pair of types goes through every way into a table, with the same outcome. Then what pandas, polars,
numpy and Python hand over, and keys of joined data.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, SchemaMismatch

VECTOR = pa.list_(pa.float32(), 2)
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
MAP = pa.map_(pa.string(), pa.int64())
UNTYPED = object()
"""The outcome of types that never fit; text is that of a value that does not; all else is what is read back."""

CASES: dict[str, tuple[pa.Array, pa.DataType, Any]] = {
    "int → bigint": (pa.array([1, -2], pa.int32()), pa.int64(), [1, -2]),
    "bigint → int": (pa.array([1, 2**31 - 1]), pa.int32(), [1, 2**31 - 1]),
    "bigint → int, too large": (pa.array([1, 2**31]), pa.int32(), "2147483648"),
    "bigint → unsigned": (pa.array([0, 255]), pa.uint8(), [0, 255]),
    "bigint → unsigned, negative": (pa.array([0, -1]), pa.uint64(), "-1"),
    "bigint → double": (pa.array([1, 2**53]), pa.float64(), [1.0, 2.0**53]),
    "bigint → double, not exact": (pa.array([1, 2**53 + 1]), pa.float64(), "9007199254740993"),
    "bigint → half, not exact": (pa.array([1, 2049]), pa.float16(), "2049"),
    "bigint → decimal": (pa.array([1, 999]), pa.decimal128(5, 2), [Decimal("1.00"), Decimal("999.00")]),
    "double → float": (pa.array([0.5, None]), pa.float32(), [0.5, None]),
    "double → float, rounded": (pa.array([0.1, 0.2]), pa.float32(), [float(np.float32(0.1)), float(np.float32(0.2))]),
    "double → float, too large": (pa.array([0.1, 1e39]), pa.float32(), r"1e\+39"),
    "double → bigint": (pa.array([1.0, None]), pa.int64(), [1, None]),
    "double → bigint, a fraction": (pa.array([1.0, 2.5]), pa.int64(), "2.5"),
    "double → decimal": (pa.array([1.5, 2.5]), pa.decimal128(5, 2), UNTYPED),
    "decimal → double": (pa.array([Decimal("1.5"), None]), pa.float64(), [1.5, None]),
    "decimal → decimal": (pa.array([Decimal("1.50"), None]), pa.decimal128(9, 1), [Decimal("1.5"), None]),
    "decimal → decimal, digits": (pa.array([Decimal("1.50"), Decimal("1.25")]), pa.decimal128(9, 1), "1.25"),
    "string → large_string": (pa.array(["a", None]), pa.large_string(), ["a", None]),
    "string → dictionary": (pa.array(["a", None]), pa.dictionary(pa.int32(), pa.string()), ["a", None]),
    "dictionary → string": (pa.array(["a", None]).dictionary_encode(), pa.string(), ["a", None]),
    "string → bigint": (pa.array(["1", "2"]), pa.int64(), UNTYPED),
    "bigint → string": (pa.array([1, 2]), pa.string(), UNTYPED),
    "boolean → int": (pa.array([True, False]), pa.int32(), UNTYPED),
    "binary → fixed size": (pa.array([b"ab", None]), pa.binary(2), [b"ab", None]),
    "binary → fixed size, longer": (pa.array([b"ab", b"abc"]), pa.binary(2), "abc"),
    "string → binary": (pa.array(["a", "b"]), pa.binary(), UNTYPED),
    "ns → us": (pa.array([1_000, None], pa.timestamp("ns")), NAIVE, [dt.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    "ns → us, digits": (pa.array([1_000, 1_001], pa.timestamp("ns")), NAIVE, "000001001"),
    "s → us": (pa.array([1, None], pa.timestamp("s")), NAIVE, [dt.datetime(1970, 1, 1, 0, 0, 1), None]),
    "zone → zone": (
        pa.array([0, None], pa.timestamp("us", "Asia/Tokyo")),
        ZONED,
        [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), None],
    ),
    "no zone → zone": (pa.array([0, None], NAIVE), ZONED, UNTYPED),
    "zone → no zone": (pa.array([0, None], ZONED), NAIVE, UNTYPED),
    "date → timestamp": (pa.array([0, None], pa.date32()), NAIVE, UNTYPED),
    "duration s → us": (pa.array([1, None], pa.duration("s")), pa.duration("us"), [dt.timedelta(seconds=1), None]),
    "array<double> → vector": (pa.array([[0.5, 1.0], None]), VECTOR, [[0.5, 1.0], None]),
    "array<int> → vector": (pa.array([[1, 2], None]), VECTOR, [[1.0, 2.0], None]),
    "array<double> → vector, longer": (pa.array([[0.5, 1.0], [1.0, 2.0, 3.0]]), VECTOR, r"\[1"),
    "large_list → vector": (pa.array([[0.5, 1.0], None], pa.large_list(pa.float64())), VECTOR, [[0.5, 1.0], None]),
    "vector → longer vector": (pa.array([[0.5, 1.0], None], VECTOR), pa.list_(pa.float32(), 3), UNTYPED),
    "vector → list": (pa.array([[0.5, 1.0], None], VECTOR), pa.list_(pa.float64()), [[0.5, 1.0], None]),
    "list → large_list": (pa.array([["a"], None]), pa.large_list(pa.string()), [["a"], None]),
    "struct, by name": (
        pa.array([{"b": "x", "a": 1}, None], pa.struct({"b": pa.string(), "a": pa.int8()})),
        pa.struct({"a": pa.int64(), "b": pa.large_string()}),
        [{"a": 1, "b": "x"}, None],
    ),
    "struct, an unknown member": (pa.array([{"a": 1, "z": 1}, None]), pa.struct({"a": pa.int64()}), UNTYPED),
    "list of structs": (
        pa.array([[{"v": [1.0, 2.0]}], None]),
        pa.list_(pa.struct({"v": VECTOR})),
        [[{"v": [1.0, 2.0]}], None],
    ),
    "map": (pa.array([[("k", 1)], None], MAP), pa.map_(pa.string(), pa.int32()), [[("k", 1)], None]),
    "null → anything": (pa.nulls(2), VECTOR, [None, None]),
    "interval → duration": (pa.nulls(2, pa.month_day_nano_interval()), pa.duration("us"), UNTYPED),
}

Entry = Callable[[tw.LanceDataset, pa.Table], tw.LanceDataset]


def _append(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    return tw.write_dataset(rows, ds, mode="append")


def _insert(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    ds.insert(rows.to_reader())
    return ds


def _overwrite(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    return tw.write_dataset(rows, ds, schema=ds.schema, mode="overwrite")


def _merge(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    return ds


def _fragments(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    operation = tw.LanceOperation.Append(tw.fragment.write_fragments(rows, ds))
    return tw.LanceDataset.commit(ds, operation, read_version=ds.version)


def _create_fragment(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    operation = tw.LanceOperation.Append([tw.LanceFragment.create(ds, rows)])
    return tw.LanceDataset.commit(ds, operation, read_version=ds.version)


def _update_columns(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    """Joined data for one fragment, of rows that are there."""
    ds = tw.write_dataset({"id": rows["id"]}, ds, mode="append")
    (fragment,) = ds.get_fragments()
    metadata, modified = fragment.update_columns(rows, "id")
    operation = tw.LanceOperation.Update(updated_fragments=[metadata], fields_modified=modified)
    return tw.LanceDataset.commit(ds, operation, read_version=ds.version)


def _function(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    """A function whose columns were declared."""
    ds = tw.write_dataset({"id": rows["id"]}, ds, mode="overwrite")
    wanted = tw.batch_udf(pa.schema({"x": tw.dataset(ds.uri, version=1).schema.field("x").type}))
    ds.add_columns(wanted(lambda batch: rows.select(["x"]).to_batches()[0]))
    return ds


def _new_rows(ds: tw.LanceDataset, rows: pa.Table) -> tw.LanceDataset:
    """Columns out of a stream, in a schema that was given."""
    kind = ds.schema.field("x").type
    ds = tw.write_dataset({"id": rows["id"]}, ds, mode="overwrite")
    ds.add_columns(rows.select(["x"]).to_reader(), reader_schema=pa.schema({"x": kind}))
    return ds


ENTRIES = {
    "append": _append,
    "insert": _insert,
    "overwrite with a schema": _overwrite,
    "merge_insert": _merge,
    "write_fragments": _fragments,
    "LanceFragment.create": _create_fragment,
    "update_columns": _update_columns,
    "add_columns by a function": _function,
    "add_columns by a stream": _new_rows,
}


def _table(kind: pa.DataType) -> tw.LanceDataset:
    schema = pa.schema({"id": pa.int64(), "x": kind})
    return tw.write_dataset(schema.empty_table(), f"memory://{uuid.uuid4()}")


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_pair_of_types_at_every_entry(entry: str) -> None:
    wrong = {name: answer for name in CASES if (answer := _answer(ENTRIES[entry], *CASES[name])) is not None}
    assert wrong == {}


def _answer(entry: Entry, array: pa.Array, kind: pa.DataType, outcome: Any) -> str | None:
    """What is wrong with an entry's treatment of a column, if something is."""
    ds = _table(kind)
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "x": array})
    try:
        done = entry(ds, rows)
    except InvalidRequest as error:
        if outcome is UNTYPED:
            return None if "x" in str(error) else f"does not name the column: {error}"
        is_named = isinstance(outcome, str) and '"x' in str(error) and _holds(str(error), outcome)
        return None if is_named else f"refused: {error}"
    if outcome is UNTYPED or isinstance(outcome, str):
        return f"not refused, {done.to_table()['x'].to_pylist()}"
    found = done.to_table(columns=["x"])["x"]
    if found.type != kind:
        return f"has type {found.type}"
    return None if found.to_pylist() == outcome else f"became {found.to_pylist()}"


def _holds(text: str, value: str) -> bool:
    return value.replace("\\", "") in text and "does not fit" in text


def test_a_refusal_changes_nothing() -> None:
    for name in ("string → bigint", "bigint → int, too large"):
        array, kind, _ = CASES[name]
        ds = _table(kind)
        for entry in (_append, _insert, _merge, _overwrite):
            with pytest.raises(InvalidRequest):
                entry(ds, pa.table({"id": [1, 2], "x": array}))
        assert ds.latest_version == 1


# ------------------------------------------------------------------------------------------ other libraries, Python
WHEN = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)
FOREIGN: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "pandas ns": (pd.DataFrame({"x": pd.to_datetime([WHEN])}), NAIVE, [WHEN]),
    "pandas ints with a hole": (pd.DataFrame({"x": [1, None]}), pa.int32(), [1, None]),
    "pandas ndarrays": (pd.DataFrame({"x": [np.array([0.5, 1.0]), None]}), VECTOR, [[0.5, 1.0], None]),
    "pandas lists": (pd.DataFrame({"x": [[0.5, 1.0]]}), VECTOR, [[0.5, 1.0]]),
    "pandas categories": (pd.DataFrame({"x": pd.Categorical(["a", None])}), pa.string(), ["a", None]),
    "polars lists": (pl.DataFrame({"x": [[0.5, 1.0], None]}), VECTOR, [[0.5, 1.0], None]),
    "polars arrays": (pl.DataFrame({"x": [[0.5, 1.0]]}, schema={"x": pl.Array(pl.Float64, 2)}), VECTOR, [[0.5, 1.0]]),
    "polars text": (pl.DataFrame({"x": ["a", None]}), pa.large_string(), ["a", None]),
    "numpy, two dimensions": ({"x": np.array([[0.5, 1.0], [2.0, 3.0]])}, VECTOR, [[0.5, 1.0], [2.0, 3.0]]),
    "numpy, one": ({"x": np.array([1, 2], np.int16)}, pa.float32(), [1.0, 2.0]),
    "a list of ndarrays": ({"x": [np.array([0.5, 1.0]), None]}, VECTOR, [[0.5, 1.0], None]),
    "rows with lists": ([{"x": [0.5, 1]}, {"x": None}], VECTOR, [[0.5, 1.0], None]),
    "floats": ({"x": [0.1]}, pa.float32(), [float(np.float32(0.1))]),
    "a datetime": ([{"x": WHEN}], pa.timestamp("ns"), [WHEN]),
    "a decimal": ([{"x": Decimal("1.5")}], pa.decimal128(9, 2), [Decimal("1.50")]),
    "pairs of a map": ([{"x": [("k", 1)]}], MAP, [[("k", 1)]]),
    "part of a struct": ([{"x": {"a": 1}}], pa.struct({"a": pa.float32(), "b": pa.int64()}), [{"a": 1.0, "b": None}]),
    "a text for a dictionary": ([{"x": "a"}], pa.dictionary(pa.int8(), pa.string()), ["a"]),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_libraries_hand_over(name: str) -> None:
    data, kind, expected = FOREIGN[name]
    inserted, merged = (
        tw.write_dataset(pa.schema({"x": kind}).empty_table(), f"memory://{uuid.uuid4()}") for _ in "12"
    )
    inserted.insert(data)
    assert inserted.to_table()["x"].to_pylist() == expected
    merged.add_columns(pa.schema({"id": pa.int64()}))
    merged.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_with_ids(data))
    assert merged.to_table()["x"].to_pylist() == expected


def _with_ids(data: Any) -> Any:
    """The same with a key for each row."""
    if isinstance(data, dict):
        return data | {"id": list(range(len(data["x"])))}
    if isinstance(data, list):
        return [row | {"id": number} for number, row in enumerate(data)]
    if isinstance(data, pd.DataFrame):
        return data.assign(id=range(len(data)))
    return data.with_columns(pl.Series("id", range(len(data))))


REFUSED: list[tuple[pa.DataType, Any]] = [
    (pa.int64(), 2.5),
    (pa.int8(), 300),
    (pa.struct({"x": pa.int64()}), {"x": 1, "y": 2}),
    (pa.list_(pa.struct({"x": pa.int64()})), [{"x": 1, "y": 2}]),
    (pa.timestamp("us"), WHEN.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))),
    (pa.timestamp("s"), WHEN),
    (pa.date32(), WHEN),
    (pa.string(), b"x"),
    (pa.binary(), "x"),
    (VECTOR, [1.0]),
    (VECTOR, np.ones((2, 2))),
    (pa.int64(), True),
    (pa.int64(), "5"),
]


@pytest.mark.parametrize(("kind", "value"), REFUSED, ids=str)
def test_python_values_that_would_change_are_refused(kind: pa.DataType, value: Any) -> None:
    ds = tw.write_dataset(pa.schema({"v": kind}).empty_table(), f"memory://{uuid.uuid4()}")
    for data in ([{"v": value}], {"v": [value]}):
        with pytest.raises((SchemaMismatch, InvalidRequest)):
            ds.insert(data)
    assert ds.latest_version == 1


def test_nothing_is_inserted_as_an_empty_version() -> None:
    ds = _table(pa.int64())
    ds.insert([])
    ds.insert({})
    assert (ds.version, ds.count_rows()) == (3, 0)


@pytest.mark.parametrize("wrong", [{1: [1]}, [{1: 1}], {"v": [1, "x"]}, {"v": [[1], 2]}, {"v": np.ones((2, 0))}])
def test_columns_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest):
        tw.write_dataset(wrong, f"memory://{uuid.uuid4()}")


def test_numpy_of_several_dimensions_makes_vectors() -> None:
    ds = tw.write_dataset({"v": np.ones((2, 3), np.float32), "m": np.ones((2, 3, 4))}, f"memory://{uuid.uuid4()}")
    assert ds.schema.types == [pa.list_(pa.float32(), 3), pa.list_(pa.list_(pa.float64(), 4), 3)]


def test_keys_of_joined_data() -> None:
    ds = tw.write_dataset({"id": [1, 2]}, f"memory://{uuid.uuid4()}")
    ds.merge(pa.table({"id": pa.array([2, 3], pa.int16()), "y": ["b", "c"]}), "id")
    ds.merge({"k": [2.0], "z": ["two"]}, "id", "k")
    assert ds.to_table().to_pydict() == {"id": [1, 2], "y": [None, "b"], "z": [None, "two"]}
