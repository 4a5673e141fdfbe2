"""Which files go, and what cleanup did: frozen values that print as text.

Tests: ``tests/unit/operations/cleanup/test_files.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from tablewright.operations.cleanup.kinds import BLOB, DATA, DELETION, INDEX, TRANSACTION

__all__ = ["CleanupExplanation", "CleanupFile", "CleanupReferencedBranch", "CleanupStats", "stats_of"]

_COUNTED = {
    DATA: "data_files_removed",
    BLOB: "data_files_removed",
    TRANSACTION: "transaction_files_removed",
    INDEX: "index_files_removed",
    DELETION: "deletion_files_removed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupFile:
    """A file that goes. ``path`` is below the table's root; ``unverified``: no manifest that we know ever named it."""

    path: str
    kind: str
    size_bytes: int
    reason: str
    unverified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupStats:
    """What was removed, or would be. ``data_files_removed`` counts blob files too, which ``blob_files_removed`` counts
    alone; ``old_versions`` are manifests. ``failed_deletes`` are files that the store did not delete: they are still
    there, or the reply was lost. The next cleanup finishes it.
    """

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0
    blob_files_removed: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{each.name}={getattr(self, each.name)}" for each in fields(self))


def stats_of(files: Iterable[CleanupFile], failed_deletes: int = 0) -> CleanupStats:
    """Count files by their kind. A version with two manifests (V1 and V2 names) counts once for each.

    >>> file = CleanupFile(path="data/a.lance", kind="data", size_bytes=10, reason="")
    >>> stats_of([file]).bytes_removed, stats_of([file]).data_files_removed
    (10, 1)
    """
    counts = dict.fromkeys((*_COUNTED.values(), "old_versions", "blob_files_removed", "bytes_removed"), 0)
    for file in files:
        counts[_COUNTED.get(file.kind, "old_versions")] += 1
        counts["blob_files_removed"] += file.kind == BLOB
        counts["bytes_removed"] += file.size_bytes
    return CleanupStats(**counts, failed_deletes=failed_deletes)


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch whose files were looked at, and the version that it begins from."""

    name: str
    referenced_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupExplanation:
    """What a cleanup would remove. ``candidate_files`` has every file with its reason; nothing was deleted.

    ``waiting_files`` and ``waiting_bytes`` are files that no version names and that stay, because they are younger than
    seven days: they may belong to a writer that is under way.
    """

    uri: str
    read_version: int
    removed_versions: tuple[int, ...]
    kept_versions: tuple[int, ...]
    stats: CleanupStats
    candidate_files: tuple[CleanupFile, ...] = ()
    candidate_files_truncated: bool = False
    candidate_file_limit: int | None = None
    referenced_branches: tuple[CleanupReferencedBranch, ...] = ()
    waiting_files: int = 0
    waiting_bytes: int = 0
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"Cleanup of {self.uri}, seen from version {self.read_version}",
            f"  removes versions {_ranges(self.removed_versions)}; keeps {_ranges(self.kept_versions)}",
            f"  {self.stats}",
        ]
        if self.referenced_branches:
            named = ", ".join(f"{each.name} (from {each.referenced_version})" for each in self.referenced_branches)
            lines.append(f"  branches that share files: {named}")
        if self.waiting_files:
            lines.append(
                f"  {self.waiting_files} files ({self.waiting_bytes} bytes) that no version names are younger than "
                "7 days and stay"
            )
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"  {f.kind:<11} {f.size_bytes:>12} {f.path}: {f.reason}" for f in self.candidate_files]
        if self.candidate_files_truncated:
            lines.append(f"  … only the first {self.candidate_file_limit} files are listed")
        return "\n".join(lines)


def _ranges(versions: Iterable[int]) -> str:
    """Numbers as ranges: ``1-3, 7``."""
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"
