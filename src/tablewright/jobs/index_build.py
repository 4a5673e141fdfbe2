"""Segments of indices are written by tasks, and stay right whatever others commit meanwhile.

1. *Build*: the kind's own stages run on the engine that suits each; files are below a directory with a new name. What
   an attempt leaves there is removed when it fails.
2. *Follow*: what was built on one version is moved onto a newer one without building it again, operation by operation:
   fragments whose column was rewritten leave its coverage; a rewrite (compaction) of covered fragments is followed, for
   segments with row ids by coverage alone, for others by writing them again with translated addresses. Where that can't
   be done for certain, it is built again.

Tests: ``tests/unit/jobs/test_create_index.py``, ``tests/concurrency/test_index_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from pyroaring import FrozenBitMap

from tablewright.data.shape import ReadShape
from tablewright.engine.costs import Workload
from tablewright.errors import CommitConflict, VersionNotFound
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import stores_row_ids
from tablewright.format.naming import index_dir
from tablewright.format.transaction import Rewrite
from tablewright.indices.building import OldSegment, PartResult
from tablewright.indices.live_rows import live_rows_of
from tablewright.indices.registry import offered
from tablewright.indices.reuse import reuse_translation
from tablewright.indices.settings import settings_of
from tablewright.jobs.attempt import Made
from tablewright.jobs.work import Work
from tablewright.operations.compact.indices import RemapTask, remap_index
from tablewright.operations.create_index.finish import entry_of
from tablewright.operations.create_index.segment import KeptSegment, SegmentPlan
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import discard_directory
from tablewright.transaction.commit import Recheck
from tablewright.transaction.crossing import NotFollowed
from tablewright.transaction.history import operations_between
from tablewright.transaction.index_moves import MovedIndex, moved_index
from tablewright.transaction.touched import removed_fragments
from tablewright.world import World

__all__ = ["BuildStage", "Built", "IndexBuilder", "IndexMade", "index_work", "moved_meanwhile"]

T = TypeVar("T")
R = TypeVar("R", bound=PartResult)
OnStage = Callable[[str, bool, int], None]
"""Called when a stage begins and when it is done: its name, whether it is done, and how many rows were read."""


@dataclass(frozen=True, slots=True)
class Built:
    """A segment that was written, and its entry in the manifest."""

    segment: SegmentPlan
    entry: IndexMetadata


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IndexMade(Made):
    """The transaction, and the segments that it brings."""

    built: tuple[Built, ...] = ()


def index_work(segment: SegmentPlan, snapshot: Snapshot, tasks: int) -> Workload:
    """What a build reads: one column of some fragments, and the entries that it keeps."""
    shape = ReadShape(snapshot.schema, snapshot.schema.project_ids([segment.field_id]))
    rows = segment.read.physical_rows.astype("int64")
    size = int((shape.sizes.bytes_per_row_of_each(segment.read) * rows).sum()) if len(segment.read) else 0
    kept = sum(file.size_bytes for each in segment.kept for file in each.index.files)
    return Workload(
        bytes_read=size + kept,
        bytes_written=size + kept,
        rows=int(rows.sum()),
        files=max(1, len(segment.read)),
        tasks=tasks,
    )


@dataclass(frozen=True, slots=True)
class BuildStage:
    """Runs each stage of a build on the engine that suits its size (:class:`~tablewright.indices.building.Stage`)."""

    work: Work
    segment: SegmentPlan
    snapshot: Snapshot
    on_stage: OnStage | None = None

    def __call__(self, name: str, run: Callable[[T, World], R], tasks: Sequence[T]) -> list[R]:
        choice = self.work.choose(index_work(self.segment, self.snapshot, len(tasks)))
        if self.on_stage is not None:
            self.on_stage(name, False, 0)
        results = self.work.run(name, run, tasks, choice, fragments=len(self.segment.read))
        if self.on_stage is not None:
            self.on_stage(name, True, sum(result.rows_read for result in results))
        return results


@dataclass(eq=False)
class IndexBuilder:
    """The builds of one job. Mutable: it knows the directories that belong to no version yet."""

    world: World
    on_stage: OnStage | None = None
    directories: set[str] = field(default_factory=set)

    # ------------------------------------------------------------------------------------------------------------ build
    def build(self, segment: SegmentPlan, snapshot: Snapshot, work: Work) -> Built:
        """Write a segment."""
        segment = self._with_settings(segment, snapshot)
        functions = offered(segment.kind)
        assert functions.build is not None, f"{segment.kind.name} is not built here"
        uuid = self._directory()
        plan = segment.build_plan(snapshot, uuid, tuple(_old(snapshot, segment, kept) for kept in segment.kept))
        self._tell(segment, False)
        try:
            written = functions.build(plan, self.world, BuildStage(work, segment, snapshot, self.on_stage))
        except BaseException:
            self.discard([uuid])
            raise
        self._tell(segment, True)
        work.files.release()  # those of parts are gone; the directory is kept or removed as a whole
        names = [f"{plan.directory}/{file.path}" for file in written.files]
        discard_directory(self.world.store, plan.directory, keep=names)
        return Built(segment, entry_of(segment, written, uuid, snapshot.version, self.world.clock.now_ns()))

    def _tell(self, segment: SegmentPlan, is_done: bool) -> None:
        if self.on_stage is not None:
            self.on_stage(f"Building {segment.name}", is_done, segment.read.total_live_rows if is_done else 0)

    def _with_settings(self, segment: SegmentPlan, snapshot: Snapshot) -> SegmentPlan:
        """Segments of an index go on with the settings of the newest one before them."""
        if segment.settings_of is None:
            return segment
        return replace(segment, settings=settings_of(snapshot, segment.settings_of))

    def _directory(self) -> UUID:
        uuid = self.world.ids.uuid()
        self.directories.add(index_dir(uuid))
        return uuid

    def discard(self, uuids: Iterable[UUID]) -> None:
        """Remove directories that no version names."""
        for directory in map(index_dir, uuids):
            discard_directory(self.world.store, directory)
            self.directories.discard(directory)

    def discard_all(self) -> None:
        """The job failed: remove all that it has written."""
        for directory in sorted(self.directories):
            discard_directory(self.world.store, directory)
        self.directories.clear()

    # ----------------------------------------------------------------------------------------------------------- follow
    def followed(self, built: Sequence[Built], base: Snapshot, newest: Snapshot, work: Work) -> list[Built] | None:
        """What was built on ``base``, as segments of ``newest``; ``None`` if it has to be built again.

        Segments that are written again get new directories, and the old ones are removed.
        """
        if base.manifest.stable_row_ids != newest.manifest.stable_row_ids:
            return None
        try:
            moves = [_moved_index(base, newest, each.entry) for each in built]
        except (NotFollowed, VersionNotFound):
            return None
        return [self._moved(each, move, newest, work) for each, move in zip(built, moves, strict=True)]

    def _moved(self, built: Built, move: MovedIndex, newest: Snapshot, work: Work) -> Built:
        entry = replace(move.index, name=built.entry.name)
        if not move.steps.steps:
            return Built(built.segment, entry)
        task = RemapTask(
            index=entry,
            base_paths=newest.manifest.base_paths,
            steps=move.steps,
            coverage=tuple(entry.coverage or ()),
        )
        size = sum(file.size_bytes for file in entry.files)
        choice = work.choose(Workload(bytes_read=size, bytes_written=size, files=2 * len(entry.files), tasks=1))
        (remapped,) = work.run("Remapping the new index", remap_index, [task], choice)
        work.files.release()
        self.directories.add(index_dir(remapped.new_id))
        self.discard([entry.uuid])
        moved = replace(
            entry,
            uuid=remapped.new_id,
            files=remapped.written.files,
            details_type_url=remapped.written.details_type_url,
            details_value=remapped.written.details_value,
            index_version=remapped.written.index_version,
            dataset_version=newest.version,
        )
        return Built(built.segment, moved)


def _old(snapshot: Snapshot, segment: SegmentPlan, kept: KeptSegment) -> OldSegment:
    """A kept segment with the translation of its ids: which rows are still there, and where."""
    moved = reuse_translation(snapshot)
    rows = live_rows_of(
        snapshot.fragments,
        tuple(kept.fragment_ids),
        snapshot.deletion_vector,
        by_address=segment.kind.zones or not snapshot.manifest.stable_row_ids,
        moved=moved if moved.steps else None,
    )
    return OldSegment(kept.index, rows, tuple(kept.fragment_ids))


def _moved_index(base: Snapshot, newest: Snapshot, entry: IndexMetadata) -> MovedIndex:
    """Where a segment is on a newer version. Other indices of its name do not matter here: names are decided again."""
    return moved_index(base, newest, replace(entry, name=str(entry.uuid)))


def moved_meanwhile(base: Snapshot, entries: Sequence[IndexMetadata]) -> Recheck:
    """A recheck that sends the job back where rows that new segments name by address were rewritten meanwhile."""

    def check(newest: Snapshot) -> None:
        if base.manifest.stable_row_ids != newest.manifest.stable_row_ids:
            raise CommitConflict("CreateIndex", "Merge", newest.version, reason="stable row ids were switched on")
        stable = newest.manifest.stable_row_ids
        held = [entry.coverage or FrozenBitMap() for entry in entries if not (stable and stores_row_ids(entry))]
        gone = {id for id in FrozenBitMap().union(*held) if not newest.fragments.has(id)}
        if not gone:
            return
        for version, operation in operations_between(base.version, newest).items():
            if isinstance(operation, Rewrite) and not gone.isdisjoint(removed_fragments(operation)):
                reason = "rows of the new index were rewritten, and its addresses are translated"
                raise CommitConflict("CreateIndex", "Rewrite", version, reason=reason)

    return check
