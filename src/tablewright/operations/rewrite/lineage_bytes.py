"""What a change of rows adds to the manifest: row ids and row versions of a fragment, after the change minus before.

Only tables with stable row ids have them, and every later commit writes them again.

- *Rows*: the new fragment has the ids of the moved rows and the versions they were created at; it was updated at once.
  The old fragment keeps its sequences until it is compacted, or goes if no row is left.
- *Columns*: the old fragment's last-updated-at versions change where rows changed. A run of them takes 10 bytes or more
  and scattered rows have a run each; there is no shorter form, because only the length of a run's span counts.

Sizes are those of the sequences as they would be encoded. Rows of several fragments may share a new one, and deleted
rows between changed ones may take their version, so the real sizes can be smaller.

Format: ``docs/format/row-ids.md#sequences``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import (
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from tablewright.format.row_set import RowSet

__all__ = ["LineageBytes", "lineage_bytes", "most_lineage_bytes"]

_ID_BYTES_MAX, _VERSION_BYTES_MAX, _OTHER_BYTES_MAX = 8, 40, 256


@dataclass(frozen=True, slots=True)
class LineageBytes:
    """Bytes that the manifest grows by if rows move, and if columns change in place; below 0 if it shrinks."""

    rows: int = 0
    columns: int = 0


def lineage_bytes(fragment: Fragment, changed: RowSet | None, version: int) -> LineageBytes:
    """The bytes for ``changed`` rows (``None``: all live ones) of a fragment in a commit that makes ``version``.

    >>> from tablewright.format.row_ids import RowIdSequence
    >>> ids = encode_row_ids(RowIdSequence.from_range(0, 1000))
    >>> versions = encode_versions(VersionSequence.constant(1000, 1))
    >>> fragment = Fragment(
    ...     id=0, files=(), physical_rows=1000, row_ids=ids, created_at=versions, last_updated_at=versions
    ... )
    >>> lineage_bytes(fragment, RowSet.of(range(1, 1000, 5)), 2)
    LineageBytes(rows=160, columns=3999)
    """
    if fragment.row_ids is None:
        return LineageBytes()
    rows = fragment.physical_rows
    updated = _size(fragment.last_updated_at)
    if changed is None or len(changed) >= fragment.live_rows:
        at_once = len(encode_versions(VersionSequence.constant(rows, version)))
        return LineageBytes(at_once - updated, at_once - updated)
    offsets = changed.to_numpy()
    ids = decode_row_ids(fragment.row_ids, f"fragment {fragment.id}", rows).select(offsets)
    created = _versions(fragment.created_at, fragment).select(offsets)
    patched = _versions(fragment.last_updated_at, fragment).patched(changed, version)
    moved = VersionSequence.constant(len(changed), version)
    return LineageBytes(
        rows=len(encode_row_ids(ids)) + len(encode_versions(created)) + len(encode_versions(moved)),
        columns=len(encode_versions(patched)) - updated,
    )


def most_lineage_bytes(fragment: Fragment, rows: int) -> int:
    """What the manifest grows by at most if ``rows`` of a fragment move, beyond what it grows by if columns change."""
    in_place = -_size(fragment.last_updated_at)  # nothing is left of it
    return rows * (_ID_BYTES_MAX + _VERSION_BYTES_MAX) + _OTHER_BYTES_MAX - in_place


def _size(data: bytes | None) -> int:
    return 0 if data is None else len(data)


def _versions(data: bytes | None, fragment: Fragment) -> VersionSequence:
    rows = fragment.physical_rows
    return VersionSequence.constant(rows, 1) if data is None else decode_versions(data, f"fragment {fragment.id}", rows)
