"""What a compaction would do now: the groups of its plan, in figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.wire import Ints
from tablewright.operations.compact.options import compaction_options
from tablewright.operations.compact.plan import groups_to_compact
from tablewright.operations.health.fragments import FragmentFigures
from tablewright.operations.health.values import CompactionOutlook
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["outlook_of", "planned_groups"]


def planned_groups(snapshot: Snapshot, deletion_limit: float, target_rows: int) -> tuple[Ints, ...] | None:
    """The ids of the fragments of each group that a compaction would rewrite.

    ``None`` if it can't be planned: it does not support the table, or the table's config holds no valid options.
    """
    given = {"materialize_deletions_threshold": deletion_limit, "target_rows_per_fragment": target_rows}
    try:
        return groups_to_compact(snapshot, compaction_options(snapshot.manifest.config, given))
    except (InvalidRequest, UnsupportedFeature):
        return None


def outlook_of(groups: Sequence[Ints], figures: FragmentFigures) -> CompactionOutlook:
    """The figures of a plan: sources are read whole, live rows are written into fragments of the target size."""
    fragments_before = fragments_after = rows = read = freed = 0
    for group in groups:
        chosen = np.isin(figures.ids, group)
        live = int(figures.live_rows[chosen].sum())
        fragments_before += int(chosen.sum())
        fragments_after += max(1, live // figures.target_rows) if live else 0
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
