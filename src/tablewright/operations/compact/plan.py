"""Which fragments a compaction rewrites together, decided from the manifest alone.

Fragments are looked at in the order of their ids:

1. A fragment is written again *itself* if too many of its rows are deleted, or too many of its bytes are dead columns
   (:mod:`.dead_columns`); *with its neighbours* if it has fewer rows than the target. Others, and excluded ones, stay,
   and end a run of neighbours.
2. A run holds only fragments that the same index segments cover. A single fragment that is just small stays.
3. A run is cut where the target is reached, if as much is left: five fragments of 60 rows become two and three for a
   target of 100.
4. Whole tasks are taken, oldest first, until the next one would exceed a limit of one run.

Format: ``docs/format/compaction.md#planning``.

Tests: ``tests/unit/operations/compact/test_plan.py``, ``tests/differential/operations/test_compact_plan.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tablewright.errors import InvalidRequest
from tablewright.format.flags import check_writable
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.fragment.entries import files_of
from tablewright.format.index_kinds import is_system
from tablewright.indices.reuse import reused_coverage
from tablewright.lazy import cached_property
from tablewright.operations.compact.dead_columns import dead_column_share
from tablewright.operations.compact.indices import index_ways, not_deferrable, not_deferred
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.rewrite.file_version import new_file_version
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["CompactionPlan", "CompactionTask", "groups_to_compact", "plan_compaction"]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """Fragments that are written again together, as they are in ``read_version``. ``reason`` says why."""

    fragments: tuple[Fragment, ...]
    read_version: int
    options: CompactionOptions
    reason: str = ""

    @property
    def live_rows(self) -> int:
        """How many rows are written."""
        return sum(fragment.live_rows for fragment in self.fragments)

    @property
    def source_bytes(self) -> int:
        """The size of the data files that are replaced."""
        return sum(fragment.data_bytes for fragment in self.fragments)

    @property
    def rows_per_file(self) -> int:
        """Rows of each new file: as many files as reach the target, of nearly equal size."""
        files = max(1, self.live_rows // self.options.target_rows_per_fragment)
        return max(1, -(-self.live_rows // files))

    def __str__(self) -> str:
        ids = [fragment.id for fragment in self.fragments]
        shown = ", ".join(map(str, ids[:4])) + (f", … {ids[-1]}" if len(ids) > 4 else "")
        deleted = sum(fragment.deleted_rows for fragment in self.fragments)
        return (
            f"Rewrite: fragments=[{shown}], num_fragments={len(ids)}, rows={self.live_rows}, deleted_rows={deleted}, "
            f"bytes={self.source_bytes}, rows_per_file={self.rows_per_file}, because={self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The tasks of a compaction of one version, and what becomes of its indices. ``str(plan)`` explains it."""

    uri: str
    read_version: int
    options: CompactionOptions
    tasks: tuple[CompactionTask, ...]
    num_fragments: int
    indices: tuple[str, ...] = ()

    @property
    def estimated_bytes(self) -> int:
        """About how much is read and written."""
        return 2 * sum(task.source_bytes for task in self.tasks)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        sources = sum(len(task.fragments) for task in self.tasks)
        yield (
            f"Compaction: uri={self.uri}, version={self.read_version}, fragments={sources} of {self.num_fragments}, "
            f"tasks={len(self.tasks)}, target_rows_per_fragment={self.options.target_rows_per_fragment}"
        )
        if not self.tasks:
            yield "  nothing to do"
        yield from (f"  {task}" for task in self.tasks)
        yield from (f"  {line}" for line in self.indices if self.tasks)


def plan_compaction(snapshot: Snapshot, options: CompactionOptions) -> CompactionPlan:
    """Decide the tasks of a compaction. Pure: the manifest is all that is looked at."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    new_file_version(snapshot.manifest, options.data_storage_version)
    _check_deferral(snapshot, options)
    fragments = snapshot.fragments
    chooser = _Chooser(snapshot, options)
    tasks = tuple(_within_limits(chooser.tasks(), options))
    return CompactionPlan(
        uri=snapshot.location.uri,
        read_version=snapshot.version,
        options=options,
        tasks=tasks,
        num_fragments=len(fragments),
        indices=tuple(_index_lines(snapshot, tasks, options)),
    )


def groups_to_compact(snapshot: Snapshot, options: CompactionOptions) -> tuple[Ints, ...]:
    """The fragment ids of the tasks that compactions would have, if none were bounded. Fragments are not decoded."""
    new_file_version(snapshot.manifest, options.data_storage_version)
    return tuple(_Chooser(snapshot, options).ids())


class _Chooser:
    """The runs of one version."""

    def __init__(self, snapshot: Snapshot, options: CompactionOptions) -> None:
        self._snapshot, self._options = snapshot, options
        self._fragments: FragmentList = snapshot.fragments
        self._order: Ints = np.argsort(self._fragments.ids, kind="stable")
        self._ids = self._fragments.ids[self._order].astype(np.int64)
        self._rows = self._fragments.physical_rows[self._order].astype(np.int64)
        self._live = self._fragments.live_rows[self._order].astype(np.int64)
        self._dead_share = dead_column_share(snapshot.schema)
        self._deleted = self._too_many_deletions()

    def tasks(self) -> Iterator[CompactionTask]:
        """All tasks, in the order of fragment ids."""
        return (self._task(low, high) for low, high in self._groups())

    def ids(self) -> Iterator[Ints]:
        """The fragment ids of all tasks, without decoding these fragments."""
        return (self._ids[low:high] for low, high in self._groups())

    def _groups(self) -> Iterator[tuple[int, int]]:
        small = self._rows < self._options.target_rows_per_fragment
        deleted = self._deleted
        excluded = np.isin(self._ids, self._options.excluded_fragment_ids)
        chosen = small | deleted
        chosen[~excluded & ~chosen] = self._each(~excluded & ~chosen)
        chosen &= ~excluded
        for begin, end in self._runs(chosen):
            if end - begin == 1 and not deleted[begin] and not self._has_dead_columns(begin):
                continue
            yield from self._cut(begin, end)

    def _too_many_deletions(self) -> Mask:
        share = (self._rows - self._live) / np.maximum(self._rows, 1)
        return (
            share > self._options.materialize_deletions_threshold if self._options.materialize_deletions else share > 1
        )

    def _each(self, which: Mask) -> list[bool]:
        """Only fragments that nothing else says to rewrite are looked at."""
        return [self._has_dead_columns(place) for place in np.flatnonzero(which).tolist()]

    @cached_property
    def _has_dead_fields(self) -> Mask:
        """Which fragments have files with columns that the table no longer has: only these are decoded."""
        files = files_of(self._fragments)
        known = self._snapshot.schema.ids
        dead = np.array([not known.issuperset(layout.fields) for layout in files.layouts], np.bool_)
        found = np.zeros(len(self._fragments), np.bool_)
        found[files.data_rows[dead[files.data_layouts]]] = True
        return found[self._order]

    def _has_dead_columns(self, place: int) -> bool:
        if not self._has_dead_fields[place]:
            return False
        share = self._dead_share(self._fragment(place))
        return share > self._options.materialize_columns_threshold

    def _fragment(self, place: int) -> Fragment:
        return self._fragments[int(self._order[place])]

    def _runs(self, chosen: Mask) -> Iterator[tuple[int, int]]:
        """Consecutive chosen fragments that the same index segments cover."""
        covered = _coverage_codes(self._ids, self._snapshot)
        edges = np.flatnonzero((chosen[1:] != chosen[:-1]) | (covered[1:] != covered[:-1])) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(chosen)]):
            if begin < end and chosen[begin]:
                yield begin, end

    def _cut(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Parts that reach the target; what would not reach it stays with the part before."""
        before = np.concatenate(([0], np.cumsum(self._live[begin:end])))
        start, last, target = 0, end - begin, self._options.target_rows_per_fragment
        while True:
            full = int(np.searchsorted(before, before[start] + target))
            if full >= last or before[last] - before[full] < target:
                yield begin + start, end
                return
            yield begin + start, begin + full
            start = full

    def _task(self, begin: int, end: int) -> CompactionTask:
        fragments = tuple(self._fragment(place) for place in range(begin, end))
        return CompactionTask(
            fragments=fragments,
            read_version=self._snapshot.version,
            options=self._options,
            reason=_reason(len(fragments), bool(self._deleted[begin:end].any())),
        )


def _reason(fragments: int, deleted: bool) -> str:
    if fragments > 1:
        return "small fragments and deleted rows" if deleted else "small fragments"
    return "deleted rows" if deleted else "dead columns"


def _coverage_codes(ids: Ints, snapshot: Snapshot) -> Ints:
    """A number per fragment: equal where the same index segments cover the fragments."""
    segments = [
        reused_coverage(snapshot, index)
        for index in snapshot.manifest.indices
        if not is_system(index) and index.coverage is not None
    ]
    if not segments:
        return np.zeros(len(ids), np.int64)
    members = np.stack([np.isin(ids, np.fromiter(segment, np.int64)) for segment in segments], axis=1)
    return np.unique(members, axis=0, return_inverse=True)[1].reshape(-1)


def _within_limits(tasks: Iterator[CompactionTask], options: CompactionOptions) -> Iterator[CompactionTask]:
    """Whole tasks until the next one would exceed a limit."""
    measures: tuple[tuple[int | None, Callable[[CompactionTask], int]], ...] = (
        (options.max_source_fragments, lambda task: len(task.fragments)),
        (options.max_source_rows, lambda task: task.live_rows),
        (options.max_source_bytes, lambda task: task.source_bytes),
    )
    used: Counter[int] = Counter()
    for task in tasks:
        used.update({number: measure(task) for number, (_, measure) in enumerate(measures)})
        if any(limit is not None and used[number] > limit for number, (limit, _) in enumerate(measures)):
            return
        yield task


def _index_lines(snapshot: Snapshot, tasks: Sequence[CompactionTask], options: CompactionOptions) -> Iterator[str]:
    """What becomes of each index that covers rewritten fragments."""
    groups = [[fragment.id for fragment in task.fragments] for task in tasks]
    graphs = not_deferrable(snapshot, groups) if options.defer_index_remap else ()
    yield from map(str, index_ways(snapshot, groups, defer=options.defer_index_remap and not graphs))
    if graphs:
        yield not_deferred(graphs)


def _check_deferral(snapshot: Snapshot, options: CompactionOptions) -> None:
    if options.defer_index_remap and snapshot.manifest.stable_row_ids:
        raise InvalidRequest(
            "Cannot compact with defer_index_remap: the dataset uses stable row IDs, and indices that name rows by row "
            "id stay right without it. Leave defer_index_remap out."
        )
