"""Scripts that need a session of their own run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tablewright.engine.spark.frames import gather_frame
from tablewright.engine.spark.types import spark_schema, struct_type, to_spark
from tablewright.world import World


def start(script: str, **environment: str) -> subprocess.Popen[str]:
    """Run ``script`` in a new Python, in a process group of its own as a terminal would have it."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def run(script: str, timeout_seconds: float = 500, **environment: str) -> str:
    """What ``script`` prints; fails with its errors if it fails."""
    process = start(script, **environment)
    out, errors = process.communicate(timeout=timeout_seconds)
    assert process.returncode == 0, errors[-5000:]
    return out


def written_by_executors(frame: Any, run: Any, world: World, schema: pa.Schema) -> list[Any]:
    """The result of each partition of a DataFrame, none of whose rows comes back."""
    return list(gather_frame(frame, run, world, schema, bytes_max=0).results)


def frame_of(table: pa.Table, spark: Any) -> Any:
    """A DataFrame of an Arrow table, in types that Spark knows.

    The schema is given to Spark: left to itself it reads timestamps without a zone in the session's zone.
    """
    safe = spark_schema(table.schema)
    batches = [to_spark(batch, safe) for batch in table.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, safe), struct_type(safe))


def once_written(folder: str, count: int, then: str) -> Callable[[int], int]:
    """A function for workers: row 0 waits until there are this many files, then fails; other rows are slow."""

    def function(number: int) -> int:
        import os
        import signal
        import time

        if number == 0 and then != "never":
            end = time.monotonic() + 120
            while len([name for name in os.listdir(folder) if name.endswith(".lance")]) < count:
                if time.monotonic() > end:
                    raise TimeoutError(folder)
                time.sleep(0.02)
            if then == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("row 0 is bad")
        if number % 1000 == 0 and then in ("slowly", "never"):
            time.sleep(0.05)
        return number

    return function


def backwards(spark: Any, rows: int, partitions: int, function: Callable[[int], int]) -> Any:
    """Numbers from the highest to 0, each given to a function in a worker: the last partition starts last."""
    from pyspark.sql.functions import udf

    numbers = spark.range(0, rows, 1, partitions).selectExpr(f"{rows} - 1 - id AS id")
    return numbers.select(udf(function, "long", useArrow=True)("id").alias("id"))
