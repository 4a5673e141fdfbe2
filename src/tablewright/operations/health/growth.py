"""What each of the newest versions added, and what of it the measured version no longer reads. Pure.

Tests: ``tests/unit/operations/health/test_history.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from tablewright.format.fragment.entries import FragmentFiles
from tablewright.operations.health.fragments import Floats, FragmentFigures
from tablewright.operations.health.history import Change
from tablewright.operations.health.values import VersionGrowth

__all__ = ["growth_of"]


def growth_of(
    changes: Sequence[Change],
    figures: FragmentFigures,
    files: FragmentFiles,
    live_shares: Floats,
    index_dirs: Set[str],
    listed: Mapping[str, int],
) -> tuple[VersionGrowth, ...]:
    """Growth by version. ``live_shares`` are those of the data files, ``index_dirs`` the indices of the measured
    version; ``listed`` has sizes of deletion files and index directories, what is gone counts as 0 bytes.
    """
    if not changes:
        return ()
    live = dict(zip(files.data_paths, live_shares.tolist(), strict=True))
    needed = index_dirs | set(files.deletion_paths)
    return tuple(_growth(change, figures, live, needed, listed) for change in changes)


def _growth(
    change: Change,
    figures: FragmentFigures,
    live_share: Mapping[str, float],
    needed: Set[str],
    listed: Mapping[str, int],
) -> VersionGrowth:
    order = np.argsort(figures.ids)
    at = np.searchsorted(figures.ids, change.fragment_ids, sorter=order).clip(max=max(0, len(order) - 1))
    live_rows = 0
    if len(order):
        here = order[at]
        live_rows = int(figures.live_rows[here][figures.ids[here] == change.fragment_ids].sum())
    shares = np.array([live_share.get(path, 0.0) for path in change.data_paths], np.float64)
    others = {path: listed.get(path, 0) for path in change.deletion_paths} | change.index_bytes
    others |= {path: listed.get(path, 0) for path, known in change.index_bytes.items() if not known}
    rows = int(change.fragment_rows.sum())
    return VersionGrowth(
        version=change.version,
        operation=change.operation,
        rows_added=rows,
        rows_removed=change.rows_removed,
        bytes_added=int(change.data_bytes.sum()) + sum(others.values()),
        manifest_bytes=change.manifest_bytes,
        rows_dead=rows - live_rows,
        bytes_dead=round(float((change.data_bytes * (1.0 - shares)).sum()))
        + sum(size for path, size in others.items() if path not in needed),
    )
