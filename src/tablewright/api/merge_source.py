"""What people merge into a table: all that ``write_dataset`` takes, as rows that can be kept and read again.

Tests: ``tests/unit/api/test_merge_insert_calls.py``, ``tests/spark/test_merge_insert.py``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.api.inputs import as_schema, as_source
from tablewright.engine.base import COLLECTED_BYTES
from tablewright.engine.choose import frame_engine
from tablewright.engine.detect import is_spark_frame
from tablewright.engine.frames import adopted_schema, frame_schema, requested_schema
from tablewright.engine.progress import RowProgress
from tablewright.jobs.merge.source import Incoming, Kept
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.fit import fitted_batches
from tablewright.operations.merge_insert.source.kept import keep
from tablewright.operations.merge_insert.source.shared import ShareTask
from tablewright.world import World

__all__ = ["incoming"]


def incoming(data: Any, schema: pa.Schema | None, table: pa.Schema, *, collects: bool = True) -> Incoming:
    """Any data as :class:`Incoming`; Python values take the types of the table.

    ``collects``: a small Spark DataFrame becomes rows of this process.
    """
    if is_spark_frame(data):
        return _of_frame(data, as_schema(schema), table, COLLECTED_BYTES if collects else 0)
    source = as_source(data, schema, _of_values(data, table) if isinstance(data, dict | list) else None)

    def kept(plan: MergePlan, world: World) -> Kept:
        with RowProgress("Keeping the source") as shown:
            rows = fitted_batches(plan.fitted, shown.counted(source.batches))
            return keep(plan.fitted.schema, rows, plan.limits.source), None

    return Incoming(source.schema, kept)


def _of_values(data: dict[str, Any] | list[Any], table: pa.Schema) -> pa.Schema:
    """The table's schema for Python values: structs with the members that the values have, not with nulls in others."""
    return pa.schema(
        [_in_shape(field, _inferred(data, field.name)) if at.is_nested(field.type) else field for field in table]
    )


def _inferred(data: dict[str, Any] | list[Any], name: str) -> pa.Schema:
    """The type that Arrow finds for a column of Python values, if there is such a column, and if it finds one."""
    rows = data if isinstance(data, list) and all(isinstance(row, dict) for row in data) else []
    values = data.get(name) if isinstance(data, dict) else [row[name] for row in rows if name in row]
    if values is None:
        return pa.schema([])
    try:
        return pa.schema({name: pa.array(values).type})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.schema([])


def _in_shape(field: pa.Field, given: pa.Schema) -> pa.Field:
    """A field of the table with the members, and in their order, that are given."""
    return field.with_type(_shaped(field.type, given.field(field.name).type)) if field.name in given.names else field


def _shaped(known: pa.DataType, own: pa.DataType) -> pa.DataType:
    if at.is_list(known) and at.is_list(own):
        return pa.list_(known.value_field.with_type(_shaped(known.value_type, own.value_type)))
    if not (at.is_struct(known) and at.is_struct(own)) or any(known.get_field_index(each.name) < 0 for each in own):
        return known
    members = [known.field(each.name) for each in own]
    return pa.struct([member.with_type(_shaped(member.type, own.field(member.name).type)) for member in members])


def _of_frame(frame: Any, schema: pa.Schema | None, table: pa.Schema, bytes_max: int) -> Incoming:
    """A Spark DataFrame: its executors write it to files beside the table's, in the order of its partitions.

    Of at most ``bytes_max`` it is collected instead.
    """
    if schema is None:
        given = frame_schema(frame)
        own = adopted_schema(frame, pa.schema([_in_shape(field, given) for field in table], table.metadata))
    else:
        own = requested_schema(frame, schema)

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
