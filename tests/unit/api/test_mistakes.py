"""What people do in their first hour: no error of Python, Arrow or DataFusion comes out, and the message helps."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.errors import InternalError, TablewrightError


@pytest.fixture
def ds() -> tw.LanceDataset:
    rows = {"id": [1, 2, 3], "name": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
    return tw.write_dataset(rows, f"memory://{uuid.uuid4()}", max_rows_per_file=2)


def write(data: Any, **options: Any) -> Callable[[tw.LanceDataset], Any]:
    return lambda ds: tw.write_dataset(data, f"memory://{uuid.uuid4()}", **options)


ONE = {"a": [1]}
MISTAKES: dict[str, tuple[Callable[[tw.LanceDataset], Any], str]] = {
    # data
    "arguments swapped": (lambda ds: tw.write_dataset("memory://x", ONE), "uri must be a path"),
    "no data": (write(None), "Unknown data type"),
    "a file's name": (write("rows.parquet"), "Unknown data type"),
    "rows as tuples": (write([(1, "a")]), "<class 'list'> of tuple"),
    "rows as lists": (write([[1, "a"]]), "<class 'list'> of list"),
    "a row that is None": (write([{"a": 1}, None]), "Unknown data type"),
    "nothing but None": (write([None]), "Unknown data type"),
    "a generator of dicts": (write({"a": i} for i in range(3)), "<class 'generator'> of dict"),
    "numbers": (write([1, 2]), "of int"),
    "a matrix": (write(np.zeros((2, 2))), "ndarray"),
    "a pandas Series": (write(pd.Series([1])), "Series"),
    "a polars Series": (write(pl.Series("a", [1])), "Series"),
    "a chunked array": (write(pa.chunked_array([[1]])), "ChunkedArray"),
    "one value per column": (write({"a": 1}), "Column 'a' needs a list of values, got 1 of type int"),
    "a text as a column": (write({"a": "abc"}), "Column 'a' needs a list of values, got 'abc'"),
    "a set as a column": (write({"a": {1, 2}}), "needs a list of values"),
    "a dict as a column": (write({"a": {"x": 1}}), "needs a list of values"),
    "columns of two lengths": (write({"a": [1], "b": [1, 2]}), "length"),
    "mixed values": (write({"a": [1, "x"]}), "Column 'a'"),
    "mixed values in pandas": (write(pd.DataFrame({"a": [1, "x"]})), "pandas frame"),
    "numbers as names": (write({1: [1]}), "names must be text"),
    # options
    "mode of pandas": (write(ONE, mode="a"), "create, append, overwrite"),
    "mode of Spark": (write(ONE, mode="errorifexists"), "create, append, overwrite"),
    "rows as a float": (write(ONE, max_rows_per_file=1e6), "whole number"),
    "bytes with a unit": (write(ONE, max_bytes_per_file="1GB"), "whole number"),
    "a flag as text": (write(ONE, enable_stable_row_ids="yes"), "enable_stable_row_ids must be True or False"),
    "another engine": (write(ONE, engine="dask"), "engine must be"),
    "a master as session": (write(ONE, spark="local[*]"), "spark must be a SparkSession"),
    "a lock that is none": (write(ONE, commit_lock=5), "commit_lock must be a function"),
    "a function as progress": (write(ONE, progress=print), "begin and complete"),
    "a schema as text": (write(ONE, schema="a long"), "pa.schema"),
    # opening
    "a dataset as address": (lambda ds: tw.dataset(ds), "uri must be"),
    "a version as text": (lambda ds: tw.dataset(ds.uri, version="1"), "write version=1 for the number"),
    "a checkout as text": (lambda ds: ds.checkout_version("1"), "write version=1 for the number"),
    "a version as float": (lambda ds: tw.dataset(ds.uri, version=1.0), "whole number"),  # type: ignore[arg-type]
    "yesterday": (lambda ds: tw.dataset(ds.uri, asof="yesterday"), "2024-06-01"),
    "columns as default": (lambda ds: tw.dataset(ds.uri, default_scan_options=["id"]), "dict of names and values"),  # type: ignore[arg-type]
    "a misspelt default": (lambda ds: tw.dataset(ds.uri, default_scan_options={"colums": ["id"]}), "colums"),
    "a directory without a table": (lambda ds: tw.dataset(Path(__file__).parent), "was not found"),
    # reading
    "a column as text": (lambda ds: ds.to_table("id"), "columns must be a list"),
    "a misspelt column": (lambda ds: ds.to_table(["nme"]), "Did you mean 'name'"),
    "a misspelt option": (lambda ds: ds.to_table(colums=["id"]), "colums"),
    "a text without quotes": (lambda ds: ds.count_rows("name = zed"), "For a text write 'zed' in single quotes"),
    "Python's None": (lambda ds: ds.count_rows("name == None"), "Write IS NULL"),
    "double quotes": (lambda ds: ds.count_rows("\"name\" = 'a'"), "Write name without quotes"),
    "a number as text": (lambda ds: ds.count_rows("id = '1'"), "int64"),
    "a list in brackets": (lambda ds: ds.count_rows("id in [1, 2]"), r"Expected: \("),
    "tuples as filter": (lambda ds: ds.to_table(filter=[("id", ">", 1)]), "SQL"),  # type: ignore[arg-type]
    "a polars filter": (lambda ds: ds.to_table(filter=pl.col("id") > 1), "SQL"),
    "an Arrow filter": (lambda ds: ds.to_table(filter=pc.field("nme") > 1), "Did you mean 'name'"),
    "a query as filter": (lambda ds: ds.count_rows("select * from t"), "No field named select"),
    "an aggregate": (lambda ds: ds.count_rows("count(*) > 1"), "aggregate"),
    "order as a tuple": (lambda ds: ds.to_table(order_by=[("id", "desc")]), "ColumnOrdering"),
    "a limit as text": (lambda ds: ds.to_table(limit="3"), "whole number"),  # type: ignore[arg-type]
    "one position": (lambda ds: ds.take(0), "must be a list"),  # type: ignore[arg-type]
    "a mask": (lambda ds: ds.take([True, False, True]), "whole number"),
    "slices by text": (lambda ds: ds.slice("a", 1), "start must be a whole number"),  # type: ignore[arg-type]
    "a share of rows": (lambda ds: ds.sample(0.5), "whole number"),  # type: ignore[arg-type]
    "a fragment by text": (lambda ds: ds.get_fragment("0"), "whole number"),  # type: ignore[arg-type]
    "a fragment of no dataset": (lambda ds: tw.LanceFragment("x", 0), "belongs to a LanceDataset"),  # type: ignore[arg-type]
    "transactions by text": (lambda ds: ds.get_transactions("1"), "whole number"),  # type: ignore[arg-type]
    "no query": (lambda ds: ds.sql(None), "the query must be text"),  # type: ignore[arg-type]
    "a misspelt query": (lambda ds: ds.sql("selct 1").build().to_batch_records(), "Expected: an SQL statement"),
    # changing
    "delete everything": (lambda ds: ds.delete(None), "predicate must be SQL text"),  # type: ignore[arg-type]
    "delete nothing": (lambda ds: ds.delete(""), "is empty"),
    "update of a number": (lambda ds: ds.update({"id": 5}), "Write {'id': '5'}"),  # type: ignore[dict-item]
    "update of a text": (lambda ds: ds.update({"name": "zed"}), "write {'name': \"'zed'\"}"),
    "update swapped": (lambda ds: ds.update("id = 1", {"id": "2"}), "where must be SQL text"),  # type: ignore[arg-type]
    "merge on SQL": (lambda ds: ds.merge_insert("target.id = source.id"), "does not exist in schema"),
    "merge without clauses": (lambda ds: ds.merge_insert("id").execute({"id": [1]}), "when_matched_update_all"),
    "merge condition": (lambda ds: ds.merge_insert("id").when_matched_update_all("x > 1").execute(ds), "source.x or"),
    "drop a column by text": (lambda ds: ds.drop_columns("id"), "must be a list"),  # type: ignore[arg-type]
    "a type as text": (lambda ds: ds.alter_columns({"path": "id", "data_type": "int32"}), "DataType"),
    "one row as a dict": (lambda ds: ds.insert({"id": 4, "name": "q"}), "needs a list of values"),
    "columns of another case": (lambda ds: ds.insert({"ID": [4]}), "unexpected"),
    "config of numbers": (lambda ds: ds.update_config({"a": 5}), "must be text"),  # type: ignore[dict-item]
    "no config keys": (lambda ds: ds.delete_config_keys(None), "must be a list"),  # type: ignore[arg-type]
    "an operation as text": (lambda ds: tw.LanceDataset.commit(ds, "append", 1), "LanceOperation"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(ds: tw.LanceDataset, name: str) -> None:
    mistake, told = MISTAKES[name]
    version = ds.version
    with pytest.raises(TablewrightError, match=told) as caught:
        mistake(ds)
    assert not isinstance(caught.value, InternalError)
    ds.checkout_latest()
    assert ds.version == version


def test_what_looks_like_one_and_is_none(ds: tw.LanceDataset) -> None:
    rows = ({"id": 4}, {"id": 5})
    ds.insert(rows)
    ds.insert({"id": np.arange(6, 8)})
    ds.insert({"id": pl.Series([8])})
    ds.insert({"id": (9, 10)})
    assert ds.to_table(columns=np.array(["id"]), filter="ID > 3")["id"].to_pylist() == [4, 5, 6, 7, 8, 9, 10]
    assert tw.dataset(ds.uri, asof=pd.Timestamp("2200-01-01")).version == ds.version
    assert tw.dataset(ds.uri, version=np.int64(1)).count_rows() == 3
    tw.write_dataset({"id": [11]}, ds, mode="append", commit_lock=lambda version: nullcontext())


def test_a_callers_own_error_stays_his_own() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tw.write_dataset(batches(), f"memory://{uuid.uuid4()}")
