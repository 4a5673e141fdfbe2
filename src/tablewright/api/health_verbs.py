"""The state of a table as ``LanceDataset`` offers it: health for operators, statistics as pylance has them.

Tests: ``tests/unit/api/test_health_verbs.py``, ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

from tablewright.api.pinned import Pinned
from tablewright.api.stats import LanceStats
from tablewright.operations.health import HealthOptions, TableHealth, measure_health

__all__ = ["HealthVerbs"]


class HealthVerbs(Pinned):
    """The part of a dataset that says how the table is."""

    @property
    def stats(self) -> LanceStats:
        """Statistics: ``dataset_stats``, ``data_stats``, ``index_stats``."""
        return LanceStats(self._table.snapshot)

    def health(
        self,
        *,
        workload: str = "mixed",
        target_rows_per_fragment: int | None = None,
        versions: int = 10,
        sample: bool = True,
        sample_rows: int = 1_000_000,
        sample_seconds: float = 2.0,
    ) -> TableHealth:
        """What deletions, small fragments, old versions and indices cost, and what to do about it.

        ``workload`` sets the share of deleted rows from which a fragment should be compacted: ``"read"`` 5 %,
        ``"mixed"`` 10 %, ``"write"`` 20 %. ``versions`` bounds how many of the newest versions are compared for
        growth. ``sample`` measures what deletion vectors cost a scan, within ``sample_rows`` and ``sample_seconds``.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(1000)}, "memory://health-example")
        >>> _ = ds.delete("id < 30")
        >>> health = ds.health(workload="read")
        >>> health.rows.deleted, health.rows.deleted_share, health.actions()
        (30, 0.03, ())
        """
        options = HealthOptions(
            workload=workload,
            target_rows_per_fragment=target_rows_per_fragment,
            versions=versions,
            sample=sample,
            sample_rows=sample_rows,
            sample_seconds=sample_seconds,
        )
        return measure_health(self._table.snapshot, options)
