"""Columns dropped, renamed, or of another nullability: a new schema, and no data touched.

Before a column is made non-nullable, its values are looked at, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tablewright.errors import InvalidRequest
from tablewright.format.field import is_one_column
from tablewright.format.flags import check_writable
from tablewright.format.logical_types import MAP, STRUCT
from tablewright.format.schema import Schema
from tablewright.format.transaction import Project, Transaction
from tablewright.operations.columns.alter import Alteration, alter_schema
from tablewright.operations.columns.schema import InvalidColumns, as_column_errors
from tablewright.operations.scan import ScanOptions, plan_scan, scan_batches
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["ProjectPlan", "check_no_nulls", "finish_project", "plan_alter", "plan_drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPlan:
    """A decided change of the schema; ``made_strict`` are the fields whose values have to be looked at."""

    version: int
    after: Schema
    made_strict: tuple[int, ...] = ()


def plan_drop(snapshot: Snapshot, paths: Sequence[str]) -> ProjectPlan:
    """Decide a schema without some columns or members; a struct or list that loses its last member goes with it."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    table = snapshot.schema
    gone: set[int] = set()
    for path in paths:
        try:
            gone.update(table.descendants(table.resolve(path).id))
        except InvalidRequest as error:
            raise InvalidRequest(f"Column {path} does not exist in the dataset. {error}") from error
    for node in reversed(table.fields):
        below = table.children(node.id)
        if below and all(child.id in gone for child in below):
            gone.add(node.id)
        elif (node.logical_type == MAP or is_one_column(node)) and not gone.isdisjoint(table.descendants(node.id)):
            raise InvalidRequest(
                f"Column {table.path(node.id)} is a map, a packed struct or a blob, whose parts can't be read apart: "
                "drop all of it."
            )
    kept = tuple(node for node in table.fields if node.id not in gone)
    if not kept:
        raise InvalidRequest("Cannot drop all columns from a dataset. Drop the table with LanceDataset.drop(uri).")
    return ProjectPlan(version=snapshot.version, after=Schema(fields=kept, metadata=table.metadata))


def plan_alter(snapshot: Snapshot, alterations: Sequence[Alteration]) -> ProjectPlan | None:
    """Decide new names and nullabilities; ``None`` where a column has to be cast, which the schema alone can't do."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    with as_column_errors():
        altered = alter_schema(snapshot.manifest, alterations)
        if altered.casts:
            return None
        for field_id in altered.made_strict:
            above = [snapshot.schema.by_id(id) for id in snapshot.schema.ancestors(field_id)]
            if any(node.logical_type != STRUCT for node in above):
                raise InvalidColumns(
                    f'Invalid user input: Column "{snapshot.schema.path(field_id)}" is inside a list: whether its '
                    "items may be null can't be changed."
                )
    return ProjectPlan(version=snapshot.version, after=altered.after, made_strict=altered.made_strict)


def check_no_nulls(plan: ProjectPlan, snapshot: Snapshot) -> None:
    """Look for a null in every column that may not have one any more; the first one ends the search."""
    for field_id in plan.made_strict:
        schema = snapshot.schema
        names = [schema.by_id(id).name for id in (*schema.ancestors(field_id), field_id)]
        text = ".".join(f"`{name}`" for name in names)
        options = ScanOptions(columns=["_rowaddr"], filter=f"{text} IS NULL", limit=1)
        if any(batch.num_rows for batch in scan_batches(plan_scan(snapshot, options), snapshot)):
            raise InvalidColumns(
                f'Invalid user input: Column "{schema.path(field_id)}" contains NULL values and cannot be made '
                "non-nullable. Update or delete these rows first."
            )


def finish_project(plan: ProjectPlan, uuid: UUID) -> Transaction:
    """The transaction that makes the schema the table's."""
    operation = Project(schema=plan.after, preserves_nullability=not plan.made_strict)
    return Transaction(read_version=plan.version, uuid=str(uuid), operation=operation)
