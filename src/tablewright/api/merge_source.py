"""What people merge into a table: all that ``write_dataset`` takes, as rows that can be kept and read again.

Tests: ``tests/unit/api/test_merge_insert_calls.py``, ``tests/spark/test_merge_insert.py``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tablewright.api.inputs import as_schema, as_source
from tablewright.engine.base import COLLECTED_BYTES
from tablewright.engine.choose import frame_engine
from tablewright.engine.detect import is_spark_frame
from tablewright.engine.frames import incoming_schema
from tablewright.engine.progress import RowProgress
from tablewright.jobs.merge.source import Incoming, Kept
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.fit import fitted_batches
from tablewright.operations.merge_insert.source.kept import keep
from tablewright.operations.merge_insert.source.shared import ShareTask
from tablewright.world import World

__all__ = ["incoming"]


def incoming(data: Any, schema: pa.Schema | None, table: pa.Schema, *, collects: bool = True) -> Incoming:
    """Any data as :class:`Incoming`; Python values without a type take that of the ``table``.

    ``collects``: a small Spark DataFrame becomes rows of this process.
    """
    if is_spark_frame(data):
        return _of_frame(data, as_schema(schema), COLLECTED_BYTES if collects else 0)
    source = as_source(data, schema, table)

    def kept(plan: MergePlan, world: World) -> Kept:
        with RowProgress("Keeping the source") as shown:
            rows = fitted_batches(plan.fitted, shown.counted(source.batches))
            return keep(plan.fitted.schema, rows, plan.limits.source), None

    return Incoming(source.schema, kept)


def _of_frame(frame: Any, schema: pa.Schema | None, bytes_max: int) -> Incoming:
    """A Spark DataFrame: its executors write it to files beside the table's, in the order of its partitions.

    Of at most ``bytes_max`` it is collected instead.
    """
    own = incoming_schema(frame, schema)

    def kept(plan: MergePlan, world: World) -> Kept:
        task, fitted = ShareTask(plan.fitted.schema, plan.file_version), plan.fitted
        engine = frame_engine(frame=frame)
        found = engine.gather_frame(
            frame, task, world, fitted.schema, describe="Keeping the source", bytes_max=bytes_max
        )
        if found.rows is not None:
            return keep(fitted.schema, fitted_batches(fitted, found.rows.to_batches()), plan.limits.source), None
        shared = task.shared(found.results)
        return shared.open(world), shared

    return Incoming(own, kept, frame.sparkSession)
