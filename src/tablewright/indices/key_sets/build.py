"""Builds of keys and row sets: tasks make sorted runs, which are merged into one file.

1. A task reads the column of some fragments. Pairs of key and row are collected until there are enough, then grouped.
   Groups are united; where they grow beyond a limit they become a *run*: a file below the directory of the index.
2. A small last run comes back with the result instead of a file.
3. Runs, and what is kept of older segments, are merged; a merge of very many goes in passes.

Tests: ``tests/unit/indices/key_sets/test_build.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from tablewright.data.shape import ReadShape
from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable
from tablewright.format.fragment import Fragment
from tablewright.format.index import IndexFile
from tablewright.format.naming import index_part_name
from tablewright.indices.building import BuildPlan, Entries, OldSegment, Stage
from tablewright.indices.entries import read_entries
from tablewright.indices.files import open_index_file, write_index_file
from tablewright.indices.key_sets.layout import Layout
from tablewright.indices.key_sets.order import comparable, is_ascending
from tablewright.indices.key_sets.part import Part, grouped, united
from tablewright.indices.key_sets.runs import Chunks, file_chunks, merged, moved_chunks, part_batch, write_run
from tablewright.indices.query import Ids
from tablewright.storage.base import delete_each
from tablewright.world import World

__all__ = ["KeyTask", "KeyTaskResult", "Pairs", "build_file", "run_key_task", "storage_type"]

_TASK_BYTES_MIN, _TASK_BYTES_MAX, _TASKS = 8 * 1024 * 1024, 256 * 1024 * 1024, 256
_PAIRS_MAX = 1 << 21  # that are grouped at once
_RUN_BYTES = 64 * 1024 * 1024
_INLINE_BYTES = 64 * 1024 * 1024  # of all results together
_MERGE_BYTES, _CHUNK_BYTES_MIN = 128 * 1024 * 1024, 256 * 1024
_FAN_IN = 128


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows by key: row ``ids[i]`` has ``keys[i]``. ``nulls`` are rows without keys that the kind lists separately."""

    keys: pa.Array
    ids: Ids
    nulls: Ids = field(default_factory=lambda: np.zeros(0, np.uint64))


PairsOf = Callable[[Entries], Iterator[Pairs]]


def storage_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values as an index stores them: without extension types and dictionaries."""
    kind = getattr(kind, "storage_type", kind)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTask:
    """Some fragments of a build. ``pairs`` is a function of a module; ``inline_bytes`` may come with the result."""

    plan: BuildPlan
    fragments: tuple[Fragment, ...]
    layout: Layout
    kind: pa.DataType
    pairs: PairsOf
    inline_bytes: int
    bytes_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTaskResult:
    """The runs of a task: files, and perhaps one in memory (``keys``, ``sets``). ``nulls`` is a set of rows."""

    paths: tuple[str, ...]
    rows_read: int
    bytes_read: int
    inline: pa.RecordBatch | None = None
    nulls: pa.Array | None = None


# --------------------------------------------------------------------------------------------------------------- tasks
def run_key_task(task: KeyTask, world: World) -> KeyTaskResult:
    """Read the fragments of a task and make its runs."""
    form, runs = task.layout.form, _Runs(task, world)
    context, rows = TaskContext(world, task.plan.base_paths), 0
    held: list[Pairs] = []
    nulls: list[Ids] = []

    def group() -> None:
        keys = pa.concat_arrays([pairs.keys for pairs in held])
        runs.add(grouped(keys, np.concatenate([pairs.ids for pairs in held]), form))
        held.clear()

    try:
        for entries in read_entries(context, task.plan, task.fragments):
            rows += len(entries.ids)
            for pairs in task.pairs(entries):
                nulls.append(pairs.nulls)
                held.append(pairs)
                if sum(len(each.ids) for each in held) >= _PAIRS_MAX:
                    group()
        if held:
            group()
        inline = runs.finish()
    except BaseException:
        delete_each(world.store, runs.paths)
        raise
    missing = np.concatenate([*nulls, np.zeros(0, np.uint64)])
    return KeyTaskResult(
        paths=tuple(runs.paths),
        rows_read=rows,
        bytes_read=task.bytes_read,
        inline=inline,
        nulls=grouped(pa.nulls(len(missing), pa.int8()), missing, form).sets if len(missing) else None,
    )


class _Runs:
    """What a task has grouped: united in memory up to a limit, then written."""

    def __init__(self, task: KeyTask, world: World) -> None:
        self._task, self._world = task, world
        self._parts: list[Part] = []
        self.paths: list[str] = []

    def add(self, part: Part) -> None:
        self._parts.append(part)
        if sum(each.nbytes for each in self._parts) > _RUN_BYTES:
            self._parts = [united(self._parts, self._task.layout.form)]
            if self._parts[0].nbytes > _RUN_BYTES // 2:
                self._write()

    def finish(self) -> pa.RecordBatch | None:
        """The last run, if it is small enough to come with the result; else it is written."""
        if not self._parts:
            return None
        self._parts = [united(self._parts, self._task.layout.form)]
        if self._parts[0].nbytes > self._task.inline_bytes:
            self._write()
            return None
        return pa.record_batch([self._parts[0].keys, self._parts[0].sets], ["keys", "sets"])

    def _write(self) -> None:
        path = f"{self._task.plan.directory}/{index_part_name(self._world.ids.uuid())}"
        self.paths.append(path)
        write_run(self._world.store, path, self._parts[0], self._task.layout)
        self._parts = []


def _tasks(plan: BuildPlan, layout: Layout, kind: pa.DataType, pairs: PairsOf) -> list[KeyTask]:
    """Consecutive fragments of about the same bytes in each task."""
    shape = ReadShape(plan.schema, plan.schema.project_ids([plan.field_id]))
    sized = [(each, shape.sizes.bytes_per_row(each) * each.physical_rows) for each in plan.fragments]
    target = min(_TASK_BYTES_MAX, max(_TASK_BYTES_MIN, sum(size for _, size in sized) // _TASKS))
    groups: list[tuple[list[Fragment], int]] = []
    for fragment, size in sized:
        if not groups or groups[-1][1] + size > target:
            groups.append(([], 0))
        chosen, total = groups[-1]
        groups[-1] = ([*chosen, fragment], total + size)
    small = replace(plan, fragments=(), old=())
    return [
        KeyTask(
            plan=small,
            fragments=tuple(chosen),
            layout=layout,
            kind=kind,
            pairs=pairs,
            inline_bytes=_INLINE_BYTES // len(groups),
            bytes_read=total,
        )
        for chosen, total in groups
    ]


# --------------------------------------------------------------------------------------------------------------- build
def build_file(
    plan: BuildPlan,
    world: World,
    stage: Stage,
    *,
    layout: Layout,
    kind: pa.DataType,
    pairs: PairsOf,
    finish: Callable[[int, pa.Array], tuple[dict[str, str], dict[str, bytes]]],
    old_nulls: Callable[[OldSegment], pa.Array] | None = None,
) -> IndexFile:
    """Build the file of an index whose keys have the type ``kind``.

    ``finish`` gets the number of keys and the sets of rows that :class:`Pairs` listed as nulls, and returns metadata
    and buffers of the file; ``old_nulls`` reads these sets of an older segment.
    """
    tasks = _tasks(plan, layout, kind, pairs)
    results = stage("read values", run_key_task, tasks) if tasks else []
    temporary = [path for result in results for path in result.paths]
    try:
        nulls = [result.nulls for result in results if result.nulls is not None]
        nulls += [old_nulls(segment) for segment in plan.old] if old_nulls else []
        merge = _Merge(plan, world, layout, kind, temporary)
        runs = [_single(result.inline) for result in results if result.inline is not None]
        makers: list[Callable[[], Chunks]] = [partial(iter, [run]) for run in runs]
        makers += [partial(merge.chunks, path) for path in tuple(temporary)]
        for segment in plan.old:
            makers += merge.old(segment)
        every = pa.concat_arrays(nulls) if nulls else pa.array([], pa.large_binary())
        return merge.write(makers, lambda count: finish(count, every))
    finally:
        delete_each(world.store, temporary)


def _single(batch: pa.RecordBatch) -> Part:
    return Part(batch.column("keys"), batch.column("sets"))


class _Merge:
    """The merge of the runs of one build; files that it writes on the way are added to ``temporary``."""

    def __init__(self, plan: BuildPlan, world: World, layout: Layout, kind: pa.DataType, temporary: list[str]) -> None:
        self._plan, self._world, self._layout, self._kind = plan, world, layout, kind
        self._temporary = temporary
        self._chunk_bytes = _MERGE_BYTES // _FAN_IN

    def chunks(self, path: str) -> Chunks:
        return file_chunks(self._world.store, path, self._layout, self._kind, self._chunk_bytes)

    def old(self, segment: OldSegment) -> list[Callable[[], Chunks]]:
        """The runs of an older segment: one if its keys are in order, else one for each chunk."""
        store, directory = TaskContext(self._world, self._plan.base_paths).index_place(segment.index)
        path = f"{directory}/{self._layout.file}"

        def read() -> Chunks:
            chunks = file_chunks(store, path, self._layout, self._kind, self._chunk_bytes)
            return moved_chunks(chunks, segment.translate, self._layout, path)

        reader = open_index_file(store, directory, self._layout.file, [self._layout.keys])
        rows = reader.num_rows
        if not rows or _in_order(batch.column(0) for batch in reader.read(0, rows, 1 << 16)):
            return [read]
        return [partial(self.chunks, self._kept(chunk)) for chunk in read()]

    def _kept(self, part: Part) -> str:
        path = f"{self._plan.directory}/{index_part_name(self._world.ids.uuid())}"
        self._temporary.append(path)
        write_run(self._world.store, path, part, self._layout)
        return path

    def write(
        self, makers: Sequence[Callable[[], Chunks]], finish: Callable[[int], tuple[dict[str, str], dict[str, bytes]]]
    ) -> IndexFile:
        """Merge the runs into the file of the index."""
        makers = list(makers)
        while len(makers) > _FAN_IN:
            first, makers = makers[:_FAN_IN], makers[_FAN_IN:]
            makers.append(partial(self.chunks, self._pass(first)))
        metadata: dict[str, str] = {}
        buffers: dict[str, bytes] = {}
        count = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for part in self._merged(makers):
                count += len(part)
                yield part_batch(part, self._layout)
            more, beside = finish(count)  # read by the writer after the last batch
            metadata.update(more)
            buffers.update(beside)

        schema = self._layout.schema(self._kind)
        return write_index_file(
            self._world.store,
            self._plan.directory,
            self._layout.file,
            schema,
            batches(),
            metadata=metadata,
            buffers=buffers,
        )

    def _pass(self, makers: Sequence[Callable[[], Chunks]]) -> str:
        path = f"{self._plan.directory}/{index_part_name(self._world.ids.uuid())}"
        self._temporary.append(path)
        directory, _, name = path.rpartition("/")
        batches = (part_batch(part, self._layout) for part in self._merged(makers))
        write_index_file(self._world.store, directory, name, self._layout.schema(self._kind), batches)
        return path

    def _merged(self, makers: Sequence[Callable[[], Chunks]]) -> Chunks:
        self._chunk_bytes = max(_CHUNK_BYTES_MIN, _MERGE_BYTES // max(1, len(makers)))
        try:
            yield from merged([make() for make in makers], partial(united, form=self._layout.form))
        except ValueError as error:
            raise CorruptTable(self._plan.directory, (f"{error}",)) from error


def _in_order(batches: Iterable[pa.Array]) -> bool:
    """Whether keys ascend, a null first, also from batch to batch."""
    before: pa.Array | None = None
    for number, batch in enumerate(batches):
        nulls = batch.null_count
        if nulls > 1 or (nulls and (number or batch[0].is_valid)):
            return False
        keys = batch[nulls:]
        if not is_ascending(comparable(keys if before is None else pa.concat_arrays([before, keys]))):
            return False
        before = keys[-1:] if len(keys) else before
    return True
