"""Scripts that need a session of their own run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import pyarrow as pa

from tablewright.engine.spark.frames import gather_frame
from tablewright.engine.spark.types import cast_batch, spark_schema, struct_type
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
    batches = [cast_batch(batch, safe, exact=True) for batch in table.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, safe), struct_type(safe))
