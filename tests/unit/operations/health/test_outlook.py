"""A plan of groups in figures."""

from __future__ import annotations

import numpy as np

from tablewright.operations.health.fragments import FragmentFigures
from tablewright.operations.health.outlook import outlook_of
from tablewright.operations.health.values import CompactionOutlook


def test_groups_become_figures() -> None:
    figures = FragmentFigures(
        ids=np.array([4, 7, 9]),
        physical_rows=np.array([10, 10, 10]),
        deleted_rows=np.array([5, 0, 1]),
        data_files=np.array([1, 1, 1]),
        data_bytes=np.array([100, 200, 300]),
        deletion_bytes=np.array([8, 0, 8]),
        dead_row_bytes=np.array([50, 0, 30]),
        dead_column_bytes=np.array([0, 20, 0]),
        target_rows=10,
    )
    assert outlook_of([np.array([4, 7])], figures) == CompactionOutlook(
        tasks=1, fragments_before=2, fragments_after=1, rows_written=15, bytes_read=300, bytes_freed=78
    )
    assert outlook_of([], figures) == CompactionOutlook(
        tasks=0, fragments_before=0, fragments_after=0, rows_written=0, bytes_read=0, bytes_freed=0
    )
