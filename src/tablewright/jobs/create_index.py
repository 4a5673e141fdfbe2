"""New indices, and indices that catch up, as jobs: build segments, commit them together with what they replace.

Two builders of one name leave one index: the second one replaces what the first committed, if it may, without building
again. The commit is retried as long as others commit; what was built is worth more than a few attempts.

Tests: ``tests/unit/jobs/test_create_index.py``, ``tests/concurrency/test_index_meanwhile.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from tablewright.errors import CommitUnknown
from tablewright.format.index import IndexMetadata
from tablewright.jobs.attempt import Done, Job
from tablewright.jobs.index_build import Built, IndexBuilder, IndexMade, OnStage, moved_meanwhile
from tablewright.jobs.trim import trimmed_record
from tablewright.jobs.work import Work
from tablewright.log import Log
from tablewright.operations.create_index.finish import finish_indices
from tablewright.operations.create_index.merge import OptimizeOptions, plan_optimize
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.plan import plan_index
from tablewright.operations.create_index.segment import IndexPlan
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World

__all__ = ["CreateIndexJob", "IndexJob", "OptimizeIndicesJob"]

_log = Log("job")
_RETRIES = RetryOptions(conflict_retries=1000, retry_timeout_seconds=1800.0)


class IndexJob(Job[IndexPlan, IndexMade, tuple[IndexMetadata, ...]]):
    """Segments that are built and committed. One instance belongs to one execution. The result are the new entries."""

    retries = _RETRIES

    def __init__(self, world: World, on_stage: OnStage | None = None) -> None:
        self._world, self._builder = world, IndexBuilder(world, on_stage)

    def run(self, plan: IndexPlan, snapshot: Snapshot, work: Work) -> IndexMade | Done[tuple[IndexMetadata, ...]]:
        """Build every segment."""
        for name, why in plan.left_alone.items():
            _log.info("index", "index %(name)s is left alone: %(why)s", name=name, why=why)
            work.report.notes.append(f"  index {name} is left alone: {why}")
        built = [self._builder.build(segment, snapshot, work) for segment in plan.segments]
        return self._made(built, snapshot, work)

    def _made(self, built: Sequence[Built], base: Snapshot, work: Work) -> IndexMade | Done[tuple[IndexMetadata, ...]]:
        entries = [each.entry for each in built]
        removed = [index for each in built for index in each.segment.removed]
        new_record, old_record = self._record(base, entries, removed, work)
        if not built and not old_record:
            return Done(base, ())
        uuid = work.world.ids.uuid()
        return IndexMade(
            base=base,
            transaction=finish_indices([*entries, *new_record], [*removed, *old_record], base.version, uuid),
            files=work.files,
            recheck=moved_meanwhile(base, entries),
            built=tuple(built),
        )

    def _record(
        self, base: Snapshot, new: Sequence[IndexMetadata], removed: Sequence[IndexMetadata], work: Work
    ) -> tuple[Sequence[IndexMetadata], Sequence[IndexMetadata]]:
        """What comes and goes of the record of deferred compactions."""
        return (), ()

    @abstractmethod
    def plan(self, snapshot: Snapshot, now_ns: int) -> IndexPlan:
        """Decide the segments on a version."""

    def rebase(
        self, made: IndexMade, newest: Snapshot, work: Work
    ) -> IndexMade | Done[tuple[IndexMetadata, ...]] | None:
        """The segments on the newest version, where they can be followed."""
        built = self._again(made, newest)
        built = None if built is None else self._builder.followed(built, made.base, newest, work)
        if built is not None:
            return self._made(built, newest, work)
        self._builder.discard(each.entry.uuid for each in made.built)
        return None

    @abstractmethod
    def _again(self, made: IndexMade, newest: Snapshot) -> list[Built] | None:
        """What was built, as a plan for the newest version has it; ``None`` if that is another plan."""

    def result(self, made: IndexMade, committed: Committed | None) -> tuple[IndexMetadata, ...]:
        """The new entries, as they were committed."""
        return tuple(each.entry for each in made.built)

    def close(self, error: BaseException | None) -> None:
        """After a failure remove what was written, unless it may be part of a version."""
        if error is not None and not isinstance(error, CommitUnknown):
            self._builder.discard_all()


class CreateIndexJob(IndexJob):
    """One index on one column."""

    def __init__(self, request: IndexRequest, world: World, on_stage: OnStage | None = None) -> None:
        super().__init__(world, on_stage)
        self._request = request

    def plan(self, snapshot: Snapshot, now_ns: int) -> IndexPlan:
        """The index that the request means."""
        return plan_index(snapshot, self._request)

    def _again(self, made: IndexMade, newest: Snapshot) -> list[Built] | None:
        (segment,) = plan_index(newest, replace(self._request, fragment_ids=None)).segments
        (built,) = made.built
        before = built.segment
        if (segment.field_id, segment.path, segment.type) != (before.field_id, before.path, before.type):
            return None
        entry = replace(built.entry, name=segment.name)
        return [Built(replace(before, name=segment.name, removed=segment.removed), entry)]


class OptimizeIndicesJob(IndexJob):
    """Indices catch up with the table: new fragments are indexed, segments merged, stale entries dropped."""

    def __init__(self, options: OptimizeOptions, world: World, on_stage: OnStage | None = None) -> None:
        super().__init__(world, on_stage)
        self._options = options

    def plan(self, snapshot: Snapshot, now_ns: int) -> IndexPlan:
        """What each index needs."""
        return plan_optimize(snapshot, self._options)

    def _record(
        self, base: Snapshot, new: Sequence[IndexMetadata], removed: Sequence[IndexMetadata], work: Work
    ) -> tuple[Sequence[IndexMetadata], Sequence[IndexMetadata]]:
        return trimmed_record(base, new, removed, work)

    def _again(self, made: IndexMade, newest: Snapshot) -> list[Built] | None:
        """Each index must have the segments that it had: those of others would overlap with ours."""
        names = {each.segment.name for each in made.built}
        if not names or _segments(made.base, names) != _segments(newest, names):
            return None
        return list(made.built)


def _segments(snapshot: Snapshot, names: set[str]) -> set[tuple[str, str]]:
    return {(index.name, str(index.uuid)) for index in snapshot.manifest.indices if index.name in names}
