"""What each index covers, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import is_system
from tablewright.format.wire import Bools, Ints
from tablewright.indices.reuse import is_behind, live_ids, reuse_history, reused_coverage
from tablewright.operations.describe import describe_field, index_kind
from tablewright.operations.health.values import IndexHealth
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["covered_by", "index_bytes", "indices_of", "segments_by_name"]


def segments_by_name(snapshot: Snapshot) -> dict[str, list[IndexMetadata]]:
    """The segments of each index, in the order of the manifest."""
    found: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        found.setdefault(index.name, []).append(index)
    return found


def covered_by(snapshot: Snapshot, index: IndexMetadata, ids: Ints) -> tuple[Bools, int]:
    """Which of these fragments a segment covers, and how many of those that it was built on are gone.

    Fragments of a deferred compaction count as those that they became.
    """
    named = reuse_history(snapshot).coverage(index.coverage or ())
    if not named:
        return np.zeros(len(ids), np.bool_), 0
    mask = np.isin(ids, np.array(reused_coverage(snapshot, index), np.int64))
    return mask, len(named - live_ids(snapshot))


def indices_of(snapshot: Snapshot, ids: Ints, live_rows: Ints, listed: Mapping[str, int]) -> tuple[IndexHealth, ...]:
    """Every index by name; ``listed`` has the bytes of index directories of the table's own."""
    return tuple(
        _index(snapshot, name, segments, ids, live_rows, listed)
        for name, segments in segments_by_name(snapshot).items()
    )


def _index(
    snapshot: Snapshot,
    name: str,
    segments: list[IndexMetadata],
    ids: Ints,
    live_rows: Ints,
    listed: Mapping[str, int],
) -> IndexHealth:
    parts = [covered_by(snapshot, segment, ids) for segment in segments]
    covered = np.logical_or.reduce([mask for mask, _ in parts])
    return IndexHealth(
        name=name,
        kind=index_kind(segments[0]),
        columns=tuple(describe_field(snapshot.schema, field_id) for field_id in segments[0].fields),
        segments=len(segments),
        bytes=sum(index_bytes(snapshot, segment, listed) for segment in segments),
        indexed_rows=int(live_rows[covered].sum()),
        unindexed_rows=int(live_rows[~covered].sum()),
        unindexed_fragments=int((~covered).sum()),
        stale_fragments=sum(gone for _, gone in parts),
        deferred_segments=sum(not is_system(each) and is_behind(snapshot, each) for each in segments),
    )


def index_bytes(snapshot: Snapshot, segment: IndexMetadata, listed: Mapping[str, int]) -> int:
    """Bytes of a segment's files: as recorded, else as listed."""
    if segment.files:
        return sum(file.size_bytes for file in segment.files)
    store, directory = snapshot.index_place(segment)
    if segment.base_id is None:
        return listed.get(directory, 0)
    return sum(info.size for info in store.list(directory))
