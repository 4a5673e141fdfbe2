"""Dropping an index as a job: one commit that takes its entries; files go with the next cleanup.

The record of deferred compactions (``__lance_frag_reuse``) can be dropped only if no index needs it: without it, files
of indices that hold older addresses would find no rows, silently.

Tests: ``tests/unit/jobs/test_drop_index.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.errors import IndexNotFound, InvalidRequest
from tablewright.format.flags import check_writable
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import REUSE_NAME, is_system
from tablewright.indices.reuse import needed_versions
from tablewright.jobs.attempt import Job, Made
from tablewright.jobs.work import Work
from tablewright.operations.create_index.finish import finish_indices
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.commit import Committed

__all__ = ["DropIndexJob"]


@dataclass(frozen=True)
class DropIndexJob(Job[tuple[IndexMetadata, ...], Made, None]):
    """Drop the index ``name`` with all its segments."""

    name: str

    def plan(self, snapshot: Snapshot, now_ns: int) -> tuple[IndexMetadata, ...]:
        """The segments of the index."""
        check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
        indices = snapshot.manifest.indices
        found = tuple(index for index in indices if index.name == self.name)
        if not found:
            raise IndexNotFound(self.name, tuple(sorted({index.name for index in indices})))
        if self.name == REUSE_NAME and needed_versions(snapshot, [each for each in indices if not is_system(each)]):
            raise InvalidRequest(
                f"{REUSE_NAME} records where a compaction moved rows that indices still name by their old addresses; "
                "without it they would find nothing. Run optimize.optimize_indices(), which removes it when it can."
            )
        return found

    def run(self, plan: tuple[IndexMetadata, ...], snapshot: Snapshot, work: Work) -> Made:
        """There are no tasks."""
        transaction = finish_indices((), plan, snapshot.version, work.world.ids.uuid())
        return Made(base=snapshot, transaction=transaction, files=work.files)

    def result(self, made: Made, committed: Committed | None) -> None:
        """Nothing beside the new version."""
