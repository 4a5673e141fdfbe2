"""What people merge into a table: all that ``write_dataset`` takes, fitted and kept so that it can be read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablewright.api.inputs import as_source
from tablewright.data.write import discard_fragments
from tablewright.engine.detect import is_spark_frame
from tablewright.operations.merge_insert.fit import FittedSchema, fitted_batches
from tablewright.operations.merge_insert.shared import SharedSource, ShareTask
from tablewright.operations.merge_insert.source import KeptSource, keep
from tablewright.world import World

__all__ = ["Incoming", "incoming"]

Kept = tuple[KeptSource, SharedSource | None]


@dataclass(frozen=True, slots=True)
class Incoming:
    """Data on their way in: their schema, how they are kept once it is known what fits, and the session they are of."""

    schema: pa.Schema
    keep: Callable[[FittedSchema, World, str], Kept]
    spark: Any = None


def incoming(data: Any, schema: pa.Schema | None, table: pa.Schema) -> Incoming:
    """Any data as :class:`Incoming`; Python values take the types of the table."""
    if is_spark_frame(data):
        return _of_frame(data, schema, table)
    source = as_source(data, schema, table if isinstance(data, dict | list) else None)

    def kept(fitted: FittedSchema, world: World, file_version: str) -> Kept:
        return keep(fitted.schema, fitted_batches(fitted, source.batches)), None

    return Incoming(source.schema, kept)


def _of_frame(frame: Any, schema: pa.Schema | None, table: pa.Schema) -> Incoming:
    """A Spark DataFrame: its executors write it to files beside the table's, in the order of its partitions."""
    from tablewright.engine.spark.frames import write_frame
    from tablewright.engine.spark.inputs import adopted_schema, requested_schema
    from tablewright.engine.spark.session import require_shared

    own = adopted_schema(frame, table) if schema is None else requested_schema(frame, schema)

    def kept(fitted: FittedSchema, world: World, file_version: str) -> Kept:
        require_shared(world.store.location)
        task = ShareTask(fitted.schema, world.store.location, file_version)
        parts = write_frame(
            frame,
            task,
            fitted.schema,
            describe="Keeping the source",
            discard=lambda parts: discard_fragments(world, [fragment for part in parts for fragment in part]),
        )
        shared = task.shared(parts)
        return shared.open(world), shared

    return Incoming(own, kept, frame.sparkSession)
