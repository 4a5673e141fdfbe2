"""Small files of one write are written again together, before they are committed.

Each partition of a DataFrame writes its own files, since no one knows beforehand how many rows it will have: the
estimates of Spark's plans are far off after a filter, a join or the caller's own function, and fewer partitions would
also compute the rows with fewer cores. So the executors write first, and what turned out small is joined:

1. A file is *small* below :data:`SMALL_BYTES` and :data:`SMALL_ROWS`: copying it costs less than the Spark task
   that has written it.
2. Small files that follow each other become one, up to :data:`JOINED_BYTES` and the ``max_rows_per_file`` and
   ``max_bytes_per_file`` of the write. Rows keep their order.
3. All other files stay as they are. So do those with blobs, whose bytes are files of their own, and those with
   dictionaries: the codec puts all of a file behind each other, which may be more than the type of their indices holds.

A DataFrame of 50 rows in 50 partitions becomes one fragment; 200 partitions of 30 MB stay 200.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablewright.format.field import is_blob
from tablewright.format.fragment import Fragment
from tablewright.operations.write import WritePlan, run_again
from tablewright.world import World

__all__ = ["JOINED_BYTES", "SMALL_BYTES", "SMALL_ROWS", "JoinTask", "plan_joins", "run_join"]

SMALL_BYTES = 4 << 20
SMALL_ROWS = 1 << 18
JOINED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class JoinTask:
    """Uncommitted fragments whose rows become one file; a single one stays as it is."""

    plan: WritePlan
    fragments: tuple[Fragment, ...]

    @property
    def joins(self) -> bool:
        """Whether there is anything to do."""
        return len(self.fragments) > 1


def plan_joins(plan: WritePlan, fragments: Sequence[Fragment]) -> list[JoinTask]:
    """All fragments of a write in their order, those that become one file in one task."""
    if any(is_blob(node) or node.logical_type.startswith("dict:") for node in plan.columns.fields):
        return [JoinTask(plan, (fragment,)) for fragment in fragments]
    return [JoinTask(plan, together) for together in _together(plan, fragments)]


def _together(plan: WritePlan, fragments: Sequence[Fragment]) -> Iterator[tuple[Fragment, ...]]:
    bytes_max = min(JOINED_BYTES, plan.options.max_bytes_per_file)
    run: list[Fragment] = []
    rows = size = 0
    for fragment in fragments:
        fits = (
            rows + fragment.physical_rows <= plan.options.max_rows_per_file and size + fragment.data_bytes <= bytes_max
        )
        if run and not (fits and _is_small(fragment) and _is_small(run[-1])):
            yield tuple(run)
            run, rows, size = [], 0, 0
        run.append(fragment)
        rows, size = rows + fragment.physical_rows, size + fragment.data_bytes
    if run:
        yield tuple(run)


def _is_small(fragment: Fragment) -> bool:
    return fragment.data_bytes < SMALL_BYTES and fragment.physical_rows < SMALL_ROWS


def run_join(task: JoinTask, world: World) -> tuple[Fragment, ...]:
    """Write the rows of several fragments as one. The old files stay until the caller removes them."""
    return run_again(task.plan, task.plan, task.fragments, world)
