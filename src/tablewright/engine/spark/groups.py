"""A column that depends on the other rows of a group, on Spark: rows meet in groups, in order, and each gets a value.

1. *Place* says for every row, from a few of its columns, which Spark partition it goes to, which group it belongs to,
   and where in the group it comes (:data:`PLACE`). Only those columns go to Python for it.
2. Spark moves the rows there and sorts them. What groups have to know beforehand, their *messages*, travels with them
   as rows that come first: no worker gets those of other groups.
3. The groups stream by (:mod:`tablewright.engine.groups`).

The answer depends on which rows there are, and not on how they came: it is the same when a task runs twice, or the
DataFrame is computed again. All functions have to be picklable. Classic and Connect alike.

Tests: tests/spark/test_assign_buckets.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from tablewright.engine.groups import (
    MESSAGE,
    PLACE,
    ROW,
    SORTED,
    Finished,
    Message,
    OpenGroup,
    PlaceRows,
    finish_values,
)
from tablewright.engine.spark.answers import ANSWER, run_answers
from tablewright.engine.spark.payload import dump
from tablewright.engine.spark.python import map_in_arrow
from tablewright.engine.spark.spark_types import spark_of
from tablewright.engine.spark.versions import repartition_by_id, with_arrow_column
from tablewright.engine.spark.worker import add_group_values, consume_partition

__all__ = ["add_group_column", "finish_groups"]

_BEFORE = 5  # columns before those of the rows: of SORTED, and the message


def add_group_column(
    frame: Any,
    columns: Sequence[str],
    place: PlaceRows,
    open_group: OpenGroup,
    name: str,
    kind: pa.DataType,
    *,
    partitions: int,
    messages: Sequence[Message] = (),
) -> Any:
    """``frame`` with one column more, ``name``. ``place`` gets the ``columns`` of a batch of rows. Nothing runs yet."""
    from pyspark.sql.types import StructField, StructType

    fields = [StructField(f"c{n}", field.dataType, field.nullable) for n, field in enumerate(frame.schema.fields)]
    fields.append(StructField("added", spark_of(kind, name), False))
    rows = _gathered(frame, columns, place, frame.columns, partitions, messages)
    values = map_in_arrow(
        rows, partial(add_group_values, dump(open_group, "group function"), "added", _BEFORE), StructType(fields)
    )
    return values.toDF(*frame.columns, name)


def finish_groups(
    frame: Any,
    columns: Sequence[str],
    place: PlaceRows,
    open_group: OpenGroup,
    *,
    partitions: int,
    messages: Sequence[Message] = (),
    describe: str = "",
) -> list[Finished]:
    """The results of all groups that have rows. Only ``columns`` are read."""
    rows = _gathered(frame, columns, place, (), partitions, messages)
    code = dump(partial(finish_values, open_group), "group function")
    job = map_in_arrow(rows, partial(consume_partition, code), ANSWER)
    found = run_answers(frame.sparkSession, job, describe=describe)
    return [group for outcome in found for group in outcome.unwrap()]


def _gathered(
    frame: Any,
    columns: Sequence[str],
    place: PlaceRows,
    kept: Sequence[str],
    partitions: int,
    messages: Sequence[Message],
) -> Any:
    """Rows and messages in their partitions, sorted: the columns of ``SORTED``, the message, then ``c0`` and so on."""
    placed = with_arrow_column(frame, columns, place, PLACE, "place", kept)
    heads = [f"{ROW} as side" if name == "side" else f"place.{name} as {name}" for name in SORTED]
    rows = placed.selectExpr(*heads, "cast(null as binary) as message", *(f"c{number}" for number in range(len(kept))))
    if messages:
        rows = rows.unionByName(_message_rows(frame.sparkSession, messages), allowMissingColumns=True)
    return repartition_by_id(rows, partitions, "partition").sortWithinPartitions(*SORTED)


def _message_rows(spark: Any, messages: Sequence[Message]) -> Any:
    table = pa.table(
        {
            "partition": pa.array([message.partition for message in messages], pa.int32()),
            "group": pa.array([message.group for message in messages], pa.binary()),
            "side": pa.array([MESSAGE] * len(messages), pa.int32()),
            "position": pa.array(range(len(messages)), pa.int32()),
            "message": pa.array([message.content for message in messages], pa.binary()),
        }
    )
    return spark.createDataFrame(table)
