"""Building a BTREE: sort parts, merge them, write pages.

*Small* builds (128 MiB of values and ids) sort in the memory of the process that asked, with reads ahead in threads.

Larger ones by tasks on the engine, none of which needs more memory than a few times 64 MiB:

1. *sort*: each task reads some fragments, sorts them and writes sorted runs below the index's directory
   (:mod:`.sorting`);
2. *merge*: each task reads one range of entries from all runs and writes them as one sorted part (:mod:`.ranges`);
3. the parts become the index's file, one after the other (:mod:`.joining`), and are removed together with the runs.

Entries of older segments are sorted already: they are merged with the others in blocks (:mod:`.merge`), under the ids
that their rows have now, and all are written as pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from tablewright.data.prefetch import prefetch
from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable
from tablewright.format.naming import is_index_part
from tablewright.indices.btree.bounds import read_pages
from tablewright.indices.btree.joining import join_parts
from tablewright.indices.btree.merge import Run, merged
from tablewright.indices.btree.order import order_of
from tablewright.indices.btree.pages import DATA_FILE, write_pages
from tablewright.indices.btree.ranges import range_tasks, run_range
from tablewright.indices.btree.runs import FileRun, JoinedRun, MemoryRun, TranslatedRun
from tablewright.indices.btree.sorting import SORT_BYTES, SortedFile, SortTask, run_sort, sort_tasks
from tablewright.indices.building import BuildPlan, Entries, OldSegment, Stage, WrittenIndex
from tablewright.indices.entries import read_entries
from tablewright.storage.base import Store
from tablewright.storage.subtree import delete_files
from tablewright.world import World

__all__ = ["build", "old_run"]

SMALL_BYTES = 128 * 1024 * 1024


def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Write the files of a BTREE below the plan's directory. If that fails, no file that we know of is left."""
    kind = stored_type(plan.type)
    order = order_of(kind)
    assert order is not None, f"a BTREE can't hold {kind}"
    context = TaskContext(world, plan.base_paths)
    runs: list[Run] = [old_run(context, segment, kind) for segment in plan.old]
    tasks, nbytes = sort_tasks(plan, SORT_BYTES)
    if nbytes <= SMALL_BYTES:
        runs += _sorted_in_memory(context, tasks)
        return write_pages(world.store, plan.directory, kind, merged(runs, order))
    with _without_parts(world.store, plan.directory):
        parts = _sorted_by_tasks(plan, kind, tasks, nbytes, stage)
        joined = None if runs else join_parts(world.store, plan.directory, kind, parts)
        if joined is not None:
            return joined
        runs.append(JoinedRun(tuple(_run_of(part, plan, kind, world.store) for part in parts)))
        return write_pages(world.store, plan.directory, kind, merged(runs, order))


def _sorted_in_memory(context: TaskContext, tasks: Sequence[SortTask]) -> list[Run]:
    def entries(plan: BuildPlan) -> list[Entries]:
        return list(read_entries(context, plan, plan.fragments))

    plans = [replace(task.plan, fragments=(fragment,)) for task in tasks for fragment in task.plan.fragments]
    found = [each for some in prefetch(entries, plans) for each in some]
    return [MemoryRun.of(found)] if found else []


def _sorted_by_tasks(
    plan: BuildPlan, kind: pa.DataType, tasks: Sequence[SortTask], nbytes: int, stage: Stage
) -> list[SortedFile]:
    """All entries of the plan's fragments, sorted, in the parts that the tasks wrote."""
    files = [file for result in stage("sort", run_sort, tasks) for file in result.files]
    ranges = range_tasks(plan.directory, kind, files, -(-nbytes // SORT_BYTES)) if files else []
    return [result.file for result in stage("merge", run_range, ranges) if result.file is not None]


def _run_of(part: SortedFile, plan: BuildPlan, kind: pa.DataType, store: Store) -> FileRun:
    return FileRun(store, plan.directory, part.name, kind, 0, part.nulls, part.rows)


@contextmanager
def _without_parts(store: Store, directory: str) -> Iterator[None]:
    """Remove the files of parts at the end, also those of tasks that failed or ran twice."""
    try:
        yield
    finally:
        found = [entry.path for entry in store.list(directory) if is_index_part(entry.path)]
        delete_files(store, found)


def old_run(context: TaskContext, segment: OldSegment, kind: pa.DataType) -> TranslatedRun:
    """The entries of an older segment that are kept."""
    store, directory = context.index_place(segment.index)
    pages = read_pages(store, directory)
    if pages.type != kind:
        raise CorruptTable(pages.where, (f"it holds values of type {pages.type} where the column has {kind}",))
    run = FileRun(store, directory, DATA_FILE, kind, 0, pages.nulls, pages.num_rows)
    return TranslatedRun(run, segment.translate)


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type of values in the index: without extension and dictionary.

    >>> stored_type(pa.dictionary(pa.int8(), pa.string()))
    DataType(string)
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind
