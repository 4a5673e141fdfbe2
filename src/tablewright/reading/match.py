"""Which rows does a change touch? The physical offsets, per fragment, of the live rows that a predicate is true for.

The search is a scan that reads the predicate's columns and nothing else (:mod:`.scan_task`); its tasks return one
bitmap per fragment with matches. A predicate that is always true (``true``, or none at all) is answered from the
metadata: every live row of every fragment, and only deletion files are looked at.

Tests: ``tests/unit/operations/test_delete.py``, ``tests/unit/operations/test_update.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from tablewright.data.context import ReadContext
from tablewright.data.prefetch import spread
from tablewright.data.task_context import TaskContext
from tablewright.expressions.filters import Filter, compile_filter
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.blobs import as_descriptions
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.reading.chosen import ChosenPart
from tablewright.reading.fragment import ReadPlan, judged
from tablewright.reading.projection import Selection
from tablewright.reading.run import Part, parts_of, rows_of
from tablewright.reading.scan_task import ScanTask, scan_task, with_index
from tablewright.reading.small import SmallRun
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["Matched", "find_matches", "live_rows", "plan_match", "read_fields", "run_match_task"]

_FIXED_FOR_A_ROW = ("_rowid", "_rowaddr")
_TRUE = pc.scalar(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What a task found: rows by fragment id, and what it read to find them."""

    rows: dict[int, RowSet]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it wrote: none."""
        return ()


def plan_match(
    snapshot: Snapshot,
    predicate: Filter | None,
    now_ns: int | None = None,
    use_scalar_index: bool | None = None,
) -> ScanTask:
    """Decide how to find the rows. The scan has no filter if all live rows match."""
    table = as_descriptions(snapshot.schema)
    compiled = None
    if predicate is not None and not _is_true(predicate):
        moment = snapshot.world.clock.now_ns() if now_ns is None else now_ns
        compiled = compile_filter(predicate, table, now_ns=moment)
    task = scan_task(snapshot, ReadPlan.of(table, Selection.nothing(), compiled))
    return with_index(task, snapshot, use_scalar_index, counts_only=True)


def _is_true(predicate: Filter) -> bool:
    if isinstance(predicate, str):
        return predicate.strip().rstrip("; ").lower() == "true"
    return bool(predicate.equals(_TRUE))


def run_match_task(task: ScanTask, world: World) -> Matched:
    """Find the rows of a task's fragments, on a worker."""
    return find_matches(task, TaskContext(world, task.base_paths))


def find_matches(task: ScanTask, context: ReadContext) -> Matched:
    """The offsets of matching live rows of the task's fragments; fragments without any are left out."""
    if task.chosen.keys() == set(task.fragment_ids) and all(chosen.exact for chosen in task.chosen.values()):
        return Matched(rows={id: chosen.rows for id, chosen in task.chosen.items() if chosen.rows})
    found: dict[int, list[Offsets]] = {}
    rows_read = bytes_read = 0
    parts = parts_of(context, task.reads, task.fragments, task.first_rows, task.chosen, all_wanted=True)
    for part in spread(_match, parts):
        rows_read, bytes_read = rows_read + part.rows_read, bytes_read + part.bytes_read
        for fragment_id, offsets in part.offsets:
            found.setdefault(fragment_id, []).append(offsets)
    matching = {fragment_id: RowSet.of(np.concatenate(parts)) for fragment_id, parts in found.items()}
    return Matched(rows=matching, rows_read=rows_read, bytes_read=bytes_read)


@dataclass(frozen=True, slots=True)
class _Found:
    offsets: list[tuple[int, Offsets]]
    rows_read: int
    bytes_read: int


def _match(part: Part) -> _Found:
    if isinstance(part, SmallRun):
        return _match_run(part)
    if isinstance(part, ChosenPart) and part.judge is None:
        return _Found([(part.reader.fragment.id, part.rows.offsets)], 0, 0)
    matches: list[tuple[int, Offsets]] = []
    rows_read = bytes_read = 0
    for scan, rows, mask in judged(part.read() if isinstance(part, ChosenPart) else rows_of(part)):
        rows_read, bytes_read = rows_read + len(rows), bytes_read + rows.batch.nbytes
        if mask.any():
            matches.append((scan.fragment.id, rows.offsets_at(np.flatnonzero(mask))))
    return _Found(matches, rows_read, bytes_read)


def _match_run(run: SmallRun) -> _Found:
    rows, places = run.places()
    ids = run.scan.fragments.ids
    matches = [(int(ids[position]), rows.offsets[part]) for position, part in rows.by_fragment(places)]
    return _Found(matches, len(rows), int(rows.batch.nbytes))


def live_rows(context: ReadContext, fragments: Iterable[Fragment]) -> dict[int, RowSet]:
    """All live rows of each fragment that has any."""
    found = spread(lambda fragment: (fragment.id, _live(context, fragment)), fragments)
    return {fragment_id: offsets for fragment_id, offsets in found if offsets}


def _live(context: ReadContext, fragment: Fragment) -> RowSet:
    return (context.deletion_vector(fragment) or RowSet()).complement(fragment.physical_rows)


def read_fields(table: Schema, paths: Iterable[tuple[str, ...]]) -> frozenset[int] | None:
    """The ids of the columns at these paths, with all below them; ``None`` if it is not known what they depend on.

    Row ids and addresses stay what they are as long as the row does; other system columns change with other writers.
    """
    names = {path[0] for path in paths}
    if any(name in SYSTEM_COLUMNS and name not in _FIXED_FOR_A_ROW for name in names.difference(table.names)):
        return None
    return frozenset(table.node_ids(names))
