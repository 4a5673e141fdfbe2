"""Update: rows that match get new values, by moving them or by rewriting columns, fragment by fragment.

1. *plan* (pure): what is assigned (:mod:`.update_values`), and how the rows are found
   (:mod:`tablewright.reading.row_search`).
2. *match*: the offsets of matching rows, as tasks, unless an index knows them. Without a condition there is nothing to
   look for.
3. *decide* (pure): rows or columns, by the bytes that each would write of a fragment (:mod:`.rewrite.costs`).
4. *write*: a task per fragment whose columns are rewritten, and one per group of fragments whose rows move
   (:mod:`.update_tasks`).
5. *finish* (pure): one Update transaction (:mod:`.rewrite.finish`).

Format: ``docs/format/transactions.md#update``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablewright.expressions.filters import Filter
from tablewright.format.blobs import as_rows
from tablewright.format.flags import check_writable
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import Transaction
from tablewright.operations.blob_checks import refuse_blob_expressions, refuse_blob_targets
from tablewright.operations.rewrite.costs import (
    REWRITE_COLUMNS,
    REWRITE_ROWS,
    Decision,
    FragmentChoice,
    check_write_mode,
    decide,
)
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.operations.rewrite.finish import finish_rewrite
from tablewright.operations.rewrite.groups import row_groups
from tablewright.operations.rewrite.limits import DEFAULT_LIMITS, RewriteLimits
from tablewright.operations.rewrite.lineage_bytes import LineageBytes, lineage_bytes
from tablewright.operations.rewrite.move import MovedRows
from tablewright.operations.rewrite.patch import PatchedColumns
from tablewright.operations.update_tasks import (
    UpdateColumnsTask,
    UpdatePart,
    UpdateRowsTask,
    run_update_columns,
    run_update_rows,
)
from tablewright.operations.update_values import Assignments, compile_updates
from tablewright.operations.write import asked_file_version
from tablewright.reading.match import Matched, read_fields
from tablewright.reading.row_search import RowSearch, plan_search
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.affected import AffectedRows
from tablewright.world import World

__all__ = [
    "Found",
    "UpdateOptions",
    "UpdatePlan",
    "columns_tasks",
    "decide_update",
    "finish_update",
    "found_rows",
    "plan_update",
    "rows_tasks",
    "run_update_task",
    "update_tasks",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOptions:
    """What a caller of ``update`` may choose."""

    write_mode: str = "auto"
    data_storage_version: str | None = None
    limits: RewriteLimits = DEFAULT_LIMITS
    use_scalar_index: bool | None = None

    def __post_init__(self) -> None:
        check_write_mode(self.write_mode)
        asked_file_version(self.data_storage_version)  # an unknown one raises


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePlan:
    """A decided update, up to the choice between rows and columns. ``str(plan)`` explains it."""

    assignments: Assignments
    search: RowSearch
    fragments: FragmentList
    table: Schema
    write_mode: str
    file_version: str
    reads: frozenset[int] | None
    limits: RewriteLimits = DEFAULT_LIMITS

    @property
    def updates_all(self) -> bool:
        """Whether every live row matches, so that no fragment has to be read for it."""
        return self.search.finds_all

    @property
    def estimated_bytes(self) -> int:
        """About how much a scan reads to find the rows."""
        return 0 if self.updates_all else self.search.scan.estimated_bytes

    @property
    def version(self) -> int:
        """The version that the plan was made on."""
        return self.search.snapshot.version

    @property
    def changed_columns(self) -> tuple[int, ...]:
        """The ids of the columns that change, with all below them."""
        return _subtrees(self.table, [item.path[0] for item in self.assignments.items])

    @property
    def changed_fields(self) -> tuple[int, ...]:
        """The ids of the fields that are assigned, with all below and above them."""
        ids: dict[int, None] = {}
        for item in self.assignments.items:
            ids.update(dict.fromkeys((*self.table.ancestors(item.field_id), *self.table.descendants(item.field_id))))
        return tuple(sorted(ids))

    def __str__(self) -> str:
        read = ", ".join(dict.fromkeys(path[0] for path in self.assignments.paths))
        return (
            f"Update: set {self.assignments}, write_mode={self.write_mode}, expressions read [{read}], "
            f"file version {self.file_version}\n{self.search.scan}"
        )


def _subtrees(table: Schema, names: Sequence[str]) -> tuple[int, ...]:
    return table.node_ids(names)


def plan_update(
    snapshot: Snapshot, updates: Mapping[str, str], where: Filter | None, options: UpdateOptions, now_ns: int
) -> UpdatePlan:
    """Decide what is assigned and how rows are found. Bad names, types and predicates fail here."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    table = snapshot.schema
    if table.blobs and isinstance(updates, Mapping):
        refuse_blob_targets(table, updates)
        refuse_blob_expressions(table, updates.values(), now_ns)
    assignments = compile_updates(updates, as_rows(table), now_ns)
    search = plan_search(snapshot, where, now_ns, options.use_scalar_index)
    looked_at = [*assignments.paths, *((name,) for name in assignments.kept_in_part)]
    return UpdatePlan(
        assignments=assignments,
        search=search,
        fragments=snapshot.fragments,
        table=table,
        write_mode=options.write_mode,
        file_version=new_file_version(snapshot.manifest, options.data_storage_version),
        reads=read_fields(table, [*search.paths, *looked_at]),
        limits=options.limits,
    )


# ---------------------------------------------------------------------------------------------------------- decide
@dataclass(frozen=True, slots=True)
class Found:
    """The rows that match: how many per fragment id, and which; ``None`` for all live ones."""

    counts: Mapping[int, int]
    rows: Mapping[int, RowSet] | None


def found_rows(plan: UpdatePlan, matched: Sequence[Matched]) -> Found:
    """What the tasks of the match found, or an index; without a condition, all live rows."""
    if plan.updates_all:
        ids = plan.fragments.ids.tolist()
        live = plan.fragments.live_rows.tolist()
        return Found({id: rows for id, rows in zip(ids, live, strict=True) if rows}, None)
    rows = {id: found for each in matched for id, found in each.rows.items()}
    return Found({id: len(found) for id, found in rows.items()}, rows)


def decide_update(plan: UpdatePlan, found: Found) -> Decision:
    """Rows or columns, for each fragment with matches."""
    fragments = [plan.fragments.by_id(id) for id in found.counts]

    def weigh(fragment: Fragment) -> LineageBytes:
        rows = None if found.rows is None else found.rows[fragment.id]
        return lineage_bytes(fragment, rows, plan.version + 1)

    return decide(plan.table, fragments, found.counts, plan.assignments.columns, plan.write_mode, weigh)


def update_tasks(plan: UpdatePlan, found: Found, decision: Decision) -> tuple[UpdateColumnsTask | UpdateRowsTask, ...]:
    """All that has to be written."""
    return (*columns_tasks(plan, found, decision), *rows_tasks(plan, found, decision))


def run_update_task(task: UpdateColumnsTask | UpdateRowsTask, world: World) -> PatchedColumns | MovedRows:
    """Write the columns of a fragment, or the rows of several. If it fails, no file stays."""
    return run_update_columns(task, world) if isinstance(task, UpdateColumnsTask) else run_update_rows(task, world)


def columns_tasks(plan: UpdatePlan, found: Found, decision: Decision) -> tuple[UpdateColumnsTask, ...]:
    """A task per fragment whose columns are rewritten."""
    parts = _parts(plan, found, decision.of_mode(REWRITE_COLUMNS))
    return tuple(
        UpdateColumnsTask(
            version=plan.version,
            base_paths=plan.search.snapshot.manifest.base_paths,
            table=as_rows(plan.table),
            assignments=plan.assignments,
            file_version=plan.file_version,
            part=part,
        )
        for part in parts
    )


def rows_tasks(plan: UpdatePlan, found: Found, decision: Decision) -> tuple[UpdateRowsTask, ...]:
    """Tasks for the fragments whose rows move, each of some 64 MiB of rows and one file's worth at most."""
    return tuple(
        UpdateRowsTask(
            version=plan.version,
            base_paths=plan.search.snapshot.manifest.base_paths,
            table=as_rows(plan.table),
            assignments=plan.assignments,
            file_version=plan.file_version,
            limits=plan.limits,
            parts=_parts(plan, found, group),
        )
        for group in row_groups(decision.of_mode(REWRITE_ROWS), plan.limits)
    )


def _parts(plan: UpdatePlan, found: Found, choices: Sequence[FragmentChoice]) -> tuple[UpdatePart, ...]:
    ids = [choice.fragment_id for choice in choices]
    return tuple(
        UpdatePart(
            fragment=plan.fragments[position],
            first_row=int(plan.fragments.first_rows[position]),
            rows=None if found.rows is None else found.rows[id],
        )
        for id, position in zip(ids, map(plan.fragments.position, ids), strict=True)
    )


# ---------------------------------------------------------------------------------------------------------- finish
def finish_update(
    plan: UpdatePlan, results: Sequence[PatchedColumns | MovedRows], uuid: uuid.UUID
) -> tuple[Transaction, AffectedRows]:
    """The transaction of what the tasks wrote, and the rows that it moves or changes."""
    return finish_rewrite(
        results,
        fragments=plan.fragments,
        version=plan.version,
        patched_ids=plan.changed_columns,
        moved_ids=plan.changed_fields,
        reads=plan.reads,
        uuid=uuid,
    )
