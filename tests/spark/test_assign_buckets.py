"""assign_buckets on Spark: what it gives for an Arrow table, however the rows are spread; one task owns a hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.helpers import frame_of

from tablewright.engine import frame_engine
from tablewright.errors import InvalidRequest
from tablewright.paimon import assign
from tablewright.paimon.assign import BucketAssignment, assign_buckets
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions

COUNT = 3_000
ORDER = [("row", "ascending")]


def table(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    areas = ["eu", None, "an area with a long name"]
    return pa.table(
        {
            "row": pa.array(range(COUNT)),
            "odd `id.": pa.array(chance.integers(0, COUNT, COUNT)),
            "moment": pa.array(chance.integers(0, 3, COUNT) * 500, pa.timestamp("us")),
            "area": pa.array([areas[number] for number in chance.integers(0, 3, COUNT)]),
            "vector": pa.array([[1.0, 2.0], None, []] * (COUNT // 3)),
        }
    )


SCHEMA = pa.schema([("moment", pa.timestamp("ms"))])
HOW = {"keys": ["odd `id.", "moment"], "partition_by": ["area"], "schema": SCHEMA, "parallelism": 3, "seed": 4}


def files(done: BucketAssignment) -> list[tuple[Any, int, bytes]]:
    return [(file.partition, file.bucket, file.data) for file in done.hash_files()]


def sorted_rows(frame: Any) -> pa.Table:
    return (frame if isinstance(frame, pa.Table) else frame.toArrow()).sort_by(ORDER).select(["row", "_bucket"])


def test_spark_equals_arrow(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assign, "_HASHES_PER_MESSAGE", 50)
    options = BucketOptions(target_rows=200, initial_buckets=2, max_buckets=4)
    first = assign_buckets(table(1).slice(0, 500), index=BucketIndex.of({}, options), **HOW)
    index = BucketIndex.of({}, options).updated(first.hash_files())
    rows = table(2)
    local = assign_buckets(rows, index=index, **HOW)
    assert set(local.frame["_bucket"].to_pylist()) == {0, 1, 2, 3}
    source = frame_of(rows, spark)
    done = assign_buckets(source.repartition(3), index=index, **HOW)
    assert done.frame.columns == [*rows.column_names, "_bucket"]
    assert [field.nullable for field in done.frame.schema.fields] == [True] * 5 + [False]
    again = done.frame.where("area = 'eu' and _bucket > 0").repartition(2)  # nothing of it may reach the rows below
    got = done.frame.toArrow().sort_by(ORDER)
    assert got["vector"].to_pylist() == rows["vector"].to_pylist()
    assert sorted_rows(got).equals(sorted_rows(local.frame).cast(got.select(["row", "_bucket"]).schema))
    kept = [row for row in got.to_pylist() if row["area"] == "eu" and row["_bucket"] > 0]
    assert sorted_rows(again)["_bucket"].to_pylist() == [row["_bucket"] for row in kept]
    assert files(done) == files(local) != []


def test_each_hash_has_one_task(spark: Any) -> None:
    rows = table(3).select(["row", "odd `id."])
    options = BucketOptions(target_rows=100)
    plan = {"keys": ["odd `id."], "parallelism": 3, "index": BucketIndex.of({}, options)}
    local = assign_buckets(rows, **plan)  # type: ignore[arg-type]
    source = frame_of(rows, spark)
    done = assign_buckets(source.orderBy("row", ascending=False), **plan)  # type: ignore[arg-type]
    numbered = done.frame.selectExpr("`odd ``id.` as id", "_bucket", "spark_partition_id() as task").toArrow()
    tasks: dict[int, set[tuple[int, int]]] = {}
    for key, bucket, task in zip(*(numbered[name].to_pylist() for name in numbered.column_names), strict=True):
        tasks.setdefault(key, set()).add((bucket, task))
    assert all(len(places) == 1 for places in tasks.values())
    assert {task for places in tasks.values() for _, task in places} == {0, 1, 2}
    assert all(bucket % 3 == task for places in tasks.values() for bucket, task in places)
    assert files(done) == files(local)
    assert assign_buckets(source.where("row < 0"), **plan).hash_files() == ()  # type: ignore[arg-type]


def test_errors_come_home(spark: Any) -> None:
    frame = frame_of(table(4), spark)
    full = BucketOptions(target_rows=1, assigner_parallelism=1)
    index = BucketIndex.of({(None,): {bucket: [bucket] for bucket in range(32_767)}}, full)
    with pytest.raises(InvalidRequest, match="up to 32766"):
        assign_buckets(frame, index=index, **(HOW | {"schema": None})).hash_files()
    with pytest.raises(InvalidRequest, match="'vector' of type list"):
        assign_buckets(frame, ["vector"])
    assert frame_engine(frame=frame).shuffle_partitions == 2
