"""What a compaction does to each index segment, and the task that writes one again for the new addresses.

A segment goes one of four ways:

- *stays*: it names rows by row id, which a compaction does not change. Its files are left alone, its coverage follows.
- *remapped*: the same entries, in the same order, are written under the new addresses, and committed together with the
  compaction. Entries of rows that it does not cover any more are left out.
- *deferred*: asked for with ``defer_index_remap``. Its files are left alone, and the new version records which
  fragments became which. Readers translate: where one of the indices is a graph (HNSW) they can't, so nothing is
  deferred.
- *leaves*: a kind whose files we can't write. It no longer covers the new fragments; their rows are scanned.

A group that a segment covers only in part leaves its coverage, whatever the way.

Tests: ``tests/unit/operations/compact/test_indices.py``, ``tests/differential/indices/test_compaction.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from pyroaring import FrozenBitMap

from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.address_map import AddressMap
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BTREE, INVERTED, VECTOR, is_system, kind_of, stores_row_ids
from tablewright.format.manifest import BasePath
from tablewright.format.naming import index_dir
from tablewright.format.transaction import RewrittenIndex
from tablewright.indices import foreign
from tablewright.indices.building import WrittenIndex
from tablewright.indices.registry import KindFunctions, offered
from tablewright.indices.reuse import reuse_translation, reused_coverage
from tablewright.indices.translation import Translation, Within
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri
from tablewright.storage.uncommitted import discard_directory, removed_on_failure
from tablewright.world import World

__all__ = [
    "IndexWay",
    "RemapTask",
    "Remapped",
    "Way",
    "index_ways",
    "not_deferrable",
    "not_deferred",
    "remap_index",
    "remap_task",
]


class Way(Enum):
    """What becomes of a segment."""

    STAYS = "stays"
    REMAPPED = "remapped"
    DEFERRED = "deferred"
    LEAVES = "leaves"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWay:
    """One segment: which way it goes, how many rewritten fragments it covers, and how many bytes are written for it."""

    index: IndexMetadata
    way: Way
    fragments: int
    split: int = 0

    @property
    def index_bytes(self) -> int:
        """About the bytes that are written."""
        return sum(file.size_bytes for file in self.index.files) if self.way is Way.REMAPPED else 0

    def __str__(self) -> str:
        covered = f"{self.fragments} fragments"
        match self.way:
            case Way.STAYS:
                text = "covers the new fragments; its files stay, for it names rows by row id"
            case Way.REMAPPED:
                text = f"is written again for the new addresses of {covered}"
            case Way.DEFERRED:
                text = f"stays; the new addresses of {covered} are recorded until optimize_indices()"
            case Way.LEAVES:
                text = f"no longer covers {covered}; their rows are scanned until optimize_indices()"
        split = f"; {self.split} fragments leave its coverage, which has only a part of their group" * bool(self.split)
        return f"Index {self.index.name}: {text}{split}, index_bytes={self.index_bytes}"


def index_ways(snapshot: Snapshot, groups: Iterable[Iterable[int]], *, defer: bool) -> Iterator[IndexWay]:
    """The way of each segment that covers fragments of some groups, given by the ids of their old fragments."""
    old = [FrozenBitMap(group) for group in groups]
    for index in snapshot.manifest.indices:
        if is_system(index) or index.coverage is None:
            continue
        covered = reused_coverage(snapshot, index)
        whole = sum(len(group) for group in old if group <= covered)
        split = sum(len(group & covered) for group in old if not group <= covered)
        if whole or split:
            yield IndexWay(index=index, way=_way(snapshot, index, defer), fragments=whole, split=split)


def not_deferrable(snapshot: Snapshot, groups: Iterable[Iterable[int]]) -> tuple[str, ...]:
    """The names of indices on these groups for which a reader can't translate addresses: those with a graph (HNSW)."""
    old = FrozenBitMap().union(*map(FrozenBitMap, groups))
    return tuple(
        dict.fromkeys(
            index.name
            for index in snapshot.manifest.indices
            if not is_system(index) and old & reused_coverage(snapshot, index) and _has_graph(snapshot, index)
        )
    )


def not_deferred(names: Sequence[str]) -> str:
    """Why the work on indices is done now, although it was to be deferred."""
    which = ", ".join(names)
    return f"Indices are written again now: {which} has a graph (HNSW), where readers can't leave out deleted rows."


def _has_graph(snapshot: Snapshot, index: IndexMetadata) -> bool:
    try:
        return foreign.is_graph(index, snapshot)
    except CorruptTable:
        return True  # it can't be told


def _way(snapshot: Snapshot, index: IndexMetadata, defer: bool) -> Way:
    if snapshot.manifest.stable_row_ids and stores_row_ids(index):
        return Way.STAYS
    if defer and not snapshot.manifest.stable_row_ids:
        return Way.DEFERRED
    return Way.REMAPPED if _can_remap(snapshot, index) else Way.LEAVES


def _can_remap(snapshot: Snapshot, index: IndexMetadata) -> bool:
    kind, functions = kind_of(index), _functions(index)
    if kind in (INVERTED, VECTOR):
        try:
            return foreign.remappable(index, snapshot)
        except CorruptTable:
            return False
    if kind is None or functions is None or (index.index_version or 0) > kind.version_max:
        return False
    return functions.remap_zones is not None if kind.zones else functions.remap is not None


def _functions(index: IndexMetadata) -> KindFunctions | None:
    kind = kind_of(index)
    return None if kind is None else offered(kind)


# ---------------------------------------------------------------------------------------------------------------- tasks
@dataclass(frozen=True, slots=True, kw_only=True)
class RemapTask:
    """One segment to be written again, in a directory that the task names: two runs of it do not share one.

    ``steps`` lead from the addresses in its files to those of now: deferred compactions, then the one under way.
    ``coverage`` is what it covers afterwards.
    """

    index: IndexMetadata
    base_paths: tuple[BasePath, ...]
    steps: Translation
    coverage: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remapped:
    """What a task wrote instead of the segment ``old_id``."""

    old_id: UUID
    new_id: UUID
    written: WrittenIndex
    coverage: tuple[int, ...]
    bytes_read: int = 0
    rows_read: int = 0
    seconds: float = 0.0

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written."""
        return tuple(f"{index_dir(self.new_id)}/{file.path}" for file in self.written.files)

    @property
    def bytes_written(self) -> int:
        """The size of the files."""
        return sum(file.size_bytes for file in self.written.files)

    @property
    def entry(self) -> RewrittenIndex:
        """What the transaction says about it."""
        return RewrittenIndex(
            old_id=self.old_id,
            new_id=self.new_id,
            details_type_url=self.written.details_type_url,
            details_value=self.written.details_value,
            new_index_version=self.written.index_version,
            new_index_files=self.written.files,
        )


def remap_task(snapshot: Snapshot, index: IndexMetadata, groups: Sequence[AddressMap]) -> RemapTask:
    """The task that writes a segment again, as it is in ``snapshot``, for a rewrite of these groups."""
    step = Translation.of([groups])
    return RemapTask(
        index=index,
        base_paths=snapshot.manifest.base_paths,
        steps=reuse_translation(snapshot).then(step),
        coverage=tuple(step.coverage(reused_coverage(snapshot, index))),
    )


def remap_index(task: RemapTask, world: World) -> Remapped:
    """Write a segment again. If it fails, no file stays."""
    started, context = time.perf_counter(), TaskContext(world, task.base_paths)
    kind, functions, uuid = kind_of(task.index), _functions(task.index), world.ids.uuid()
    assert kind is not None and functions is not None, f"index {task.index.name} is of a kind that can't be remapped"
    try:
        if kind.zones:
            written = _remap_zones(functions, context, task, uuid, world)
        else:
            remap = foreign.remap if kind in (INVERTED, VECTOR) else functions.remap
            assert remap is not None
            translate = Within(task.steps, FrozenBitMap(task.coverage))
            written = remap(context, task.index, translate, world, index_dir(uuid))
            if kind is BTREE:  # version 1 says that a table with stable row ids has addresses in it: that stays so
                written = replace(written, index_version=task.index.index_version or 0)
    except BaseException as error:
        discard_directory(world.store, index_dir(uuid))
        if not isinstance(error, InvalidRequest):
            raise
        store, directory = context.index_place(task.index)  # it names rows that its fragments never had
        raise CorruptTable(join_uri(store.location.uri, directory), (str(error),)) from error
    return Remapped(
        old_id=task.index.uuid,
        new_id=uuid,
        written=written,
        coverage=task.coverage,
        bytes_read=sum(file.size_bytes for file in task.index.files),
        seconds=time.perf_counter() - started,
    )


def _remap_zones(
    functions: KindFunctions, context: TaskContext, task: RemapTask, new: UUID, world: World
) -> WrittenIndex:
    """Zones go through one rewrite at a time; the files in between are removed."""
    assert functions.remap_zones is not None
    index, between = task.index, list[UUID]()
    with removed_on_failure(world.store) as files:
        for place, groups in enumerate(task.steps.steps):
            last = place == len(task.steps.steps) - 1
            uuid = new if last else world.ids.uuid()
            written = functions.remap_zones(context, index, groups, world, index_dir(uuid))
            paths = [f"{index_dir(uuid)}/{file.path}" for file in written.files]
            files.add(paths)
            between += [] if last else [uuid]
            index = replace(
                index,
                uuid=uuid,
                base_id=None,
                files=written.files,
                details_type_url=written.details_type_url,
                details_value=written.details_value,
                index_version=written.index_version,
            )
    for uuid in between:
        discard_directory(world.store, index_dir(uuid))
    return written
