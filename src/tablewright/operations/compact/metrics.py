"""What a compaction did: pylance's four counts, and what they cost.

Tests: ``tests/unit/api/test_optimize.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from tablewright.format.fragment import Fragment
from tablewright.operations.compact.groups import Group
from tablewright.operations.compact.task import Rewritten

__all__ = ["CompactionMetrics", "metrics_of", "metrics_of_rewritten"]


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """Fragments and files (data files and deletion files) that went and came; rows, bytes and seconds.

    ``groups_dropped`` were compacted by another writer first. ``rows_hidden`` were deleted or moved by others
    meanwhile, and ``bytes_carried`` are columns that others wrote meanwhile. ``index_bytes_written`` are files of
    indices that were written again for the new addresses.
    """

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0
    rows: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    groups_dropped: int = 0
    rows_hidden: int = 0
    bytes_carried: int = 0
    index_bytes_written: int = 0

    def to_dict(self) -> dict[str, float]:
        """All figures by name."""
        return asdict(self)


def metrics_of(groups: Iterable[Group]) -> CompactionMetrics:
    """The counts of what some groups replace by what."""
    every = list(groups)
    return _counts([f for group in every for f in group.old], [f for group in every for f in group.new])


def metrics_of_rewritten(made: Rewritten) -> CompactionMetrics:
    """The counts and costs of one task."""
    return replace(
        _counts(made.old_fragments, made.new_fragments),
        bytes_read=made.bytes_read,
        bytes_written=made.bytes_written,
        seconds=made.seconds,
    )


def _counts(old: Sequence[Fragment], new: Sequence[Fragment]) -> CompactionMetrics:
    return CompactionMetrics(
        fragments_removed=len(old),
        fragments_added=len(new),
        files_removed=sum(map(_files, old)),
        files_added=sum(map(_files, new)),
        rows=sum(fragment.physical_rows for fragment in new),
    )


def _files(fragment: Fragment) -> int:
    return len(fragment.files) + (fragment.deletion is not None)
