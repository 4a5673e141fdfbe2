"""A read as a message: where the table is, some fragments, what to read of them and what to return.

It is self-contained and travels to workers; :attr:`ScanTask.tasks` splits it into parts of about equal size. Limit,
offset and ordering are not in it, since no worker can know them.

Tests: ``tests/unit/operations/test_scan.py``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tablewright.data.shape import ReadShape
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.manifest import BasePath
from tablewright.format.wire import Ints
from tablewright.reading.chosen import ChosenRows
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.index_costs import ScanCost
from tablewright.reading.index_use import IndexUse, plan_index_use
from tablewright.snapshot.snapshot import Snapshot

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "ScanTask",
    "bytes_of_each",
    "choose_fragments",
    "default_batch_size",
    "narrowed",
    "row_counts",
    "scan_task",
    "with_ids",
    "with_index",
]

DEFAULT_BATCH_SIZE = 8192
_TASK_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some fragments of a version, and what to read of them. ``str(task)`` explains it.

    ``first_rows`` are the positions of each fragment's first live row in the table, for ``_rowoffset``. Of fragments in
    ``chosen`` only these rows are looked at. ``index`` is what may choose them, before there are tasks
    (:func:`narrowed`); ``scan_cost`` is what it is compared with. Neither travels.
    """

    uri: str
    version: int
    base_paths: tuple[BasePath, ...]
    fragments: Sequence[Fragment]
    first_rows: tuple[int, ...]
    reads: ReadPlan
    batch_size: int
    chosen: Mapping[int, ChosenRows] = field(default_factory=dict)
    index: IndexUse | None = field(default=None, compare=False, repr=False)
    scan_cost: ScanCost | None = field(default=None, compare=False, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self.reads.selection.schema

    @property
    def fragment_ids(self) -> list[int]:
        """The ids of the fragments, in order."""
        if isinstance(self.fragments, FragmentList):
            return [*map(int, self.fragments.ids.tolist())]
        return [fragment.id for fragment in self.fragments]

    @property
    def estimated_bytes(self) -> int:
        """About how much will be read into memory."""
        return int(self._bytes_of_each().sum())

    @property
    def tasks(self) -> tuple[ScanTask, ...]:
        """The same read in parts of one or more fragments, some 64 MiB each."""
        return tuple(self.split(_TASK_BYTES))

    def split(self, bytes_per_task: int) -> Iterator[ScanTask]:
        """Parts of one or more fragments, each closed as soon as it has this many bytes."""
        sums = np.cumsum(self._bytes_of_each())
        begin, count = 0, len(self.fragments)
        while begin < count:
            done = int(sums[begin - 1]) if begin else 0
            end = min(count, int(np.searchsorted(sums, done + bytes_per_task)) + 1)
            if end - begin == count:
                yield self if self.index is None else replace(self, index=None, scan_cost=None)
            else:
                yield self._part(begin, end)
            begin = end

    def _part(self, begin: int, end: int) -> ScanTask:
        part = replace(
            self,
            fragments=self.fragments[begin:end],
            first_rows=self.first_rows[begin:end],
            index=None,
            scan_cost=None,
        )
        if not self.chosen:
            return part
        return replace(part, chosen={id: self.chosen[id] for id in part.fragment_ids if id in self.chosen})

    def _bytes_of_each(self) -> Ints:
        size = bytes_of_each(self.fragments, self.reads.shapes())
        if self.chosen:
            every = rows_of_each(self.fragments)
            some = [len(self.chosen[id].rows) if id in self.chosen else -1 for id in self.fragment_ids]
            left = np.where(np.array(some) < 0, every, some)
            size = (size * (left / np.maximum(every, 1))).astype(np.int64)
        return size

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        reads = self.reads
        rows, live = row_counts(self.fragments)
        if reads.rest.names:
            yield f"Take: columns=[{', '.join(reads.rest.names)}] of matching rows"
        if reads.predicate is not None:
            yield f"Filter: {reads.predicate.text}"
        if self.index is not None and self.scan_cost is not None:
            yield self.index.explain(self.scan_cost)
        yield (
            f"LanceRead: uri={self.uri}, version={self.version}, "
            f"projection=[{', '.join(reads.first.names)}], num_fragments={len(self.fragments)}, "
            f"rows={live}, deleted_rows={rows - live}, batch_size={self.batch_size}"
        )


def scan_task(
    snapshot: Snapshot,
    reads: ReadPlan,
    fragments: Sequence[Fragment] | None = None,
    first_rows: tuple[int, ...] = (),
    batch_size: int | None = None,
) -> ScanTask:
    """A read of some fragments of a version, or of all of them."""
    if fragments is None:
        fragments, first_rows = choose_fragments(snapshot, None)
    return ScanTask(
        uri=snapshot.location.uri,
        version=snapshot.version,
        base_paths=snapshot.manifest.base_paths,
        fragments=fragments,
        first_rows=first_rows,
        reads=reads,
        batch_size=default_batch_size() if batch_size is None else batch_size,
    )


def with_index(
    task: ScanTask,
    snapshot: Snapshot,
    use_scalar_index: bool | None = None,
    *,
    counts_only: bool = False,
    rows_wanted: int | None = None,
) -> ScanTask:
    """The same read with the indices that could find its rows. ``None`` asks them where that is cheaper."""
    reads = task.reads
    if reads.include_deleted:
        return task
    ids = np.asarray(task.fragment_ids, np.int64)
    use = plan_index_use(snapshot, reads.predicate, reads.filtered or reads.table, ids, use_scalar_index)
    if use is None:
        return task
    covered = use.known
    known = slice(None) if len(covered) == len(ids) else np.isin(ids, np.array(covered, np.int64))
    cost = ScanCost(
        rows=int(rows_of_each(task.fragments)[known].sum()),
        nbytes=int(bytes_of_each(task.fragments, reads.shapes()[:1])[known].sum()),
        counts_only=counts_only,
        rows_wanted=rows_wanted,
        takes_matches=bool(reads.rest.names),
    )
    return replace(task, index=use, scan_cost=cost)


def narrowed(task: ScanTask, *, counts_only: bool = False) -> ScanTask:
    """The read of those rows that indices leave, if they are asked: fragments without any are not read.

    This is the moment when indices are read. A fragment of which most rows may match is scanned as a whole.
    """
    if task.index is None or task.scan_cost is None:
        return task
    cost = replace(task.scan_cost, counts_only=True) if counts_only else task.scan_cost
    answer = task.index.ask(cost)
    plain = replace(task, index=None, scan_cost=None)
    if answer is None:
        return plain
    ids = task.fragment_ids
    places = [place for place, id in enumerate(ids) if id not in answer.known or id in answer.rows]
    fragments = task.fragments
    kept = fragments.at(places) if isinstance(fragments, FragmentList) else tuple(fragments[place] for place in places)
    chosen = {id: ChosenRows(rows, id in answer.exact) for id, rows in answer.rows.items()}
    return replace(plain, fragments=kept, first_rows=tuple(task.first_rows[place] for place in places), chosen=chosen)


def choose_fragments(snapshot: Snapshot, ids: Sequence[int] | None) -> tuple[Sequence[Fragment], tuple[int, ...]]:
    """The fragments with these ids, in this order (all without ids), and where each one's live rows begin."""
    every = snapshot.fragments
    starts = every.first_rows
    if ids is None:
        return every, tuple(starts.tolist())
    position = {int(fragment_id): index for index, fragment_id in enumerate(every.ids)}
    unknown = [fragment_id for fragment_id in ids if fragment_id not in position]
    if unknown:
        raise InvalidRequest(f"Version {snapshot.version} has no fragments {unknown}.")
    chosen = [position[fragment_id] for fragment_id in ids]
    fragments = every.at(chosen) if len(set(chosen)) == len(chosen) else tuple(every[index] for index in chosen)
    return fragments, tuple(int(starts[index]) for index in chosen)


def with_ids(fragments: Sequence[Fragment], ids: Collection[int]) -> list[Fragment]:
    """Those of the fragments that have one of these ids, in order; the others of a list are not decoded."""
    if isinstance(fragments, FragmentList):
        places = fragments.positions(tuple(ids))
        return [fragments[place] for place in np.sort(places[places >= 0]).tolist()]
    return [fragment for fragment in fragments if fragment.id in ids]


def default_batch_size() -> int:
    """The rows of a batch if the caller does not say: what the environment says, else :data:`DEFAULT_BATCH_SIZE`."""
    text = os.environ.get("LANCE_DEFAULT_BATCH_SIZE", "")
    return int(text) if text.isdecimal() and int(text) > 0 else DEFAULT_BATCH_SIZE


def row_counts(fragments: Sequence[Fragment]) -> tuple[int, int]:
    """Physical and live rows; a whole table's are known without decoding its fragments."""
    if isinstance(fragments, FragmentList):
        return int(fragments.physical_rows.sum()), fragments.total_live_rows
    return sum(each.physical_rows for each in fragments), sum(each.live_rows for each in fragments)


def rows_of_each(fragments: Sequence[Fragment]) -> Ints:
    """The physical rows of each fragment."""
    if isinstance(fragments, FragmentList):
        return fragments.physical_rows.astype(np.int64)
    return np.array([fragment.physical_rows for fragment in fragments], np.int64)


def bytes_of_each(fragments: Sequence[Fragment], shapes: Sequence[ReadShape]) -> Ints:
    """About how many bytes are read of each fragment."""
    if isinstance(fragments, FragmentList):
        rows = fragments.physical_rows.astype(np.int64)
        widths = [shape.sizes.bytes_per_row_of_each(fragments) for shape in shapes]
        return np.multiply(rows, sum(widths[1:], widths[0]))
    each = [
        fragment.physical_rows * sum(shape.sizes.bytes_per_row(fragment) for shape in shapes) for fragment in fragments
    ]
    return np.array(each, np.int64)
