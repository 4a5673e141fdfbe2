"""Everything that write_dataset takes becomes a schema and a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import tablewright as tw
from tablewright.api.inputs import as_schema, as_source
from tablewright.errors import InvalidRequest, SchemaMismatch

TABLE = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "c"]})


class Stream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_reader().__arrow_c_stream__(requested_schema)


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: pads.dataset(TABLE),
    "scanner": lambda: pads.dataset(TABLE).scanner(),
    "list of batches": lambda: TABLE.to_batches(max_chunksize=1),
    "generator of batches": lambda: (batch for batch in TABLE.to_batches(max_chunksize=2)),
    "list of tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "list of dicts": TABLE.to_pylist,
    "dict": TABLE.to_pydict,
    "pandas": TABLE.to_pandas,
    "arrow stream": Stream,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(form: str) -> None:
    source = as_source(FORMS[form]())
    assert source.schema.remove_metadata().equals(TABLE.schema)
    assert pa.Table.from_batches(source.batches, source.schema).to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("frame", [pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy()], ids=["frame", "lazy"])
def test_polars(frame: Any) -> None:
    source = as_source(frame)
    assert pa.Table.from_batches(source.batches, source.schema).to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("form", ["table", "reader", "list of dicts", "dict", "generator of batches"])
def test_a_schema_casts(form: str) -> None:
    wanted = pa.schema({"id": pa.int32(), "s": pa.large_string()})
    source = as_source(FORMS[form](), wanted)
    assert source.schema.equals(wanted)
    assert pa.Table.from_batches(source.batches, source.schema).schema.equals(wanted)


def test_sizes_are_known_where_data_is_in_memory() -> None:
    assert as_source(TABLE).nbytes == TABLE.nbytes
    assert as_source(TABLE.to_reader()).nbytes is None


def test_nothing_is_read_before_it_is_asked_for() -> None:
    touched: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(TABLE.to_batches(max_chunksize=1)):
            touched.append(number)
            yield batch

    source = as_source(batches())
    assert touched == [0]
    next(source.batches)
    assert touched == [0]
    next(source.batches)
    assert touched == [0, 1]


@pytest.mark.parametrize("data", [5, "text", b"bytes", [1, 2], object(), None])
def test_what_we_do_not_take_says_what_we_do(data: Any) -> None:
    with pytest.raises(TypeError, match="pandas or polars"):
        as_source(data)


def test_an_empty_iterable_needs_a_schema() -> None:
    with pytest.raises(InvalidRequest, match="Must provide schema"):
        as_source(iter(()))
    assert list(as_source(iter(()), TABLE.schema).batches) == []


def test_batches_of_an_iterable_must_agree() -> None:
    other = pa.record_batch({"id": ["x"]})
    with pytest.raises(InvalidRequest, match="Batch 1"):
        list(as_source([TABLE.to_batches()[0], other]).batches)


def test_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="Duplicate column names"):
        as_source(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_a_schema_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"missing=\['x'\]"):
        as_source(TABLE, pa.schema({"id": pa.int64(), "x": pa.string()}))
    with pytest.raises(InvalidRequest, match="can't be cast"):
        list(as_source(TABLE, pa.schema({"id": pa.int64(), "s": pa.int64()})).batches)


def test_pandas_keeps_what_its_round_trip_needs() -> None:
    source = as_source(pd.DataFrame({"c": pd.Categorical(["a", "b"])}))
    assert b"pandas" in (source.schema.metadata or {})


class TestSchemas:
    def test_spark_has_schemas_too(self) -> None:
        types = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed")
        nested = types.StructType([types.StructField("a", types.StringType())])
        given = types.StructType(
            [types.StructField("id", types.LongType(), nullable=False), types.StructField("st", nested)]
        )
        expected = pa.schema(
            [pa.field("id", pa.int64(), nullable=False), pa.field("st", pa.struct({"a": pa.string()}))]
        )
        assert as_schema(given) == expected
        made = tw.write_dataset([{"id": 1, "st": {"a": "x"}}], "memory://struct-type", schema=given, mode="overwrite")
        assert made.schema == expected

    @pytest.mark.parametrize("wrong", ["id long", "id long, s string", {"id": "int64"}, [("id", "long")], int, 5])
    def test_what_is_none_is_told_what_to_write(self, wrong: Any) -> None:
        for write in (
            lambda: tw.write_dataset([{"id": 1}], "memory://no-schema", schema=wrong, mode="overwrite"),
            lambda: tw.write_dataset(pa.table({"id": [1]}), "memory://no-schema", schema=wrong, mode="overwrite"),
        ):
            with pytest.raises(InvalidRequest, match=r"schema must be a pyarrow.Schema.*pa.schema\(.*pa.int64"):
                write()
