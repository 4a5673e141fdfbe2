"""Delete: rows that match are hidden by deletion files.

1. *plan* (pure): how the rows are found (:mod:`tablewright.reading.row_search`). A predicate that is always true needs
   no tasks: all fragments leave the table.
2. *run*: a task finds the rows of some fragments, unless an index knew them before, and writes for each fragment that
   has any the union of what was deleted and what goes now. A fragment whose last row goes gets no file: it leaves the
   table.
3. *finish* (pure): one Delete transaction, and the rows that it hides.

Format: ``docs/format/table.md#deletion-files``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tablewright.data.task_context import TaskContext
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Filter
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.flags import check_writable
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.transaction import Delete, Transaction
from tablewright.operations.rewrite.hide import HiddenRows, hide_each, with_hidden_rows, write_deletions
from tablewright.reading.match import find_matches, plan_match, read_fields
from tablewright.reading.row_search import RowSearch, plan_search
from tablewright.reading.scan_task import ScanTask, narrowed, with_ids, with_index
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.transaction.affected import AffectedRows
from tablewright.world import World

__all__ = [
    "DeletePlan",
    "DeleteTask",
    "HideTask",
    "delete_tasks",
    "finish_delete",
    "hide_tasks",
    "matching_offsets",
    "plan_delete",
    "run_delete_task",
    "run_fragment_delete",
    "run_hide_task",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePlan:
    """A decided delete. ``str(plan)`` explains it."""

    predicate: str
    search: RowSearch
    fragments: FragmentList
    reads: frozenset[int] | None

    @property
    def deletes_all(self) -> bool:
        """Whether every row goes, so that no fragment has to be read."""
        return self.search.finds_all

    @property
    def tasks(self) -> tuple[DeleteTask, ...]:
        """The work in parts of some fragments each, if a scan finds the rows."""
        return () if self.deletes_all else delete_tasks(self.search.scan)

    @property
    def estimated_bytes(self) -> int:
        """About how much a scan reads."""
        return 0 if self.deletes_all else self.search.scan.estimated_bytes

    def __str__(self) -> str:
        how = "drop every fragment" if self.deletes_all else "write deletion files"
        return f"Delete: {how}, predicate={self.predicate}\n{self.search.scan}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTask:
    """A part of a delete, as a message: a scan of some fragments."""

    scan: ScanTask


@dataclass(frozen=True, slots=True, kw_only=True)
class HideTask:
    """Rows that are known already, as a message: fragments in the table's order, and the live rows of each that go."""

    version: int
    base_paths: tuple[BasePath, ...]
    parts: tuple[tuple[Fragment, RowSet], ...]


def plan_delete(
    snapshot: Snapshot, predicate: Filter, now_ns: int | None = None, use_scalar_index: bool | None = None
) -> DeletePlan:
    """Decide a delete. A bad predicate fails here."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    search = plan_search(snapshot, predicate, now_ns, use_scalar_index)
    return DeletePlan(
        predicate=str(predicate),
        search=search,
        fragments=snapshot.fragments,
        reads=read_fields(snapshot.schema, search.paths),
    )


def delete_tasks(scan: ScanTask) -> tuple[DeleteTask, ...]:
    """The delete of the rows that a scan finds, in parts of some fragments each."""
    return tuple(DeleteTask(scan=task) for task in scan.tasks)


def hide_tasks(plan: DeletePlan, known: Mapping[int, RowSet]) -> tuple[HideTask, ...]:
    """The delete of rows that an index knew: one task, as they are few."""
    parts = tuple((fragment, known[fragment.id]) for fragment in with_ids(plan.fragments, known))
    snapshot = plan.search.snapshot
    task = HideTask(version=snapshot.version, base_paths=snapshot.manifest.base_paths, parts=parts)
    return (task,) if parts else ()


def run_delete_task(task: DeleteTask, world: World) -> HiddenRows:
    """Find and hide the rows of a task's fragments. If it fails, the files it wrote are removed."""
    scan = task.scan
    matched = find_matches(scan, TaskContext(world, scan.base_paths))
    found = matched.rows
    parts = tuple((fragment, found[fragment.id]) for fragment in with_ids(scan.fragments, found))
    hidden = run_hide_task(HideTask(version=scan.version, base_paths=scan.base_paths, parts=parts), world)
    return replace(hidden, rows_read=matched.rows_read, bytes_read=matched.bytes_read)


def run_hide_task(task: HideTask, world: World) -> HiddenRows:
    """Hide rows. If it fails, the files it wrote are removed."""
    context = TaskContext(world, task.base_paths)
    with removed_on_failure(world.store) as files:
        return HiddenRows(hidden=hide_each(context, world, task.version, task.parts, files))


def finish_delete(
    plan: DeletePlan, results: Sequence[HiddenRows], everything: Mapping[int, RowSet], uuid: uuid.UUID
) -> tuple[Transaction, AffectedRows]:
    """The transaction and its rows. ``everything`` are all live rows, where the plan has no tasks to find them."""
    hidden = {each.fragment_id: each for result in results for each in result.hidden}
    emptied = {id for id, each in hidden.items() if each.deletion is None}
    if plan.deletes_all:
        emptied = set(plan.fragments.ids.tolist())
    operation = Delete(
        updated_fragments=tuple(with_hidden_rows(plan.fragments, hidden.values())),
        deleted_fragment_ids=tuple(sorted(emptied)),
        predicate=plan.predicate,
    )
    rows = {id: each.rows for id, each in hidden.items()}
    transaction = Transaction(read_version=plan.search.snapshot.version, uuid=str(uuid), operation=operation)
    return transaction, AffectedRows({**everything, **rows}, plan.reads)


# --------------------------------------------------------------------------------------------------- one fragment
def matching_offsets(snapshot: Snapshot, fragment: Fragment, predicate: Filter) -> Offsets:
    """Physical offsets of the live rows of a fragment that match, ascending."""
    whole = plan_match(snapshot, predicate)
    index = snapshot.fragments.position(fragment.id)
    task = replace(whole, fragments=(fragment,), first_rows=(whole.first_rows[index],), index=None)
    if task.reads.predicate is None:
        vector = snapshot.deletion_vector(fragment) or RowSet()
        return vector.absent(fragment.physical_rows)
    task = narrowed(with_index(task, snapshot, counts_only=True))
    return find_matches(task, snapshot).rows.get(fragment.id, RowSet()).to_numpy()


def run_fragment_delete(snapshot: Snapshot, fragment: Fragment, offsets: Offsets) -> Fragment | None:
    """Write the deletion file that hides ``offsets`` too. ``None``: no live row is left. Unchanged if none matches."""
    known = snapshot.deletion_vector(fragment) or RowSet()
    union = known | RowSet.of(offsets)
    problems = problems_of_deletions(union, fragment.physical_rows)
    if problems:
        raise InvalidRequest(f"Can't delete rows of fragment {fragment.id}: {'; '.join(problems)}.")
    if len(union) == len(known):
        return fragment
    if len(union) == fragment.physical_rows:
        return None
    file, _ = write_deletions(snapshot.world, snapshot.version, fragment, union)
    return fragment.with_deletion(file)
