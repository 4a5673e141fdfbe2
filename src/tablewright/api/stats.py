"""``ds.stats``: statistics under pylance's names.

Tests: ``tests/unit/api/test_health_verbs.py``, ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from tablewright.checks import whole_number
from tablewright.operations.statistics import field_bytes, index_statistics, table_statistics
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["DataStatistics", "DatasetStats", "FieldStatistics", "LanceStats"]

_ROWS_MAX = (1 << 64) - 1


@dataclass
class FieldStatistics:
    """Statistics about a field."""

    id: int
    bytes_on_disk: int


@dataclass
class DataStatistics:
    """Statistics about the data: one entry per field, nested ones after their parents."""

    fields: list[FieldStatistics]


class DatasetStats(TypedDict):
    """Statistics about a version; ``deletion_file_size_bytes`` is ours."""

    num_deleted_rows: int
    num_fragments: int
    num_small_files: int
    deletion_file_size_bytes: int


class LanceStats:
    """Statistics about one version of a table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def dataset_stats(self, max_rows_per_group: int = 1024) -> DatasetStats:
        """Deleted rows, fragments, and fragments with fewer than ``max_rows_per_group`` rows.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(5)}, "memory://dataset-stats-example")
        >>> ds.stats.dataset_stats()
        {'num_deleted_rows': 0, 'num_fragments': 1, 'num_small_files': 1, 'deletion_file_size_bytes': 0}
        """
        small_below = whole_number(max_rows_per_group, "max_rows_per_group", maximum=_ROWS_MAX)
        found = table_statistics(self._snapshot, small_below)
        return DatasetStats(
            num_deleted_rows=found["num_deleted_rows"],
            num_fragments=found["num_fragments"],
            num_small_files=found["num_small_files"],
            deletion_file_size_bytes=found["deletion_file_size_bytes"],
        )

    def data_stats(self) -> DataStatistics:
        """Bytes on disk of each field, from the ends of all data files.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": range(1000)}, "memory://data-stats-example", data_storage_version="2.0")
        >>> ds.stats.data_stats().fields
        [FieldStatistics(id=0, bytes_on_disk=8000)]
        """
        return DataStatistics([FieldStatistics(id, size) for id, size in field_bytes(self._snapshot).items()])

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """What an index covers, and what its files say.

        Raises :class:`~tablewright.errors.IndexNotFound` (a ``KeyError``) if there is none of this name.
        """
        return index_statistics(self._snapshot, index_name)
