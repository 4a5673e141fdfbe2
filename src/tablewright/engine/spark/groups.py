"""A column that depends on the other rows of a group, on Spark: rows meet in groups, in order, and each gets a value.

1. *Place* says for every row, from a few of its columns, which Spark partition it goes to, which group it belongs to,
   and where in the group it comes (:data:`PLACE`). Only those columns go to Python for it.
2. Spark brings the rows there and sorts them. What groups have to know beforehand, their *letters*, travels with them
   as rows that come first: no worker gets those of other groups.
3. The groups go by (:mod:`tablewright.engine.groups`).

The answer depends on which rows there are, and not on how they came: it is the same when a task runs twice, or the
DataFrame is computed again. All functions have to be picklable. Classic and Connect alike.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tablewright.engine.groups import LETTER, ROW, SORTED, Finished, Letter, OpenGroup, finish_values
from tablewright.engine.spark.python import map_in_arrow, our_workers, require_same_tablewright
from tablewright.engine.spark.tasks import ANSWER, answers, dump

__all__ = ["PLACE", "default_partitions", "finish_groups", "with_group_column"]

PLACE = pa.struct([pa.field("partition", pa.int32()), pa.field("group", pa.binary()), pa.field("position", pa.int32())])
Place = Callable[[Sequence[pa.Array]], pa.StructArray]

_BEFORE = 5  # columns before those of the rows: of SORTED, and the letter


def with_group_column(
    frame: Any,
    columns: Sequence[str],
    place: Place,
    open_group: OpenGroup,
    name: str,
    kind: pa.DataType,
    *,
    partitions: int,
    letters: Sequence[Letter] = (),
) -> Any:
    """``frame`` with one column more, ``name``. ``place`` gets the ``columns`` of a batch of rows. Nothing runs yet."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = [StructField(f"c{n}", field.dataType, field.nullable) for n, field in enumerate(frame.schema.fields)]
    fields.append(StructField("added", from_arrow_type(kind), False))
    rows = _gathered(frame, columns, place, frame.columns, partitions, letters)
    values = map_in_arrow(rows, _add_body(dump(open_group, "group function")), StructType(fields))
    return values.toDF(*frame.columns, name)


def finish_groups(
    frame: Any,
    columns: Sequence[str],
    place: Place,
    open_group: OpenGroup,
    *,
    partitions: int,
    letters: Sequence[Letter] = (),
    describe: str = "",
) -> list[Finished]:
    """What every group that has rows says after its last one. Only ``columns`` are read."""
    rows = _gathered(frame, columns, place, (), partitions, letters)
    job = map_in_arrow(rows, _finish_body(dump(_FinishAll(open_group), "group function")), ANSWER)
    found = answers(frame.sparkSession, job, describe=describe)
    return [group for _, _, result in found for group in pickle.loads(result)]


def default_partitions(frame: Any) -> int:
    """How many partitions a shuffle has in the session of a DataFrame."""
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))


def _gathered(
    frame: Any, columns: Sequence[str], place: Place, kept: Sequence[str], partitions: int, letters: Sequence[Letter]
) -> Any:
    """Rows and letters where they belong, in order: the columns of ``SORTED``, the letter, then ``c0`` and so on."""
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type

    placing = arrow_udf(_place_body(dump(place, "place function"), require_same_tablewright()), from_arrow_type(PLACE))
    with our_workers(frame.sparkSession):
        placed = placing(*(_column(frame, name) for name in columns)).alias("place")
    payload = [_column(frame, name).alias(f"c{number}") for number, name in enumerate(kept)]
    heads = [f"{ROW} as side" if name == "side" else f"place.{name} as {name}" for name in SORTED]
    rows = frame.select(placed, *payload).selectExpr(
        *heads, "cast(null as binary) as letter", *(f"c{number}" for number in range(len(kept)))
    )
    if letters:
        rows = rows.unionByName(_letters(frame.sparkSession, letters), allowMissingColumns=True)
    return rows.repartitionById(partitions, rows["partition"]).sortWithinPartitions(*SORTED)


def _column(frame: Any, name: str) -> Any:
    return frame["`" + name.replace("`", "``") + "`"]


def _letters(spark: Any, letters: Sequence[Letter]) -> Any:
    table = pa.table(
        {
            "partition": pa.array([letter.partition for letter in letters], pa.int32()),
            "group": pa.array([letter.group for letter in letters], pa.binary()),
            "side": pa.array([LETTER] * len(letters), pa.int32()),
            "position": pa.array(range(len(letters)), pa.int32()),
            "letter": pa.array([letter.content for letter in letters], pa.binary()),
        }
    )
    return spark.createDataFrame(table)


class _FinishAll:
    """Lets the groups of a partition go by; what they say comes home."""

    def __init__(self, open_group: OpenGroup) -> None:
        self._open_group = open_group

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> list[Finished]:
        return finish_values(self._open_group, batches)


# --------------------------------------------------------------------------------------------------------- in a worker
def _place_body(code: bytes, require: Callable[[], None]) -> Callable[..., pa.Array]:
    def body(*columns: pa.Array) -> pa.Array:
        require()
        return pickle.loads(code)(columns)

    # Spark tells by the annotations what kind of function this is, and wants the types themselves.
    body.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return body


def _add_body(code: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.groups import add_values
        from tablewright.engine.spark.worker import freeze_once

        yield from add_values(pickle.loads(code), batches, "added", first=_BEFORE)
        freeze_once()

    return body


def _finish_body(code: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.spark.worker import consume_partition

        yield from consume_partition(code, batches)

    return body
