"""From files that were written to the entries of the manifest, and to the transaction that brings them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tablewright.format.index import IndexMetadata
from tablewright.format.transaction import CreateIndex, Transaction
from tablewright.indices.building import WrittenIndex
from tablewright.operations.create_index.segment import SegmentPlan

__all__ = ["entry_of", "finish_indices"]


def entry_of(segment: SegmentPlan, written: WrittenIndex, uuid: UUID, version: int, now_ns: int) -> IndexMetadata:
    """The entry of a segment that was built on ``version``. All its addresses are those of that version."""
    entry = IndexMetadata(
        uuid=uuid,
        fields=(segment.field_id,),
        name=segment.name,
        dataset_version=version,
        details_type_url=written.details_type_url,
        details_value=written.details_value,
        index_version=written.index_version,
        created_at_ms=now_ns // 1_000_000,
        files=written.files,
    )
    return entry.with_coverage(segment.coverage)


def finish_indices(
    new: Iterable[IndexMetadata], removed: Iterable[IndexMetadata], version: int, uuid: UUID
) -> Transaction:
    """The transaction that brings new segments and takes those that they replace."""
    operation = CreateIndex(new_indices=tuple(new), removed_indices=tuple(removed))
    return Transaction(read_version=version, uuid=str(uuid), operation=operation)
