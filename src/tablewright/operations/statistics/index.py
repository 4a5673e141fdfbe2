"""Statistics of an index as pylance has them: what it covers, and what its files say.

Keys are pylance's, ``num_indices`` and ``indices`` stand for segments under their old names. A segment that covers no
fragment was never trained; its kind is ``N/A``, as pylance has it.

Tests: ``tests/unit/api/test_health_verbs.py``, ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tablewright.checks import check_text
from tablewright.errors import CorruptTable, IndexNotFound
from tablewright.format.index import IndexMetadata
from tablewright.operations.describe import index_kind
from tablewright.operations.health.indices import covered_by, segments_by_name
from tablewright.operations.statistics.scalar import SCALAR_KINDS
from tablewright.operations.statistics.segment import Segment
from tablewright.operations.statistics.vector import vector_statistics
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound

__all__ = ["index_statistics"]

_UNTRAINED = "N/A"


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """The statistics of the index ``name``; :class:`IndexNotFound` if there is none."""
    check_text(name, "index_name")
    by_name = segments_by_name(snapshot)
    if name not in by_name:
        raise IndexNotFound(name, tuple(sorted(by_name)))
    segments = by_name[name]
    ids, live_rows = snapshot.fragments.ids.astype(np.int64), snapshot.fragments.live_rows
    masks = [covered_by(snapshot, segment, ids)[0] for segment in segments]
    covered = np.logical_or.reduce(masks)
    found = [_segment(snapshot, segment) for segment in segments]
    details = [each for _, each in found]
    times = [segment.created_at_ms for segment in segments if segment.created_at_ms is not None]
    return {
        "index_type": next((kind for kind, _ in found if kind != _UNTRAINED), _UNTRAINED),
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": details,
        "segments": details,
        "num_indexed_fragments": int(covered.sum()),
        "num_indexed_rows": int(live_rows[covered].sum()),
        "num_unindexed_fragments": int((~covered).sum()),
        "num_unindexed_rows": int(live_rows[~covered].sum()),
        "num_indexed_rows_per_delta": [int(live_rows[mask].sum()) for mask in masks],
        "updated_at_timestamp_ms": max(times, default=None),
    }


def _segment(snapshot: Snapshot, metadata: IndexMetadata) -> tuple[str, dict[str, Any]]:
    """Kind and details of one segment."""
    if not metadata.coverage:
        return _UNTRAINED, {}
    kind = index_kind(metadata)
    store, directory = snapshot.index_place(metadata)
    segment = Segment(store, directory, metadata)
    read = SCALAR_KINDS.get(kind)
    try:
        if read is not None:
            return kind, read(segment)
        if segment.has("index.idx"):
            details = vector_statistics(segment)
            return str(details["index_type"]), details
    except ObjectNotFound as error:
        raise CorruptTable(snapshot.file.path, (f"a file of the index {metadata.name} is missing: {error}",)) from None
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptTable(directory, (f"the files of the index {metadata.name} can't be read: {error!r}",)) from None
    return kind, {}
