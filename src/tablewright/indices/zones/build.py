"""Building a zone index: tasks summarise the zones of some fragments each, and one file holds them all.

1. A task reads its fragments batch by batch and cuts zones. What it found is small for most columns and comes back with
   the result; beyond a megabyte it goes to a file of its own, below the index's directory.
2. Zones of older segments that are kept come first, then those of the tasks, in the order of the fragments.
3. The null rows of all of them go into one buffer. If an older segment does not know its null rows, the new file
   does not either: an empty set would claim that there are none.

Tests: ``tests/unit/indices/zones/test_zones.py``, ``tests/unit/indices/zonemap/test_zonemap.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.encoder import DataFileReader
from tablewright.data.shape import ReadShape
from tablewright.data.task_context import TaskContext
from tablewright.format.fragment import Fragment
from tablewright.format.fragment_rows import FragmentRows, decode_fragment_rows, encode_fragment_rows
from tablewright.format.index import IndexFile
from tablewright.format.naming import index_part_name
from tablewright.indices.building import BuildPlan, Entries, Stage
from tablewright.indices.entries import read_entries
from tablewright.indices.files import write_index_file
from tablewright.indices.zones.file import ZoneReader, in_schema, write_zones
from tablewright.indices.zones.summary import ZoneCutter, ZoneSummary
from tablewright.storage.base import Store
from tablewright.world import World

__all__ = ["ZonePart", "ZoneTask", "build_zones", "run_zone_task"]

_TASK_BYTES = 16 << 20
_INLINE_BYTES = 1 << 20
_ROWS_PER_READ = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneTask:
    """Some fragments of a build. ``plan`` has neither its fragments nor old segments."""

    plan: BuildPlan
    fragments: tuple[Fragment, ...]
    summary: ZoneSummary
    rows_per_zone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePart:
    """The zones of a task: in ``zones`` as an Arrow stream, or in the file ``paths[0]``; and the null rows."""

    zones: bytes
    nulls: bytes
    paths: tuple[str, ...]
    rows_read: int
    bytes_read: int


def build_zones(
    plan: BuildPlan, world: World, stage: Stage, summary: ZoneSummary, rows_per_zone: int, metadata: Mapping[str, str]
) -> tuple[IndexFile, bool]:
    """Write the file of a zone index; and whether it knows its null rows."""
    context = TaskContext(world, plan.base_paths)
    readers = [ZoneReader(context, old.index, plan.kind.files[0]) for old in plan.old]
    bare = replace(plan, fragments=(), old=())
    tasks = [ZoneTask(plan=bare, fragments=some, summary=summary, rows_per_zone=rows_per_zone) for some in _split(plan)]
    parts = stage("index zones", run_zone_task, tasks) if tasks else []
    try:
        kept = [set(old.fragments) for old in plan.old]
        before = [_old_zones(reader, wanted, summary.schema) for reader, wanted in zip(readers, kept, strict=True)]
        after = (zone for part in parts for zone in _zones(world.store, part))
        nulls = _nulls(readers, kept, parts)
        zones = chain(*before, after)
        name = plan.kind.files[0]
        return write_zones(world.store, plan.directory, name, summary, zones, nulls, metadata), nulls is not None
    finally:
        for path in (path for part in parts for path in part.paths):
            world.store.delete(path)


# --------------------------------------------------------------------------------------------------------------- tasks
def _split(plan: BuildPlan) -> Iterator[tuple[Fragment, ...]]:
    """Consecutive fragments of some megabytes together."""
    sizes = ReadShape(plan.schema, plan.schema.project_ids([plan.field_id])).sizes
    group: list[Fragment] = []
    size = 0
    for fragment in plan.fragments:
        group.append(fragment)
        size += fragment.physical_rows * sizes.bytes_per_row(fragment)
        if size >= _TASK_BYTES:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)


def run_zone_task(task: ZoneTask, world: World) -> ZonePart:
    """Summarise the zones of a task's fragments."""
    counts = [0, 0]

    def counted(entries: Iterable[Entries]) -> Iterator[Entries]:
        for batch in entries:
            counts[0] += len(batch.values)
            counts[1] += batch.values.nbytes
            yield batch

    context = TaskContext(world, task.plan.base_paths)
    cutter = ZoneCutter(task.summary, task.rows_per_zone)
    zones = cutter.cut(counted(read_entries(context, task.plan, task.fragments)))
    first: list[pa.RecordBatch] = []
    size = 0
    for batch in zones:
        first.append(batch)
        size += batch.nbytes
        if size > _INLINE_BYTES:
            break
    schema = task.summary.schema
    paths: tuple[str, ...] = ()
    if size > _INLINE_BYTES:
        name = index_part_name(world.ids.uuid())
        write_index_file(world.store, task.plan.directory, name, schema, chain(first, zones))
        first, paths = [], (f"{task.plan.directory}/{name}",)
    nulls = encode_fragment_rows(cutter.nulls)
    return ZonePart(zones=_stream(schema, first), nulls=nulls, paths=paths, rows_read=counts[0], bytes_read=counts[1])


def _stream(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


# --------------------------------------------------------------------------------------------------------------- merge
def _zones(store: Store, part: ZonePart) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(part.zones) as reader:
        yield from reader
    for path in part.paths:
        file = DataFileReader(store, path)
        yield from file.read(0, file.num_rows, _ROWS_PER_READ)


def _old_zones(reader: ZoneReader, fragment_ids: set[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The zones of some fragments, in a schema."""
    wanted = pa.array(sorted(fragment_ids), pa.uint64())
    for batch in reader.batches():
        chosen = batch.filter(pc.is_in(batch["fragment_id"], value_set=wanted))
        yield in_schema(chosen, schema, reader.where)


def _nulls(readers: Sequence[ZoneReader], kept: Sequence[set[int]], parts: Sequence[ZonePart]) -> FragmentRows | None:
    """All null rows; ``None`` if one of the older segments does not know its own."""
    found: FragmentRows = {}
    for reader, wanted in zip(readers, kept, strict=True):
        if reader.nulls is None:
            return None
        found |= {id: offsets for id, offsets in reader.nulls.items() if id in wanted}
    for part in parts:
        found |= {id: offsets for id, offsets in decode_fragment_rows(part.nulls).items() if offsets is not None}
    return found
