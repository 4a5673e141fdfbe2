"""The answer of ``health`` as frozen values. Shares are from 0 to 1; sizes are in bytes.

Tests: ``tests/unit/operations/health/test_measure.py``, ``tests/unit/operations/health/test_report.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.format.manifest_sizes import ManifestSizes

__all__ = [
    "BytesHealth",
    "CompactionOutlook",
    "FragmentsHealth",
    "HealthFacts",
    "IndexHealth",
    "ReadOverhead",
    "ReclaimableFiles",
    "Recommendation",
    "RowsHealth",
    "VersionGrowth",
    "VersionsHealth",
    "share",
]

_WORST = 5


def share(part: float, whole: float) -> float:
    """``part / whole``, 0 of nothing."""
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsHealth:
    """Rows that a reader sees, and rows that deletion files hide."""

    live: int
    deleted: int

    @property
    def physical(self) -> int:
        """Rows in data files."""
        return self.live + self.deleted

    @property
    def deleted_share(self) -> float:
        """Deleted rows among those in data files."""
        return share(self.deleted, self.physical)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesHealth:
    """Bytes of the files that this version names.

    ``dead_rows`` is an estimate, deleted rows × live bytes per row of their fragment; ``dead_columns`` are bytes of
    columns that data files hold and the table no longer has. These are measured in ``columns_measured`` of
    ``columns_dead`` files, and extrapolated to files with the same columns. ``missing_files`` are named and not there.
    """

    data: int
    deletion_files: int
    dead_rows: int
    dead_columns: int
    columns_dead: int = 0
    columns_measured: int = 0
    missing_files: int = 0

    @property
    def dead(self) -> int:
        """Bytes that a reader does not need."""
        return self.dead_rows + self.dead_columns

    @property
    def dead_share(self) -> float:
        """Dead bytes among those of data files."""
        return share(self.dead, self.data)

    @property
    def deletion_share(self) -> float:
        """Size of deletion files against data files; usually under 0.01."""
        return share(self.deletion_files, self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentsHealth:
    """How many fragments there are. *Small* ones have fewer rows than ``target_rows``; ``over_limit`` counts those
    with more deleted rows, or more dead column bytes, than the limits of the workload.
    """

    count: int
    data_files: int
    small: int
    target_rows: int
    with_deletions: int
    over_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimableFiles:
    """Files of one kind that neither the latest nor a tagged version nor a branch needs."""

    kind: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsHealth:
    """Versions of this branch, and what a cleanup that keeps only the latest and tagged ones would free.

    ``unverified_bytes`` are in files that no manifest names and that are younger than 7 days: a writer may be at work
    on them, so cleanup keeps them. If not all manifests were read (``is_verified``), they are counted as reclaimable.
    """

    count: int
    oldest: int
    latest: int
    oldest_ns: int
    tagged: int
    kept: int
    manifest_bytes: int
    bytes_on_disk: int
    reclaimable: tuple[ReclaimableFiles, ...]
    unverified_bytes: int
    is_verified: bool

    @property
    def reclaimable_bytes(self) -> int:
        """What a cleanup would free."""
        return sum(files.bytes for files in self.reclaimable)

    @property
    def reclaimable_share(self) -> float:
        """What a cleanup would free, among all bytes on disk."""
        return share(self.reclaimable_bytes, self.bytes_on_disk)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionGrowth:
    """What one version wrote, and what of it is dead by now.

    ``rows_added`` are rows of new fragments, ``rows_removed`` rows that went with deletions or fragments.
    ``bytes_added`` are those of new data, deletion and index files. Dead is what the measured version no longer reads
    there: deleted rows, replaced columns, files that compaction or a later version replaced.
    """

    version: int
    operation: str
    rows_added: int
    rows_removed: int
    bytes_added: int
    manifest_bytes: int
    rows_dead: int
    bytes_dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHealth:
    """One index: what it covers, and what keeping it costs.

    ``unindexed_rows`` are scanned by every query that uses the index. ``stale_fragments`` are covered and gone.
    ``deferred_segments`` hold addresses from before a deferred compaction, which every query translates.
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    segments: int
    bytes: int
    indexed_rows: int
    unindexed_rows: int
    unindexed_fragments: int
    stale_fragments: int
    deferred_segments: int = 0

    @property
    def unindexed_share(self) -> float:
        """Rows that the index does not cover, among all."""
        return share(self.unindexed_rows, self.indexed_rows + self.unindexed_rows)

    @property
    def bytes_per_row(self) -> float:
        """Bytes of index files per covered row."""
        return share(self.bytes, self.indexed_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOverhead:
    """A column of some rows in fragments with deletions, read with and without applying deletion vectors.

    ``load_seconds`` is the time to fetch and decode the deletion files; a process does that once.
    """

    column: str
    fragments: int
    rows: int
    deleted_rows: int
    plain_seconds: float
    applied_seconds: float
    load_seconds: float

    @property
    def ratio(self) -> float:
        """Time with deletion vectors against time without."""
        return share(self.applied_seconds, self.plain_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutlook:
    """What a compaction with the workload's limit would do now; ``bytes_freed`` needs a cleanup afterwards."""

    tasks: int
    fragments_before: int
    fragments_after: int
    rows_written: int
    bytes_read: int
    bytes_freed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One thing to do (``compact``, ``optimize_indices``, ``cleanup``, or ``none``), why, and the call that does it."""

    action: str
    reason: str
    call: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HealthFacts:
    """All that was measured of one version of a table.

    ``fragments`` has a row per fragment: id, rows, bytes, dead bytes, and whether it is small.
    """

    uri: str
    version: int
    branch: str | None
    workload: str
    deletion_limit: float
    rows: RowsHealth
    bytes: BytesHealth
    shape: FragmentsHealth
    manifest: ManifestSizes
    versions: VersionsHealth
    growth: tuple[VersionGrowth, ...]
    indices: tuple[IndexHealth, ...]
    read_overhead: ReadOverhead | None
    compaction: CompactionOutlook | None
    recommendations: tuple[Recommendation, ...]
    fragments: pa.Table = field(repr=False)

    @property
    def worst_fragments(self) -> list[dict[str, Any]]:
        """The fragments with most dead bytes, up to five; none without."""
        dead = self.fragments.filter(pc.field("dead_bytes") > 0)
        order = [("dead_bytes", "descending"), ("fragment_id", "ascending")]
        return dead.sort_by(order).slice(0, _WORST).to_pylist()
