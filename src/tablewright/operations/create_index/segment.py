"""A segment that is to be written: of which column, from which fragments, with what of older segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import IndexKind
from tablewright.format.schema import Schema
from tablewright.indices.building import BuildPlan, OldSegment
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["IndexPlan", "KeptSegment", "SegmentPlan", "plain_type"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSegment:
    """An older segment whose entries are kept: those of rows that are live in ``fragment_ids``, which it covers."""

    index: IndexMetadata
    fragment_ids: FrozenBitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """One new segment. ``read``: fragments whose column is read; ``kept``: entries that are taken from older segments;
    ``removed``: segments that it takes the place of. ``field_id`` is the leaf's, ``path`` leads to it by names.
    ``settings_of``: the settings are those of this segment.
    """

    name: str
    kind: IndexKind
    field_id: int
    path: tuple[str, ...]
    type: pa.DataType
    read: FragmentList
    kept: tuple[KeptSegment, ...] = ()
    removed: tuple[IndexMetadata, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    settings_of: IndexMetadata | None = None
    reason: str = ""

    @property
    def coverage(self) -> FrozenBitMap:
        """The fragments that the new segment covers."""
        return FrozenBitMap(self.read.ids.tolist()).union(*(kept.fragment_ids for kept in self.kept))

    def build_plan(self, snapshot: Snapshot, uuid: UUID, old: tuple[OldSegment, ...]) -> BuildPlan:
        """What the kind's ``build`` gets; ``old`` are the kept segments with their translations."""
        return BuildPlan(
            kind=self.kind,
            uuid=uuid,
            uri=snapshot.location.uri,
            version=snapshot.version,
            schema=snapshot.schema,
            path=self.path,
            field_id=self.field_id,
            type=self.type,
            fragments=self.read,
            base_paths=snapshot.manifest.base_paths,
            stable=snapshot.manifest.stable_row_ids,
            settings=dict(self.settings),
            old=old,
        )

    def __str__(self) -> str:
        rows = self.read.total_live_rows
        kept = sum(len(each.fragment_ids) for each in self.kept)
        because = f", because={self.reason}" if self.reason else ""
        return (
            f"Index: name={self.name}, type={self.kind.name}, column={'.'.join(self.path)}, "
            f"fragments_read={len(self.read)}, rows_read={rows}, fragments_kept={kept}, "
            f"segments_replaced={len(self.removed)}{because}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan:
    """All segments that one transaction brings, and why other indices are left as they are, by name."""

    segments: tuple[SegmentPlan, ...] = ()
    left_alone: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"  {segment}" for segment in self.segments]
        lines += [f"  left alone: {name}: {why}" for name, why in self.left_alone.items()]
        return "\n".join(["Indices", *(lines or ["  nothing to do"])])


def plain_type(schema: Schema, field_id: int) -> pa.DataType:
    """The type of a field's values as they are indexed: the storage of extension types, the values of dictionaries.

    >>> schema = Schema.from_arrow(pa.schema({"d": pa.dictionary(pa.int32(), pa.string())}))
    >>> plain_type(schema, 0)
    DataType(string)
    """
    kind = schema.arrow_field(field_id).type
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind
