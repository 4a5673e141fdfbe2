"""What a compaction would do now: the groups of its plan, in figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablewright.operations.health.fragments import FragmentFigures
from tablewright.operations.health.values import CompactionOutlook
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["outlook_of", "planned_groups"]


def planned_groups(snapshot: Snapshot, deletion_limit: float) -> tuple[tuple[int, ...], ...] | None:
    """The ids of the fragments of each group that a compaction would rewrite; ``None`` if that is not known."""
    return None


def outlook_of(groups: Sequence[Sequence[int]], figures: FragmentFigures) -> CompactionOutlook:
    """The figures of a plan: sources are read whole, live rows are written into fragments of the target size."""
    fragments_before = fragments_after = rows = read = freed = 0
    for group in groups:
        chosen = np.isin(figures.ids, np.array(group, np.int64))
        live = int(figures.live_rows[chosen].sum())
        fragments_before += int(chosen.sum())
        fragments_after += -(-live // figures.target_rows)
        rows += live
        read += int(figures.data_bytes[chosen].sum())
        freed += int((figures.dead_row_bytes + figures.dead_column_bytes + figures.deletion_bytes)[chosen].sum())
    return CompactionOutlook(
        tasks=len(groups),
        fragments_before=fragments_before,
        fragments_after=fragments_after,
        rows_written=rows,
        bytes_read=read,
        bytes_freed=freed,
    )
