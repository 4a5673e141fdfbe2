"""Column verbs as ``LanceDataset`` offers them: what people hand in becomes requests, and requests become versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tablewright.api.inputs import as_source
from tablewright.api.pinned import Pinned, move, run_on, table_of
from tablewright.api.prepared import PreparedColumns
from tablewright.api.udf import BatchUDF
from tablewright.checks import check_text, listed, whole_number
from tablewright.engine.detect import is_spark_frame
from tablewright.errors import InvalidRequest, TablewrightError, WrongType
from tablewright.jobs.attempt import run_job
from tablewright.jobs.column_values import CheckpointedValues, ColumnValues, ComputedValues, StreamedValues
from tablewright.jobs.columns import ColumnsJob
from tablewright.jobs.project import ProjectJob
from tablewright.jobs.table import Table
from tablewright.operations.columns import add as requests
from tablewright.operations.columns.alter import Alter, Alteration
from tablewright.operations.columns.join import Join, Lookup
from tablewright.operations.columns.project import plan_alter, plan_drop
from tablewright.operations.columns.schema import InvalidColumns, as_column_errors
from tablewright.operations.columns.stream import RowStream
from tablewright.reading.scan_task import DEFAULT_BATCH_SIZE
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["add_columns", "alter_columns", "drop_columns", "joined", "merge", "request_of"]

_BATCH_SIZE_MAX = 2**32 - 1


def add_columns(
    dataset: Pinned, transforms: Any, read_columns: Any, reader_schema: pa.Schema | None, batch_size: int | None
) -> PreparedColumns:
    """Prepare new columns for all fragments."""
    request, values = request_of(table_of(dataset), transforms, read_columns, reader_schema, batch_size)
    return PreparedColumns(dataset, request, values)


def request_of(
    table: Table, transforms: Any, read_columns: Any, reader_schema: pa.Schema | None, batch_size: int | None
) -> tuple[requests.Request, ColumnValues]:
    """What was handed in, as a request and where its values come from."""
    if batch_size is not None:
        batch_size = whole_number(batch_size, "batch_size", minimum=1, maximum=_BATCH_SIZE_MAX)
    schema = _schema_of(transforms)
    if schema is not None:
        return requests.Nulls(schema), ComputedValues("Adding columns")
    if isinstance(transforms, Mapping):
        return _by_sql(table, transforms, batch_size), ComputedValues("Adding columns")
    if callable(transforms):
        function = _by_function(table.snapshot, transforms, read_columns, batch_size)
        checkpoint = transforms.checkpoint_file if isinstance(transforms, BatchUDF) else None
        if checkpoint is not None:
            return function, CheckpointedValues("Adding columns", checkpoint)
        return function, ComputedValues("Adding columns", in_turn=True)
    incoming = _incoming(transforms, reader_schema)
    stream = RowStream(incoming.batches)
    return requests.FromStream(stream, incoming.schema, batch_size or DEFAULT_BATCH_SIZE), StreamedValues(stream)


def alter_columns(dataset: Pinned, alterations: tuple[Any, ...]) -> None:
    """Rename, cast, or change whether a column may be null. Casts write column files; the rest is metadata.

    Whether there is something to cast is decided on the version that is committed to: a column that had the type
    already may have been cast by another writer meanwhile.
    """
    asked = tuple(map(_alteration, alterations))
    table = table_of(dataset)
    done = run_job(ProjectJob(lambda snapshot: plan_alter(snapshot, asked)), table)
    snapshot = done.snapshot
    if not done.result:
        casts = ColumnsJob(Alter(asked), ComputedValues("Casting columns"), table.world)
        snapshot = run_job(casts, table.at(snapshot)).snapshot
    move(dataset, snapshot)


def drop_columns(dataset: Pinned, columns: Any) -> None:
    """Forget columns; their data files stay until compaction and cleanup take them."""
    paths = [check_text(path, "each column of columns") for path in listed(columns, "columns")]
    run_on(dataset, ProjectJob(lambda snapshot: plan_drop(snapshot, paths)))


def merge(dataset: Pinned, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None) -> None:
    """Add the columns of other data, joined by a key."""
    request = Join(joined(data, left_on, right_on, schema), left_on)
    values = ComputedValues("Merging columns", stays_here="the joined data are in this process")
    PreparedColumns(dataset, request, values).execute()


def joined(data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None, where: str = "dataset") -> Lookup:
    """Other data by their key, in memory."""
    key = check_text(left_on if right_on is None else right_on, "right_on")
    check_text(left_on, "left_on")
    incoming = as_source(data.toArrow() if is_spark_frame(data) else data, schema)
    if key not in incoming.schema.names:
        raise InvalidColumns(f"Invalid user input: Column {key} does not exist in the right side {where}.")
    return Lookup(pa.Table.from_batches(incoming.batches, incoming.schema), key)


_ALTERATION_KEYS = ("path", "name", "nullable", "data_type")


def _alteration(given: Any) -> Alteration:
    if not isinstance(given, Mapping):
        raise WrongType(f"An alteration is a dict with a path and what changes, not {given!r}.")
    unknown = [key for key in given if key not in _ALTERATION_KEYS]
    if unknown:
        raise InvalidRequest(f"Unknown key: {unknown[0]}. Valid keys are path, name, nullable, and data_type.")
    if "path" not in given:
        raise InvalidRequest("path is required: name the column that changes.")
    types = {"path": str, "name": str, "nullable": bool, "data_type": pa.DataType}
    for key, value in given.items():
        if not isinstance(value, types[key]):
            raise WrongType(f"{key} must be a {types[key].__name__}, got {value!r} of type {type(value).__name__}.")
    if len(given) == 1:
        raise InvalidRequest("At least one of name, nullable, or data_type must be specified")
    return Alteration(**given)


def _schema_of(transforms: Any) -> pa.Schema | None:
    """Columns without values: a schema, a field, or a list of fields."""
    if isinstance(transforms, pa.Field):
        transforms = [transforms]
    if isinstance(transforms, list) and not transforms:
        raise InvalidRequest("Invalid user input: there are no columns to add. Name at least one.")
    if isinstance(transforms, list) and isinstance(transforms[0], pa.Field):
        if not all(isinstance(field, pa.Field) for field in transforms):
            raise WrongType(f"A list of fields must hold pyarrow fields only, got {transforms!r}.")
        return pa.schema(transforms)
    return transforms if isinstance(transforms, pa.Schema) else None


def _by_sql(table: Table, transforms: Mapping[Any, Any], batch_size: int | None) -> requests.BySql:
    for name, sql in transforms.items():
        if not isinstance(name, str):
            raise WrongType(f"Column names must be a string. Got {type(name)}")
        if not isinstance(sql, str):
            raise WrongType(f"Column expressions must be a string. Got {type(sql)}")
    return requests.BySql(dict(transforms), table.world.clock.now_ns(), batch_size)


def _by_function(snapshot: Snapshot, function: Any, read_columns: Any, batch_size: int | None) -> requests.ByFunction:
    names = snapshot.schema.names if read_columns is None else listed(read_columns, "read_columns")
    columns = tuple(check_text(name, "each column of read_columns") for name in names)
    known = function.output_schema if isinstance(function, BatchUDF) else None
    schema = known if known is not None else _sampled(snapshot, function, columns)
    called = function.func if isinstance(function, BatchUDF) else function
    return requests.ByFunction(called, schema, columns, batch_size)


def _sampled(snapshot: Snapshot, function: Any, columns: tuple[str, ...]) -> pa.Schema:
    with as_column_errors():
        try:
            return requests.sample_schema(snapshot, function, columns)
        except TablewrightError:
            raise
        except Exception as error:
            if isinstance(function, BatchUDF):
                raise
            raise WrongType(
                "transforms must be a BatchUDF, dict, map function, or ReaderLike value. Received "
                f"{type(function)}, which is callable, but gave an error when called with a batch of data: {error}"
            ) from error


def _incoming(transforms: Any, reader_schema: pa.Schema | None) -> Any:
    if is_spark_frame(transforms):
        raise WrongType("The rows of a Spark DataFrame have no order: join it by a key, with merge(data, left_on).")
    try:
        return as_source(transforms, reader_schema)
    except TypeError as error:
        raise WrongType(
            "transforms must be a BatchUDF, dict, map function, or ReaderLike value. Received "
            f"{type(transforms)}. Could not coerce to a reader: {error}"
        ) from error
