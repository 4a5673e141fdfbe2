"""What the indices of a version are, as values for people: pylance's ``describe_indices``.

Tests: ``tests/unit/api/test_index_verbs.py``, ``tests/differential/test_create_index.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import is_system
from tablewright.operations.describe import index_kind
from tablewright.operations.health.indices import covered_by, segments_by_name
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["IndexDescription", "IndexSegmentDescription", "indices_described"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSegmentDescription:
    """One segment of an index: a directory with files, and the fragments that it covers."""

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: frozenset[int]
    index_version: int
    created_at: datetime | None = None
    size_bytes: int | None = None
    base_id: int | None = None
    covering_fields: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDescription:
    """One index: its column, its kind, and its segments. ``details`` are settings of kinds that have some."""

    name: str
    index_type: str
    type_url: str
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    total_size_bytes: int | None
    details: Mapping[str, object] = field(default_factory=dict)


def indices_described(snapshot: Snapshot) -> list[IndexDescription]:
    """Every index of a version, by name; bookkeeping of the format is left out."""
    found = segments_by_name(snapshot)
    return [_described(snapshot, found[name]) for name in sorted(found) if not is_system(found[name][0])]


def _described(snapshot: Snapshot, segments: list[IndexMetadata]) -> IndexDescription:
    first, schema = segments[0], snapshot.schema
    ids = snapshot.fragments.ids.astype(np.int64)
    covered = np.logical_or.reduce([covered_by(snapshot, segment, ids)[0] for segment in segments])
    sizes = [sum(file.size_bytes for file in segment.files) for segment in segments if segment.files]
    return IndexDescription(
        name=first.name,
        index_type=index_kind(first),
        type_url=first.details_type_url or "",
        num_rows_indexed=int(snapshot.fragments.live_rows[covered].sum()),
        fields=list(first.fields),
        field_names=[_path(snapshot, id) if schema.has(id) else f"(dropped field {id})" for id in first.fields],
        segments=[_segment(segment) for segment in segments],
        total_size_bytes=sum(sizes) if len(sizes) == len(segments) else None,
    )


def _path(snapshot: Snapshot, field_id: int) -> str:
    schema = snapshot.schema
    return ".".join(schema.by_id(id).name for id in (*schema.ancestors(field_id), field_id))


def _segment(segment: IndexMetadata) -> IndexSegmentDescription:
    created = segment.created_at_ms
    return IndexSegmentDescription(
        uuid=str(segment.uuid),
        dataset_version_at_last_update=segment.dataset_version,
        fragment_ids=frozenset(segment.coverage or ()),
        index_version=segment.index_version or 0,
        created_at=None if created is None else datetime.fromtimestamp(created / 1000, UTC),
        size_bytes=sum(file.size_bytes for file in segment.files) if segment.files else None,
        base_id=segment.base_id,
        covering_fields=list(segment.covering_fields),
    )
