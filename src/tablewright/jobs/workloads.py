"""What plans will do, in the figures by which an engine is chosen (:mod:`tablewright.engine.costs`). Pure.

Tests: ``tests/unit/jobs/test_workloads.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablewright.engine.costs import Workload
from tablewright.format.row_set import RowSet
from tablewright.operations.columns.plan import ColumnsPlan
from tablewright.operations.compact.plan import CompactionPlan
from tablewright.operations.merge_insert.decide import Actions
from tablewright.operations.merge_insert.match.strategy import key_ranges, scan_bytes
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.rewrite.costs import Decision
from tablewright.reading.scan_task import ScanTask, row_counts

__all__ = [
    "columns_work",
    "compaction_work",
    "keys_work",
    "known_work",
    "match_work",
    "merge_work",
    "rewrite_work",
    "scan_work",
]

_TASK_BYTES = 64 << 20
_KEY_COPIES = 4  # keys are coded, sorted, and looked up by position
_PAIR_BYTES = 32  # a row of the table and one of the source, and room to sort them


def scan_work(scan: ScanTask) -> Workload:
    """A read of some columns, for rows that match: threads share each task."""
    size, files = scan.estimated_bytes, len(scan.fragments)
    return Workload(
        bytes_read=size,
        rows=row_counts(scan.fragments)[0],
        files=files,
        tasks=_parts(size, files),
        uses_threads=True,
    )


def known_work(rows: Mapping[int, RowSet]) -> Workload:
    """Rows that are hidden where an index knew them, by fragment: nothing is read to find them."""
    return Workload(rows=sum(map(len, rows.values())), files=len(rows), tasks=1)


def rewrite_work(decision: Decision, tasks: int) -> Workload:
    """Rows or columns of the fragments of a decision, read and written again."""
    size = decision.bytes_written
    rows = sum(choice.matched_rows for choice in decision.choices)
    return Workload(bytes_read=size, bytes_written=size, rows=rows, files=2 * len(decision.choices), tasks=tasks)


def columns_work(plan: ColumnsPlan, *, in_turn: bool) -> Workload:
    """New columns, a task per fragment; ``in_turn``: this process computes one after the other."""
    return Workload(
        bytes_read=plan.bytes_read,
        bytes_written=plan.bytes_written,
        rows=plan.fragments.total_live_rows,
        files=2 * len(plan.fragments),
        tasks=len(plan.fragments),
        threads_max=1 if in_turn else None,
    )


def compaction_work(plan: CompactionPlan, threads_max: int | None) -> Workload:
    """Fragments that are read and written again, a task per group."""
    return Workload(
        bytes_read=plan.estimated_bytes // 2,
        bytes_written=plan.estimated_bytes // 2,
        files=sum(len(task.fragments) + 1 for task in plan.tasks),
        tasks=len(plan.tasks),
        threads_max=threads_max,
    )


def _parts(size: int, fragments: int) -> int:
    """How many tasks a scan has, about: each takes whole fragments, up to some 64 MiB."""
    return max(1, min(fragments, -(-size // _TASK_BYTES)))


# -------------------------------------------------------------------------------------------------------------- merges
def match_work(plan: MergePlan, scanned: tuple[int, ...], source_rows: int = 0, shipped_bytes: int = 0) -> Workload:
    """Keys of fragments that are looked up among those of the source, which every worker prepares for itself."""
    size = scan_bytes(plan, scanned)
    return Workload(
        bytes_read=size,
        rows=int(plan.fragments.physical_rows[plan.fragments.positions(scanned)].sum()),
        files=len(scanned),
        tasks=_parts(size, len(scanned)),
        uses_threads=True,
        prepared_rows=source_rows,
        shipped_bytes=shipped_bytes,
    )


def keys_work(plan: MergePlan, source: KeptSource, shipped_bytes: int) -> Workload:
    """More keys than a worker should hold: a shuffle on Spark, turns through the table in this process."""
    key_bytes, limits = source.nbytes_of(plan.key.columns), plan.limits
    turns = len(key_ranges(source.num_rows, key_bytes, limits.match))
    table_rows = plan.fragments.total_live_rows
    every = tuple(plan.fragments.ids.tolist())
    held = min(source.nbytes, limits.source.memory_bytes) + source.num_rows * _PAIR_BYTES
    return Workload(
        bytes_read=scan_bytes(plan, every) + key_bytes // turns,
        rows=table_rows + source.num_rows // turns,
        files=len(every),
        uses_threads=True,
        held_bytes=held + _KEY_COPIES * key_bytes // turns,
        shipped_bytes=shipped_bytes,
        shuffled_rows=table_rows + source.num_rows,
        turns=turns,
    )


def merge_work(source: KeptSource, actions: Actions, tasks: int, shipped_bytes: int) -> Workload:
    """What is written where rows match and where they are new."""
    inserted = source.nbytes * actions.num_inserted_rows // max(1, source.num_rows)
    size = actions.decision.bytes_written + inserted
    return Workload(
        bytes_read=size,
        bytes_written=size,
        rows=actions.num_updated_rows + actions.num_inserted_rows,
        files=2 * len(actions.touched),
        tasks=tasks,
        shipped_bytes=shipped_bytes,
    )
