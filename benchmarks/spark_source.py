"""The data source beside Parquet, both read by Spark: an aggregate of one column of a table with vectors.

Spark prunes the columns of a Parquet file by itself; a Python data source is asked for all columns of its schema. So
ours is measured with the option ``columns``, with a given schema, as ``to_spark(columns)``, and without any of these.

*With load* is a whole query as a user writes it, a DataFrame made anew and aggregated. Spark makes two planning calls
in Python processes for each DataFrame (its schema, its partitions). *Again* is the aggregate of a DataFrame that was
planned before; the difference is printed as *planning*.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tablewright as tw
from tablewright.engine.spark.session import embedded_session

BY_DEFAULT = False
DIMENSION, FILES, ROUNDS = 128, 4, 7


def run(rows: int = 1_000_000) -> bool:
    """Print medians of interleaved runs, and their ratio to Parquet's."""
    with tempfile.TemporaryDirectory() as folder:
        table, parquet = _written(Path(folder), rows)
        spark = embedded_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
        source = spark.read.format("tablewright")
        ways: dict[str, Callable[[], Any]] = {
            "parquet": lambda: spark.read.parquet(parquet),
            "columns": lambda: spark.read.format("tablewright").option("columns", "n").load(table),
            "schema": lambda: spark.read.format("tablewright").schema("n bigint").load(table),
            "to_spark": lambda: tw.dataset(table).to_spark(spark, ["n"]),
            "all columns": lambda: source.load(table),
        }
        return _measured(ways, rows)


def _written(folder: Path, rows: int) -> tuple[str, str]:
    """The same rows as a table and as Parquet, in as many files."""
    random, each = np.random.default_rng(1), rows // FILES
    (folder / "parquet").mkdir()
    for part in range(FILES):
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(random.random(each * DIMENSION, dtype=np.float32)), DIMENSION
        )
        numbers = pa.array(np.arange(part * each, (part + 1) * each))
        data = pa.table({"id": numbers, "n": pa.array(random.integers(0, 1 << 40, each)), "vector": vectors})
        tw.write_dataset(data, folder / "table", mode="append")
        pq.write_table(data, folder / "parquet" / f"{part}.parquet")
    return str(folder / "table"), str(folder / "parquet")


def _measured(ways: dict[str, Callable[[], Any]], rows: int) -> bool:
    frames = {name: make() for name, make in ways.items()}
    sums = {name: _sum(frame) for name, frame in frames.items()}  # the first run of each counts for nothing
    assert len(set(sums.values())) == 1, sums
    fresh: dict[str, list[float]] = {name: [] for name in ways}
    again: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, make in ways.items():
            if name == "all columns" and len(again[name]) >= 2:
                continue
            began = time.perf_counter()
            _sum(make())
            fresh[name].append(time.perf_counter() - began)
            began = time.perf_counter()
            _sum(frames[name])
            again[name].append(time.perf_counter() - began)
    base = statistics.median(fresh["parquet"]), statistics.median(again["parquet"])
    print(f"{rows:,} rows, load {os.getloadavg()[0]:.1f}      with load       again      planning")
    for name in ways:
        one, two = statistics.median(fresh[name]), statistics.median(again[name])
        ratios = f"{one:7.3f} s ({base[0] / one:5.2f}×)  {two:7.3f} s ({base[1] / two:5.2f}×)"
        print(f"  {name:12} {ratios}  {one - two:7.3f} s")
    return base[1] / statistics.median(again["columns"]) >= 1.0


def _sum(frame: Any) -> int:
    return int(frame.agg({"n": "sum"}).first()[0])
