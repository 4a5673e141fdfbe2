"""Decides how indices catch up with a table: which fragments are read, which segments become one. Pure.

For each index, by name:

1. A segment *covers* the live fragments of its bitmap. Fragments that no segment covers are read.
2. Segments to be merged: all of them, or the newest ``num_indices_to_merge``; 0 adds a segment for the new fragments.
   Their entries are kept as far as their rows are live where the segment covers them, so entries of deleted rows go.
3. *Stale entries.* Readers of other clients count a hit of one segment in fragments of all segments. So where an older
   segment may hold entries of rows that are in the new fragments, all segments are merged: always if it stores stable
   row ids, since a row that was updated keeps its id in another fragment; else if a new fragment is older than the
   segment, or has columns that were rewritten in place.
4. Segments that hold addresses on a table with stable row ids (BTREE of pylance) are not kept: their fragments are read
   again, and the new segment stores row ids, which a compaction leaves alone.
5. Segments whose files hold addresses from before a deferred compaction are merged even if nothing is new.

Indices of kinds that are not built here are left alone, and so are those on fields that are gone.

Format: ``docs/format/indices.md#segments``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyroaring import FrozenBitMap

from tablewright.checks import check_flag, check_text, listed, whole_number
from tablewright.errors import IndexNotFound
from tablewright.format.flags import check_writable
from tablewright.format.fragment import TOMBSTONE, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import IndexKind, is_system, kind_of, stores_row_ids
from tablewright.indices.registry import offered
from tablewright.indices.reuse import is_behind, live_ids, reused_coverage
from tablewright.operations.create_index.segment import IndexPlan, KeptSegment, SegmentPlan, plain_type
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["OptimizeOptions", "plan_optimize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOptions:
    """Which indices (``None``: all), how many of their newest segments are merged (``None``: all), and whether they
    are built again from the table.
    """

    index_names: tuple[str, ...] | None = None
    num_indices_to_merge: int | None = None
    retrain: bool = False

    def __post_init__(self) -> None:
        if self.index_names is not None:
            for name in listed(self.index_names, "index_names"):
                check_text(name, "each of index_names")
        if self.num_indices_to_merge is not None:
            whole_number(self.num_indices_to_merge, "num_indices_to_merge")
        check_flag(self.retrain, "retrain")


def plan_optimize(snapshot: Snapshot, options: OptimizeOptions) -> IndexPlan:
    """The segments to be written; none where nothing is to be done."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        if not is_system(index):
            by_name.setdefault(index.name, []).append(index)
    names = list(by_name) if options.index_names is None else list(dict.fromkeys(options.index_names))
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise IndexNotFound(unknown[0], tuple(sorted(by_name)))
    segments: list[SegmentPlan] = []
    left: dict[str, str] = {}
    for name in names:
        decided = _decide(snapshot, name, by_name[name], options)
        if isinstance(decided, str):
            left[name] = decided
        elif decided is not None:
            segments.append(decided)
    return IndexPlan(segments=tuple(segments), left_alone=left)


def _decide(
    snapshot: Snapshot, name: str, entries: Sequence[IndexMetadata], options: OptimizeOptions
) -> SegmentPlan | str | None:
    """The segment to be written for one index; a text says why it is left alone, ``None`` that it is up to date."""
    kind = _kind(entries)
    if isinstance(kind, str):
        return kind
    fields = entries[0].fields
    if len(fields) != 1 or any(entry.fields != fields for entry in entries):
        return f"it is on the fields {sorted({id for entry in entries for id in entry.fields})} together"
    if not snapshot.schema.has(fields[0]):
        return "its column is gone"
    return _Index(snapshot, name, kind, fields[0], entries).plan(options)


def _kind(entries: Sequence[IndexMetadata]) -> IndexKind | str:
    kinds = {None if (kind := kind_of(entry)) is None else kind.name for entry in entries}
    kind = kind_of(entries[0])
    if kind is None or len(kinds) > 1 or offered(kind).build is None:
        shown = ", ".join(sorted(name or "unknown" for name in kinds))
        return f"indices of type {shown} are not built by this release: pylance's optimize_indices() does them"
    if any((entry.index_version or 0) > kind.version_max for entry in entries):
        return f"it was written by a newer release ({kind.name} version {entries[0].index_version})"
    return kind


@dataclass(frozen=True, eq=False)
class _Index:
    """One index: its segments in the order of the manifest, oldest first."""

    snapshot: Snapshot
    name: str
    kind: IndexKind
    field_id: int
    entries: Sequence[IndexMetadata]

    def plan(self, options: OptimizeOptions) -> SegmentPlan | None:
        covered = [reused_coverage(self.snapshot, entry) for entry in self.entries]
        new = live_ids(self.snapshot).difference(*covered) if covered else live_ids(self.snapshot)
        if options.retrain:
            return self._segment(list(self.entries), [], live_ids(self.snapshot), "retrain=True")
        count = len(self.entries) if options.num_indices_to_merge is None else options.num_indices_to_merge
        merged = list(range(max(0, len(self.entries) - count), len(self.entries)))
        reason = f"{len(new)} fragments are not indexed"
        if new and self._may_hold(merged, covered, new):
            merged = list(range(len(self.entries)))
            reason += ", and older segments may hold other values of their rows"
        behind = [place for place, entry in enumerate(self.entries) if is_behind(self.snapshot, entry)]
        if behind:
            merged = sorted({*merged, *behind})
            reason = f"{len(behind)} segments hold addresses from before a deferred compaction"
        if not new and not behind:
            if len(merged) < 2:
                return None
            reason = f"{len(merged)} segments become one"
        merged = sorted({*merged, *(place for place, ids in enumerate(covered) if not ids)})
        return self._merge(merged, covered, new, reason)

    def _merge(self, merged: list[int], covered: list[FrozenBitMap], new: FrozenBitMap, reason: str) -> SegmentPlan:
        kept, read, claimed = list[KeptSegment](), new, FrozenBitMap()
        for place in merged:
            mine = covered[place] - claimed  # segments of other clients may overlap
            claimed |= mine
            if self._keeps(self.entries[place], mine):
                kept.append(KeptSegment(index=self.entries[place], fragment_ids=mine))
            else:
                read |= mine
        return self._segment([self.entries[place] for place in merged], kept, read, reason)

    def _keeps(self, entry: IndexMetadata, covered: FrozenBitMap) -> bool:
        """Whether entries can be taken from the segment's files."""
        if not covered:
            return False
        if self.kind.zones:  # zones are ranges of physical rows, so they are kept where nothing moved
            return not is_behind(self.snapshot, entry)
        return not self.snapshot.manifest.stable_row_ids or stores_row_ids(entry)

    def _segment(
        self, removed: list[IndexMetadata], kept: list[KeptSegment], read: FrozenBitMap, reason: str
    ) -> SegmentPlan:
        schema, fragments = self.snapshot.schema, self.snapshot.fragments
        above = (*schema.ancestors(self.field_id), self.field_id)
        return SegmentPlan(
            name=self.name,
            kind=self.kind,
            field_id=self.field_id,
            path=tuple(schema.by_id(id).name for id in above),
            type=plain_type(schema, self.field_id),
            read=FragmentList.of(fragments.by_id(id) for id in read),
            kept=tuple(kept),
            removed=tuple(removed),
            settings_of=self.entries[-1],
            reason=reason,
        )

    def _may_hold(self, merged: list[int], covered: list[FrozenBitMap], new: FrozenBitMap) -> bool:
        """Whether a segment that is not merged may have entries of rows that are in the new fragments."""
        others = [place for place in range(len(self.entries)) if place not in merged and covered[place]]
        if not others:
            return False
        if self.snapshot.manifest.stable_row_ids and not self.kind.zones:
            return True
        highest = max(max(self.entries[place].coverage or (0,)) for place in others)
        return min(new) < highest or any(_is_rewritten(self.snapshot, id) for id in new)


def _is_rewritten(snapshot: Snapshot, fragment_id: int) -> bool:
    """Whether columns of a fragment were rewritten in place."""
    return any(TOMBSTONE in file.fields for file in snapshot.fragments.by_id(fragment_id).files)
