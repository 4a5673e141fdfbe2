"""The change feed as a plan: which versions are compared, and which rows of which fragments are read for it.

Both forms compare pairs of versions (:mod:`.pairs`). *Per version* there is a pair for each commit of the span, and a
row that changed twice is there twice. *Net* there is one pair, the ends of the span, and each row is there at most once
(twice if it was updated: before and after); nothing between the ends has to exist. What differs becomes tasks:
pictures from before first, then those from after, each by fragment.

So rows that only moved (compaction), indices and settings leave no trace. A version that was restored differs from
the one before it in whatever rows differ; one that was overwritten, in all.

Tests: ``tests/unit/operations/change_feed/test_task.py``, ``tests/unit/api/test_changes_feed.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablewright.checks import check_flag, listed, whole_number
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Filter, Predicate, compile_filter
from tablewright.format.blobs import as_descriptions
from tablewright.format.schema import Schema
from tablewright.operations.change_feed.by_index import cost_of_picks, feed_index_use, without_ruled_out
from tablewright.operations.change_feed.columns import new_ids, nullable_schema, shared_ids, side_schema
from tablewright.operations.change_feed.fields import FieldHistory
from tablewright.operations.change_feed.limits import DEFAULT_FEED_LIMITS, FeedLimits
from tablewright.operations.change_feed.pairs import compare_versions
from tablewright.operations.change_feed.runs import Picks
from tablewright.operations.change_feed.span import check_span, open_at, open_pairs, require_ids, require_versions
from tablewright.operations.change_feed.task import FEED_COLUMNS, ChangeTask, FeedRows, Picked, SideReads
from tablewright.reading.index_use import IndexUse
from tablewright.reading.projection import Output, Selection, select_columns
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["DEFAULT_BATCH_SIZE", "FeedOptions", "FeedPlan", "plan_changes"]

DEFAULT_BATCH_SIZE = 8192

_Fields = tuple[Schema, frozenset[int], dict[int, int]]
"""The fields of a version: those that only share an id with one of the feed, and those that became one by casts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """What a caller may ask of a feed. ``from_version`` is exclusive, ``to_version`` inclusive."""

    from_version: int
    to_version: int
    columns: Sequence[str] | Mapping[str, str] | None = None
    filter: Filter | None = None
    net: bool = False
    batch_size: int = DEFAULT_BATCH_SIZE
    use_scalar_index: bool | None = None

    def __post_init__(self) -> None:
        check_span(self.from_version, self.to_version)
        check_flag(self.net, "net")
        whole_number(self.batch_size, "batch_size", minimum=1)


@dataclass(frozen=True, kw_only=True)
class FeedPlan:
    """A decided feed. Pairs of versions are compared when they are needed. ``explain`` prints all of it."""

    begin: Snapshot | None
    end: Snapshot
    options: FeedOptions
    feed: Schema
    rows: FeedRows
    fields: FieldHistory
    limits: FeedLimits = DEFAULT_FEED_LIMITS
    _sides: list[tuple[_Fields, SideReads]] = field(default_factory=list, init=False, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self.rows.selection.schema

    def pairs(self) -> Iterator[tuple[Snapshot | None, Snapshot]]:
        """The versions to compare, in order."""
        begin = self.options.from_version
        if begin == self.options.to_version:
            return iter(())
        return iter([(self.begin, self.end)]) if self.options.net else open_pairs(self.begin, self.end, begin)

    def tasks(self) -> Iterator[ChangeTask]:
        """All tasks, in order: version by version, rows as they were before and then as they are after."""
        for before, after in self.pairs():
            changes = compare_versions(before, after, self.limits)
            if before is not None:
                yield from self._tasks_of(before, after, changes.before)
            yield from self._tasks_of(after, after, changes.after)

    def explain(self) -> Iterator[str]:
        """What the feed will do, line by line. It compares all versions, but reads no rows."""
        options = self.options
        form = "net" if options.net else "per version"
        columns = ", ".join(name for name in self.schema.names if name not in FEED_COLUMNS)
        versions = f"({options.from_version}, {options.to_version}]"
        yield f"ChangeFeed: uri={self.end.location.uri}, versions={versions}, {form}"
        yield f"  columns=[{columns}]"
        if self.rows.predicate is not None:
            yield f"  filter={self.rows.predicate.text}"
        for before, after in self.pairs():
            changes = compare_versions(before, after, self.limits)
            yield f"  {changes}"
            for source, picks in ((before, changes.before), (after, changes.after)):
                use = None if source is None or not picks.total_rows else self._index_use(source, picks)
                if source is not None and use is not None:
                    yield f"    {use.explain(cost_of_picks(picks, self._row_bytes(source)))}"

    def _tasks_of(self, source: Snapshot, commit: Snapshot, picks: Picks) -> Iterator[ChangeTask]:
        """Rows of one version as tasks of some 64 MiB."""
        if not picks.total_rows:
            return
        reads = self._reads(source)
        sizes = reads.plan.shapes()[1].sizes
        use = self._index_use(source, picks)
        if use is not None:
            picks = without_ruled_out(source, use, picks, self._row_bytes(source))
        waiting: list[Picked] = []
        size = 0
        for position, chosen in picks.by_fragment():
            fragment = replace(source.fragments[position], row_ids=None, deletion=None)
            waiting.append(Picked(fragment=fragment, picks=chosen))
            size += chosen.total_rows * sizes.bytes_per_row(fragment)
            if size >= self.limits.task_bytes:
                yield self._task(source, commit, waiting, reads)
                waiting, size = [], 0
        if waiting:
            yield self._task(source, commit, waiting, reads)

    def _task(self, source: Snapshot, commit: Snapshot, picked: list[Picked], reads: SideReads) -> ChangeTask:
        return ChangeTask(
            base_paths=source.manifest.base_paths,
            version=source.version,
            picked=tuple(picked),
            reads=reads,
            rows=self.rows,
            rows_at_a_time=self.limits.rows_at_a_time,
            commit_version=commit.version,
            commit_timestamp_us=commit.manifest.timestamp_ns // 1000,
        )

    def _index_use(self, source: Snapshot, picks: Picks) -> IndexUse | None:
        """The indices of a version that know the filter's columns, which are those of the feed."""
        last, predicate = self.end.schema, self.rows.predicate
        if predicate is None or source.schema != last or any(name in FEED_COLUMNS for name in last.names):
            return None
        if self.fields.different(source, shared_ids(source.schema, last)):
            return None
        return feed_index_use(source, as_descriptions(last), predicate, picks, self.options.use_scalar_index)

    def _row_bytes(self, source: Snapshot) -> int:
        return self._reads(source).plan.shapes()[1].sizes.bytes_per_row(source.fragments[0])

    def _reads(self, source: Snapshot) -> SideReads:
        """How rows of a version are read; versions with the same fields share it."""
        last = self.end.schema
        others = self.fields.different(source, shared_ids(source.schema, last))
        origins = self.fields.origins(source, new_ids(source.schema, last, others))
        fields = (source.schema, others, origins)
        for known, reads in self._sides:
            if known == fields:
                return reads
        side = side_schema(as_descriptions(source.schema), self.feed, others, origins)
        reads = SideReads.of(side, self.feed, self.rows.paths)
        self._sides.append((fields, reads))
        return reads


def plan_changes(snapshot: Snapshot, options: FeedOptions) -> FeedPlan:
    """Decide a feed over versions of the table that ``snapshot`` is one of. What can't work fails here."""
    if not options.net:
        require_versions(snapshot, options.from_version, options.to_version)
    end = open_at(snapshot, options.to_version) or require_ids(snapshot)
    begin = open_at(snapshot, options.from_version)
    feed = nullable_schema(as_descriptions(end.schema))
    now_ns = snapshot.world.clock.now_ns()
    rows = FeedRows(
        selection=_selection(feed, options.columns, now_ns),
        predicate=None if options.filter is None else _predicate(feed, options.filter, now_ns),
        batch_size=options.batch_size,
    )
    if any(path[0] == "_rowoffset" for path in rows.paths):
        raise InvalidRequest("Invalid user input: rows of a feed have no _rowoffset: they are of several versions.")
    fields = FieldHistory(options.from_version, end)
    return FeedPlan(begin=begin, end=end, options=options, feed=feed, rows=rows, fields=fields)


def _selection(feed: Schema, columns: Sequence[str] | Mapping[str, str] | None, now_ns: int) -> Selection:
    """The columns that were asked for, and after them those of the feed."""
    if columns is not None and not isinstance(columns, Mapping | str):
        columns = [name for name in listed(columns, "columns") if name not in FEED_COLUMNS]
    chosen = select_columns(feed, columns, now_ns=now_ns)
    taken = [output.name for output in chosen.outputs if output.name in FEED_COLUMNS]
    if taken:
        raise InvalidRequest(
            f"Invalid user input: the feed has a column {taken[0]} of its own. Choose others with columns=, "
            "or rename yours."
        )
    outputs = tuple(Output(name=name, path=(name,)) for name in FEED_COLUMNS)
    fields = [pa.field(name, kind) for name, kind in FEED_COLUMNS.items()]
    return Selection(
        outputs=(*chosen.outputs, *outputs),
        schema=pa.schema([*chosen.schema, *fields], metadata=chosen.schema.metadata),
        paths=(*chosen.paths, *((name,) for name in FEED_COLUMNS)),
    )


def _predicate(feed: Schema, filter: Filter, now_ns: int) -> Predicate:
    """The filter over whole rows of the feed: the table's columns, and what the feed says about them."""
    own = [each for each in feed.to_arrow() if each.name not in FEED_COLUMNS]
    added = [pa.field(name, kind) for name, kind in FEED_COLUMNS.items()]
    return compile_filter(filter, pa.schema([*own, *added]), now_ns=now_ns)
