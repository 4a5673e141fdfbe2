"""What PySpark 4.0 has not, made of what it has. From 4.1 on Spark's own is used.

- ``arrow_udf`` (4.1) computes a column from a few others in Python. Before, all columns pass through Python
  (:func:`with_arrow_column`): dearer, and as exact.
- ``DataFrame.repartitionById`` (4.1) puts rows into the partition that a column names. Before, they go by its hash
  (:func:`repartition_by_id`): rows with one number are together, but some numbers share a partition.
- ``TimeType`` (4.1): columns of times are refused by name (:mod:`.spark_types`).

Tests: tests/spark/test_versions.py
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.python import map_in_arrow, our_workers, require_same_tablewright
from tablewright.engine.spark.spark_types import spark_of

__all__ = ["repartition_by_id", "with_arrow_column"]

Arrays = Callable[[Sequence[pa.Array]], pa.Array]


def with_arrow_column(
    frame: Any, columns: Sequence[str], compute: Arrays, kind: pa.DataType, name: str, kept: Sequence[str]
) -> Any:
    """A DataFrame of the new column ``name`` and of the columns ``kept``, which are called ``c0`` and so on.

    ``compute`` gets the ``columns`` of some rows as arrays, and answers with an array of type ``kind``.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StructField, StructType

    payload = [_column(frame, each).alias(f"c{number}") for number, each in enumerate(kept)]
    if hasattr(functions, "arrow_udf"):
        body = _arrow_body(dump(compute, "place function"), require_same_tablewright())
        with our_workers(frame.sparkSession):
            value = functions.arrow_udf(body, spark_of(kind, name))(*(_column(frame, each) for each in columns))
        return frame.select(value.alias(name), *payload)
    inputs = [_column(frame, each).alias(f"i{number}") for number, each in enumerate(columns)]
    rows = frame.select(*payload, *inputs)
    fields = [StructField(name, spark_of(kind, name)), *rows.schema.fields[: len(kept)]]
    added = partial(_with_column, dump(compute, "place function"), len(kept), name)
    return map_in_arrow(rows, added, StructType(fields))


def repartition_by_id(frame: Any, partitions: int, number: str) -> Any:
    """Rows in as many partitions, those that have one value of the column ``number`` together."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(partitions, frame[number])
    return frame.repartition(partitions, frame[number])


def _column(frame: Any, name: str) -> Any:
    return frame["`" + name.replace("`", "``") + "`"]


# --------------------------------------------------------------------------------------------------------- in a worker
def _arrow_body(code: bytes, require: Callable[[], None]) -> Callable[..., pa.Array]:
    def body(*columns: pa.Array) -> pa.Array:
        require()
        values: pa.Array = pickle.loads(code)(columns)
        return values

    # Spark tells by the annotations what kind of function this is, and wants the types themselves.
    body.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return body


def _with_column(code: bytes, kept: int, name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    compute = pickle.loads(code)
    for batch in batches:
        values = compute(batch.columns[kept:])
        yield pa.RecordBatch.from_arrays([values, *batch.columns[:kept]], [name, *batch.schema.names[:kept]])
