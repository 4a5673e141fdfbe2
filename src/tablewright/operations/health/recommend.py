"""What to do, and why: figures against the limits of the workload. Pure.

Compaction comes first, because cleanup frees what it replaces; indices after it, because it moves rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablewright.operations.health.options import Limits
from tablewright.operations.health.text import amount, percent, size
from tablewright.operations.health.values import (
    BytesHealth,
    CompactionOutlook,
    FragmentsHealth,
    IndexHealth,
    Recommendation,
    RowsHealth,
    VersionsHealth,
)

__all__ = ["recommend"]


def recommend(
    *,
    limits: Limits,
    rows: RowsHealth,
    bytes: BytesHealth,
    shape: FragmentsHealth,
    versions: VersionsHealth,
    indices: Sequence[IndexHealth],
    compaction: CompactionOutlook | None,
) -> tuple[Recommendation, ...]:
    """What should be done, in this order; one that says so if there is nothing."""
    found = (
        *_compaction(limits, bytes, shape, compaction),
        *_indices(limits, indices),
        *_cleanup(limits, versions),
    )
    if found:
        return found
    reason = (
        f"{percent(rows.deleted_share)} of the rows are deleted and no fragment is over "
        f"{percent(limits.deleted_share)}; {amount(shape.small, 'small fragment')} of {shape.count:,}; a cleanup would "
        f"free {percent(versions.reclaimable_share)} of the bytes on disk."
    )
    return (Recommendation(action="none", reason=reason),)


def _compaction(
    limits: Limits, bytes: BytesHealth, shape: FragmentsHealth, compaction: CompactionOutlook | None
) -> Iterator[Recommendation]:
    if compaction is not None and not compaction.tasks:
        return
    reasons = []
    if shape.over_limit:
        reasons.append(
            f"{amount(shape.over_limit, 'fragment')} with more than {percent(limits.deleted_share)} deleted rows or "
            f"{percent(limits.dead_columns_share)} dead column bytes; {percent(bytes.dead_share)} of the data bytes "
            f"({size(bytes.dead)}) are dead"
        )
    if shape.small >= limits.small_fragments:
        reasons.append(
            f"{shape.small:,} of {shape.count:,} fragments have fewer than {shape.target_rows:,} rows, and a scan asks "
            "the store for each of them"
        )
    if reasons:
        call = f"ds.optimize.compact_files(materialize_deletions_threshold={limits.deleted_share})"
        yield Recommendation(action="compact", reason="; ".join(reasons) + ".", call=call)


def _indices(limits: Limits, indices: Sequence[IndexHealth]) -> Iterator[Recommendation]:
    reasons = [reason for index in indices if index.columns for reason in _reasons(limits, index)]
    if reasons:
        yield Recommendation(
            action="optimize_indices", reason="; ".join(reasons) + ".", call="ds.optimize.optimize_indices()"
        )


def _reasons(limits: Limits, index: IndexHealth) -> Iterator[str]:
    """Why an index wants to catch up."""
    rows = f"{index.unindexed_rows:,} rows ({percent(index.unindexed_share)}) to be scanned by every query"
    if index.unindexed_share > limits.unindexed_share:
        yield f"{index.name} leaves {rows}"
    elif index.stale_fragments and index.unindexed_rows:
        yield f"{index.name} lost {index.stale_fragments:,} fragments that were rewritten, and leaves {rows}"
    if index.deferred_segments:
        yield (
            f"{index.name} has {index.deferred_segments:,} segments with addresses from before a compaction that "
            "deferred its work on indices, which every query translates"
        )


def _cleanup(limits: Limits, versions: VersionsHealth) -> Iterator[Recommendation]:
    reasons = []
    whose = "old versions only" if versions.is_verified else "old versions or to none"
    if versions.reclaimable_share > limits.reclaimable_share:
        reasons.append(
            f"{size(versions.reclaimable_bytes)} of {size(versions.bytes_on_disk)} on disk "
            f"({percent(versions.reclaimable_share)}) belong to {whose}"
        )
    if versions.count - versions.kept >= limits.versions:
        reasons.append(f"there are {versions.count:,} versions, which every open of the latest one may have to list")
    if reasons:
        yield Recommendation(action="cleanup", reason="; ".join(reasons) + ".", call="ds.cleanup_old_versions()")
