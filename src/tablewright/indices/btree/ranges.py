"""The second stage of a large build: ranges of entries, each merged from all runs by one task.

A *splitter* is an entry's place in the order: null or not, key, id. Ids are part of it, so that a value which most rows
share is divided as well. Splitters come from the samples of all runs, at equal distances; every sample stands for the
same number of rows. The samples also tell where in a run a range can begin and end, so a task reads of each run its
own rows and at most two strides more.

Tests: ``tests/unit/indices/btree/test_ranges.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.indices.btree.merge import Block, joined, key_at, position
from tablewright.indices.btree.order import order_of
from tablewright.indices.btree.runs import FileRun, MemoryRun
from tablewright.indices.btree.sort import entry_order
from tablewright.indices.btree.sorting import Samples, SortedFile, is_whole, write_part
from tablewright.indices.query import Ids
from tablewright.world import World

__all__ = ["RangeResult", "RangeTask", "Slice", "Splitter", "range_tasks", "run_range"]


@dataclass(frozen=True, slots=True)
class Splitter:
    """A place in the order of entries. ``key`` is ``None`` among the nulls, which come first."""

    key: Any
    id: int

    def place_in_nulls(self, ids: Ids) -> int:
        """How many of some nulls, with ascending ids, come before it."""
        return len(ids) if self.key is not None else int(np.searchsorted(ids, np.uint64(self.id), "left"))

    def place_in_values(self, keys: Any, ids: Ids) -> int:
        """How many of some values, with ascending keys and ids, come before it."""
        if self.key is None:
            return 0
        low, high = position(keys, self.key, "left"), position(keys, self.key, "right")
        return low + int(np.searchsorted(ids[low:high], np.uint64(self.id), "left"))


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a run that hold all its entries of a range."""

    name: str
    start: int
    nulls_end: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RangeTask:
    """The entries from ``low`` up to ``high``, excluded; ``None`` for no bound."""

    directory: str
    type: pa.DataType
    slices: tuple[Slice, ...]
    low: Splitter | None
    high: Splitter | None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RangeResult:
    """The sorted file of a range; ``None`` if it has no entries."""

    file: SortedFile | None
    paths: tuple[str, ...]
    rows_read: int
    bytes_read: int


def range_tasks(directory: str, kind: pa.DataType, files: Sequence[SortedFile], count: int) -> list[RangeTask]:
    """Tasks for about ``count`` ranges of equal size, in order."""
    splitters = _splitters([file.samples for file in files if file.samples is not None], count)
    bounds: list[Splitter | None] = [None, *splitters, None]
    return [
        RangeTask(
            directory=directory,
            type=kind,
            slices=tuple(found for file in files if (found := _slice(file, low, high)) is not None),
            low=low,
            high=high,
        )
        for low, high in pairwise(bounds)
    ]


def _splitters(samples: Sequence[Samples], count: int) -> list[Splitter]:
    """Places that cut all entries into ``count`` parts, ascending and distinct."""
    null_ids = np.sort(np.concatenate([each.ids[: each.nulls] for each in samples]))
    ids = np.concatenate([each.ids[each.nulls :] for each in samples])
    keys = [each.keys for each in samples if each.keys is not None]
    together = joined(keys) if keys else np.zeros(0, np.int64)
    order = entry_order(together, ids)
    total = len(null_ids) + len(order)
    found: list[Splitter] = []
    for at in np.unique(np.arange(1, count) * total // count).tolist():
        if at < len(null_ids):
            found.append(Splitter(None, int(null_ids[at])))
        else:
            row = int(order[at - len(null_ids)])
            found.append(Splitter(key_at(together, row), int(ids[row])))
    return list(dict.fromkeys(found))


def _slice(file: SortedFile, low: Splitter | None, high: Splitter | None) -> Slice | None:
    start = 0 if low is None else _around(file, low)[0]
    stop = file.rows if high is None else _around(file, high)[1]
    return Slice(file.name, start, min(max(start, file.nulls), stop), stop) if start < stop else None


def _around(file: SortedFile, place: Splitter) -> tuple[int, int]:
    """Rows of a run between which a place lies, by the samples."""
    samples = file.samples
    assert samples is not None, f"{file.name} has samples"
    before = after = place.place_in_nulls(samples.ids[: samples.nulls])
    if samples.keys is not None and place.key is not None:
        ids = samples.ids[samples.nulls :]
        if is_whole(place.key):
            at = place.place_in_values(samples.keys, ids)
            before, after = before + at, after + at
        else:
            before += position(samples.keys, place.key, "left")
            after += position(samples.keys, place.key, "right")
    return max(0, before - 1) * samples.stride, min(file.rows, after * samples.stride)


def run_range(task: RangeTask, world: World) -> RangeResult:
    """Read the entries of a range from all runs, sort them, and write them to one file."""
    blocks = [block for part in task.slices for block in _blocks(task, part, world)]
    if not blocks:
        return RangeResult(file=None, paths=(), rows_read=0, bytes_read=0)
    run = MemoryRun(
        pa.concat_arrays([block.values for block in blocks]), np.concatenate([block.ids for block in blocks])
    )

    def sorted_blocks() -> Iterator[Block]:
        yield from run.nulls()
        yield from run.values()

    nbytes = sum(block.values.nbytes for block in blocks)
    blocks.clear()
    name = write_part(world, world.store, task.directory, task.type, sorted_blocks())
    file = SortedFile(name, len(run), run.null_rows)
    return RangeResult(file=file, paths=(f"{task.directory}/{name}",), rows_read=len(run), bytes_read=nbytes)


def _blocks(task: RangeTask, part: Slice, world: World) -> Iterator[Block]:
    """The entries of one run that lie in the range."""
    order = order_of(task.type)
    assert order is not None, f"no BTREE holds {task.type}"
    run = FileRun(world.store, task.directory, part.name, task.type, part.start, part.nulls_end, part.stop)
    for block in run.nulls():
        yield _within(block, task, lambda place, block: place.place_in_nulls(block.ids))
    for block in run.values():
        keys = order.values(block.values)
        yield _within(block, task, lambda place, block, keys=keys: place.place_in_values(keys, block.ids))


def _within(block: Block, task: RangeTask, place_of: Any) -> Block:
    start = 0 if task.low is None else place_of(task.low, block)
    stop = len(block) if task.high is None else place_of(task.high, block)
    return block.slice(start, max(start, stop))
