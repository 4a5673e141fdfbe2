"""Columns of a single fragment, written but not committed: for people who distribute the work themselves.

Tests: ``tests/unit/api/test_columns.py``, ``tests/differential/api/test_columns.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.api.columns import joined, request_of
from tablewright.api.metadata import FragmentMetadata
from tablewright.api.schema import LanceSchema
from tablewright.api.udf import BatchUDF
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_set import RowSet
from tablewright.jobs.table import Table
from tablewright.operations.columns.join import Join, Patch, PatchedColumns
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, with_file
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import removed_on_failure

__all__ = ["merge", "merge_columns", "update_columns"]


def merge_columns(
    table: Table,
    fragment: Fragment,
    value_func: Any,
    columns: Any,
    batch_size: int | None,
    reader_schema: pa.Schema | None,
) -> tuple[FragmentMetadata, LanceSchema]:
    """The fragment with new columns, and the table's schema with them."""
    if isinstance(value_func, BatchUDF) and value_func.checkpoint_file is not None:
        raise InvalidRequest(
            "A checkpoint file cannot be used when applying a UDF with LanceFragment.merge_columns. You must apply "
            "your own checkpointing for fragment-level operations."
        )
    request, values = request_of(table, value_func, columns, reader_schema, batch_size)
    plan = request.plan(table.snapshot).of_fragments([fragment])
    files: list[DataFile] = []
    with removed_on_failure(table.world.store) as written:

        def record(_: Fragment, made: ColumnsResult) -> None:
            written.add(made.paths)
            files.append(made.file)

        values.write(table, plan, (), record)
    return _grown(plan, fragment, files)


def merge(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[FragmentMetadata, LanceSchema]:
    """The fragment with the columns of joined data, and the table's schema with them."""
    lookup = joined(data, left_on, right_on, schema, "fragment")
    plan = Join(lookup, left_on, "fragment").plan(snapshot).of_fragments([fragment])
    return _grown(plan, fragment, [_written(plan, snapshot)])


def update_columns(
    snapshot: Snapshot, fragment: Fragment, data: Any, left_on: str, right_on: str | None, schema: pa.Schema | None
) -> tuple[FragmentMetadata, list[int], bytes]:
    """The fragment with joined values in its columns, the ids of these, and which rows have changed."""
    lookup = joined(data, left_on, right_on, schema, "fragment")
    plan = Patch(lookup, left_on).plan(snapshot).of_fragments([fragment])
    file = _written(plan, snapshot)
    assert plan.work is not None and isinstance(plan.work.computation, PatchedColumns)
    matched = plan.work.computation.matched
    rows = RowSet.of(np.concatenate(matched)) if matched else RowSet()
    modified = [field.id for field in plan.written.fields]
    return _grown(plan, fragment, [file])[0], modified, rows.to_bytes()


def _written(plan: ColumnsPlan, snapshot: Snapshot) -> DataFile:
    assert plan.work is not None
    (task,) = plan.tasks()
    return plan.work(task, snapshot.world).file


def _grown(plan: ColumnsPlan, fragment: Fragment, files: list[DataFile]) -> tuple[FragmentMetadata, LanceSchema]:
    for file in files:
        fragment = with_file(fragment, file, plan.after.ids)
    return FragmentMetadata.of(fragment), LanceSchema(plan.after)
