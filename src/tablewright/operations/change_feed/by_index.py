"""Rows of a change feed that an index rules out are not read.

A filter of the feed is asked of the indices of the version that the rows are read from, if its columns are the same as
in the feed. The rows that are left are judged by the filter as always, since the feed's own columns may be in it.

Tests: ``tests/unit/operations/change_feed/test_by_index.py``, ``tests/differential/indices/test_filters.py``.
"""

from __future__ import annotations

import numpy as np

from tablewright.expressions.filters import Predicate
from tablewright.format.schema import Schema
from tablewright.operations.change_feed.runs import Picks
from tablewright.reading.index_costs import ScanCost
from tablewright.reading.index_use import IndexUse, plan_index_use
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["cost_of_picks", "feed_index_use", "without_ruled_out"]


def feed_index_use(
    source: Snapshot, feed: Schema, predicate: Predicate, picks: Picks, use_scalar_index: bool | None
) -> IndexUse | None:
    """The indices that may rule out rows of a version; ``None`` if there are none."""
    ids = source.fragments.ids[np.unique(picks.fragments)]
    return plan_index_use(source, predicate, feed, ids, use_scalar_index)


def cost_of_picks(picks: Picks, row_bytes: int) -> ScanCost:
    """What reading all of the rows costs."""
    rows = picks.total_rows
    return ScanCost(rows=rows, nbytes=rows * row_bytes, counts_only=True)


def without_ruled_out(source: Snapshot, use: IndexUse, picks: Picks, row_bytes: int) -> Picks:
    """The picks without the rows that can't match, if asking the indices costs less than reading them."""
    answer = use.ask(cost_of_picks(picks, row_bytes))
    if answer is None:
        return picks
    kept = []
    for position, own in picks.by_fragment():
        fragment_id = int(source.fragments.ids[position])
        if fragment_id not in answer.known:
            kept.append(own)
        elif fragment_id in answer.rows:
            kept.append(own.where(answer.rows[fragment_id].contains(own.row_offsets())))
    return Picks.joined(kept)
