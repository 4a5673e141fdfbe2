"""The first stage of a large build: tasks that read some fragments each, and write them as sorted runs.

A task sorts 64 MiB of values and ids at a time, so that its memory is bounded also if a fragment is larger: it then
writes several runs. Run files have names of their own, so a task may run twice. Each comes with *samples*: the keys and
ids of every 4,096th entry, from which the ranges of the next stage are made.

Tests: ``tests/unit/indices/btree/test_build.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.sizes import RowSizes
from tablewright.data.task_context import TaskContext
from tablewright.format.fragment import Fragment
from tablewright.format.naming import index_part_name
from tablewright.indices.btree.merge import Block
from tablewright.indices.btree.order import order_of
from tablewright.indices.btree.pages import data_schema
from tablewright.indices.btree.runs import MemoryRun
from tablewright.indices.building import BuildPlan, Entries
from tablewright.indices.entries import read_entries
from tablewright.indices.files import write_index_file
from tablewright.indices.query import Ids
from tablewright.storage.base import Store
from tablewright.world import World

__all__ = [
    "Samples",
    "SortResult",
    "SortTask",
    "SortedFile",
    "is_whole",
    "run_sort",
    "sort_tasks",
    "write_part",
]

SORT_BYTES = 64 * 1024 * 1024
SAMPLE_ROWS = 4096
SAMPLE_BYTES_MAX = 4096
_ID_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Entries of a run at the rows 0, ``stride``, 2 × ``stride`` …: the first ``nulls`` of them have no key."""

    stride: int
    nulls: int
    keys: Any
    ids: Ids


@dataclass(frozen=True, slots=True, eq=False)
class SortedFile:
    """A sorted file of entries below the index's directory; ``nulls`` of its rows come first."""

    name: str
    rows: int
    nulls: int
    samples: Samples | None = None


@dataclass(frozen=True, slots=True)
class SortTask:
    """Fragments to be read: those of ``plan``."""

    plan: BuildPlan
    bytes_max: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SortResult:
    """The runs that a task wrote."""

    files: tuple[SortedFile, ...]
    paths: tuple[str, ...]
    rows_read: int
    bytes_read: int


def sort_tasks(plan: BuildPlan, bytes_max: int = SORT_BYTES) -> tuple[list[SortTask], int]:
    """Neighbouring fragments with about this many bytes of values and ids in each task, and the bytes of all."""
    sizes = RowSizes(plan.schema, plan.schema.project_ids([plan.field_id]))
    groups: list[list[Fragment]] = []
    total = used = 0
    for fragment in plan.fragments:
        nbytes = fragment.physical_rows * (sizes.bytes_per_row(fragment) + _ID_BYTES)
        if not groups or used + nbytes > bytes_max:
            groups.append([])
            used = 0
        groups[-1].append(fragment)
        used += nbytes
        total += nbytes
    return [SortTask(replace(plan, fragments=tuple(group), old=()), bytes_max) for group in groups], total


def run_sort(task: SortTask, world: World) -> SortResult:
    """Read the fragments of a task, and write them as sorted runs."""
    plan = task.plan
    files: list[SortedFile] = []
    rows = nbytes = 0
    for some in _portions(read_entries(TaskContext(world, plan.base_paths), plan, plan.fragments), task.bytes_max):
        rows += sum(len(each.ids) for each in some)
        nbytes += sum(each.values.nbytes for each in some)
        files.append(_write_run(world, plan, MemoryRun.of(some)))
    paths = tuple(f"{plan.directory}/{file.name}" for file in files)
    return SortResult(files=tuple(files), paths=paths, rows_read=rows, bytes_read=nbytes)


def _portions(entries: Iterator[Entries], bytes_max: int) -> Iterator[list[Entries]]:
    """Entries in lists of about this many bytes."""
    some: list[Entries] = []
    used = 0
    for each in entries:
        some.append(each)
        used += each.values.nbytes + each.ids.nbytes
        if used >= bytes_max:
            yield some
            some, used = [], 0
    if some:
        yield some


def _write_run(world: World, plan: BuildPlan, run: MemoryRun) -> SortedFile:
    keys: list[Any] = []
    ids: list[Ids] = []
    order = order_of(run.type)
    assert order is not None, f"no BTREE holds {run.type}"
    at_row = 0

    def sampled(blocks: Iterator[Block]) -> Iterator[Block]:
        nonlocal at_row
        for block in blocks:
            places = np.arange(-at_row % SAMPLE_ROWS, len(block), SAMPLE_ROWS)
            at_row += len(block)
            ids.append(block.ids[places])
            if not block.values.null_count:
                keys.append(_short(order.values(block.values.take(pa.array(places)))))
            yield block

    def blocks() -> Iterator[Block]:
        yield from sampled(run.nulls())
        yield from sampled(run.values())

    name = write_part(world, world.store, plan.directory, run.type, blocks())
    everything = np.concatenate([np.zeros(0, np.uint64), *ids])
    together = _joined(keys)
    samples = Samples(SAMPLE_ROWS, len(everything) - (0 if together is None else len(together)), together, everything)
    return SortedFile(name, len(run), run.null_rows, samples)


def write_part(world: World, store: Store, directory: str, kind: pa.DataType, blocks: Iterator[Block]) -> str:
    """Write sorted entries to a file with a name of its own, and return the name."""
    schema = data_schema(kind)
    name = index_part_name(world.ids.uuid())
    batches = (pa.record_batch([block.values, pa.array(block.ids)], schema=schema) for block in blocks)
    write_index_file(store, directory, name, schema, batches)
    return name


def _short(keys: Any) -> Any:
    """Keys of at most 4 KiB: a range may begin between two values."""
    return keys if isinstance(keys, np.ndarray) else pc.binary_slice(keys, 0, SAMPLE_BYTES_MAX)


def is_whole(key: Any) -> bool:
    """Whether the key of a sample was not shortened."""
    return not isinstance(key, bytes) or len(key) < SAMPLE_BYTES_MAX


def _joined(keys: Sequence[Any]) -> Any:
    if not keys:
        return None
    return np.concatenate(keys) if isinstance(keys[0], np.ndarray) else pa.concat_arrays(keys)
