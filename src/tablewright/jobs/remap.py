"""The indices of a compaction under way: segments are written again once, and again only if others changed them.

A segment that was written stays good while the table has the same segment, and the groups are the same ones. After a
conflict only the others are written again: a segment that was replaced meanwhile, or remapped by another compaction,
has other files now. What was written for a segment that is gone is removed.

A segment whose files are damaged is left out, so that it no longer covers the new fragments: the compaction of the rows
does not depend on it.

Tests: ``tests/concurrency/test_compaction_indices.py``, ``tests/differential/indices/test_compaction.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tablewright.engine.costs import Workload
from tablewright.errors import CorruptTable
from tablewright.format.address_map import AddressMap
from tablewright.format.naming import index_dir
from tablewright.format.transaction import RewrittenIndex
from tablewright.jobs.work import Work
from tablewright.operations.compact.indices import Remapped, RemapTask, Way, index_ways, remap_index, remap_task
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import discard_directory
from tablewright.world import World

__all__ = ["IndexRemaps"]

_Key = tuple[UUID, tuple[int, ...]]


class IndexRemaps:
    """Mutable: it keeps what was written for the groups of one compaction."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._done: dict[_Key, Remapped] = {}
        self.bytes_written = 0

    @property
    def written(self) -> set[str]:
        """The files that belong to no version yet."""
        return {path for each in self._done.values() for path in each.paths}

    def on(self, newest: Snapshot, groups: Sequence[AddressMap], work: Work) -> tuple[RewrittenIndex, ...]:
        """The segments of a version that are written again for these groups, all of which are in it."""
        ids = [[old.id for old in group.old] for group in groups]
        ways = [each for each in index_ways(newest, ids, defer=False) if each.way is Way.REMAPPED and each.fragments]
        new = tuple(new.id for group in groups for new in group.new)
        wanted: dict[_Key, RemapTask] = {}
        for each in ways:
            task = remap_task(newest, each.index, groups)
            known = self._done.get((each.index.uuid, new))
            if known is None or not set(task.coverage) <= set(known.coverage):
                wanted[each.index.uuid, new] = task
        keys = {(each.index.uuid, new) for each in ways}
        self._forget([key for key in self._done if key in wanted or key not in keys])
        self._run(wanted, work)
        return tuple(self._done[key].entry for key in sorted(keys, key=str) if key in self._done)

    def _run(self, wanted: dict[_Key, RemapTask], work: Work) -> None:
        if not wanted:
            return
        tasks = list(wanted.values())
        files = [file for task in tasks for file in task.index.files]
        size = sum(file.size_bytes for file in files)
        choice = work.choose(
            Workload(bytes_read=size, bytes_written=size, files=2 * max(1, len(files)), tasks=len(tasks))
        )
        outcomes = work.outcomes("Remapping indices", remap_index, tasks, choice)
        for key, outcome in zip(wanted, outcomes, strict=True):
            if outcome.result is not None:
                self._done[key] = outcome.result
                self.bytes_written += outcome.result.bytes_written
        for task, outcome in zip(tasks, outcomes, strict=True):
            if isinstance(outcome.error, CorruptTable):
                name = task.index.name
                work.report.notes.append(f"  index {name} no longer covers the new fragments: {outcome.error}")
            elif outcome.error is not None:
                self._forget([key for key in wanted if key in self._done])
                raise outcome.error

    def _forget(self, keys: Sequence[_Key]) -> None:
        for key in keys:
            discard_directory(self._world.store, index_dir(self._done.pop(key).new_id))

    def committed(self, snapshot: Snapshot) -> None:
        """A version was made: files that it does not name are removed."""
        there = {index.uuid for index in snapshot.manifest.indices}
        self._forget([key for key, each in self._done.items() if each.new_id not in there])
        self._done.clear()

    def remove(self) -> None:
        """The compaction failed: remove everything."""
        self._forget(list(self._done))
