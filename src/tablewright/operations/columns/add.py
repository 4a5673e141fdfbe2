"""Requests for new columns, each with its plan: by SQL, by a function, from a stream of values, or null.

A request is planned again whenever another writer was faster. So it holds everything that must not change between
two plans: the moment that ``now()`` means, and the columns that a function gets to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tablewright.expressions.scope import empty_batch
from tablewright.expressions.sql import compile_projection
from tablewright.format.field import is_packed
from tablewright.format.logical_types import STRUCT
from tablewright.operations.blob_checks import refuse_blob_expressions
from tablewright.operations.columns.compute import Computation, Function, FunctionColumns, SqlColumns, result_batch
from tablewright.operations.columns.members import WithMembers
from tablewright.operations.columns.plan import ColumnsPlan, plan_columns
from tablewright.operations.columns.schema import InvalidColumns, add_to_schema, as_column_errors
from tablewright.operations.columns.stream import RowStream, StreamColumns
from tablewright.operations.scan import ScanOptions, plan_scan, scan_batches
from tablewright.reading.projection import select_columns
from tablewright.reading.scan_task import DEFAULT_BATCH_SIZE
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["ByFunction", "BySql", "FromStream", "Nulls", "Request", "sample_schema"]

_VERB = "AddColumns"


class Request(Protocol):
    """A request for new columns."""

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        """Decide them on a version of the table; :class:`InvalidColumns` if it can't have them."""


@dataclass(frozen=True, slots=True)
class BySql:
    """Columns as SQL expressions over the others; ``now_ns`` is the moment that ``now()`` means."""

    expressions: Mapping[str, str]
    now_ns: int
    batch_size: int | None = None

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        with as_column_errors():
            if snapshot.schema.blobs:
                refuse_blob_expressions(snapshot.schema, self.expressions.values(), self.now_ns)
            columns = SqlColumns(compile_projection(self.expressions, snapshot.schema, now_ns=self.now_ns))
            if columns.is_null:
                return Nulls(columns.schema).plan(snapshot)
            return _plan(snapshot, columns, self.batch_size)


@dataclass(frozen=True, slots=True)
class ByFunction:
    """Columns that a function returns for batches of the rows' ``columns``, which may be system columns too."""

    function: Function
    schema: pa.Schema
    columns: tuple[str, ...]
    batch_size: int | None = None

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        with as_column_errors():
            selection = select_columns(snapshot.schema, self.columns)
            size = self.batch_size or ScanOptions().rows_per_batch
            return _plan(snapshot, FunctionColumns(self.function, selection, self.schema), size)


@dataclass(frozen=True, slots=True)
class FromStream:
    """Columns whose values come from outside, one per live row, in the order of the table."""

    stream: RowStream
    schema: pa.Schema
    batch_size: int = DEFAULT_BATCH_SIZE

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        with as_column_errors():
            return _plan(snapshot, StreamColumns(self.stream, self.schema), self.batch_size)


@dataclass(frozen=True, slots=True)
class Nulls:
    """Columns, or members of structs, that are null in every row: nothing is written for them."""

    schema: pa.Schema

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        with as_column_errors():
            added = add_to_schema(snapshot.manifest, self.schema)
            packed = [added.after.path(id) for id in added.grown if is_packed(added.after.by_id(id))]
            if packed:
                raise InvalidColumns(
                    f"Invalid user input: Column {packed[0]} is packed struct and already exists in the dataset: its "
                    "files can't take another member."
                )
            new = added.after.ids - snapshot.schema.ids
            tops = [field for field in added.new.fields if field.id in new and field.parent_id not in new]
            for field in tops:
                if not field.nullable:
                    raise InvalidColumns(
                        f"Invalid user input: All-null columns must be nullable, but field '{field.name}' is not."
                    )
            return plan_columns(snapshot, _VERB, added.after, added.new, None)


def _plan(snapshot: Snapshot, computation: Computation, batch_size: int | None) -> ColumnsPlan:
    added = add_to_schema(snapshot.manifest, computation.schema)
    written = added.new
    if added.grown:
        after = added.after
        for field_id in added.grown:
            above = [after.by_id(id).logical_type for id in (*after.ancestors(field_id), field_id)]
            if any(kind != STRUCT for kind in above):
                raise InvalidColumns(
                    f"Invalid user input: Column {after.path(field_id)} already exists in the dataset. Members inside "
                    "a list can be added as columns of nulls only: give a pyarrow field."
                )
        written = after.project_ids(after.descendants(*(top.id for top in written.top_level)))
        known = frozenset(snapshot.schema.names)
        computation = WithMembers(computation, known, written.to_arrow().remove_metadata())
    return plan_columns(snapshot, _VERB, added.after, written, computation, batch_size=batch_size)


def sample_schema(snapshot: Snapshot, function: Function, columns: tuple[str, ...]) -> pa.Schema:
    """What a function returns, found by calling it with the first row (with no rows, if the table has none)."""
    plan = plan_scan(snapshot, ScanOptions(columns=columns, limit=1))
    batch = next(iter(scan_batches(plan, snapshot)), None)
    return result_batch(function(empty_batch(plan.schema) if batch is None else batch)).schema
